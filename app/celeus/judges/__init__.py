"""Models and programs that judge, at any endpoint that speaks as OpenAI's does.

`celeus judge` makes one the truth of a session, `celeus guess` has one guess the loss of every item
of a pool, of which people are the truth.
"""
