"""Does the judge know the texts from elsewhere?"""
