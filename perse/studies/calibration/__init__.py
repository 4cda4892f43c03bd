"""Do the scores and probabilities of a judge mean what they say?"""
