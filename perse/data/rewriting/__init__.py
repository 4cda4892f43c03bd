"""Texts rewritten so that a model cannot know the work: new names (`anonymize`), then new words (`summarize`).

`writer` asks any engine for text, `cache` keeps what it answered, `loop` checks answers and asks again. (PerSE, appendix A.2.)
"""
