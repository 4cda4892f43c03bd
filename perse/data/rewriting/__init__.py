"""Texts rewritten so that a model cannot know the work: new names (`anonymize`), then new words (`summarize`). (PerSE, appendix A.2.)"""
