"""Queues of annotation tools: people judge there what a session has drawn, and nothing else.

`loop` is one loop for all of them, `questions` says what is asked, `tool` speaks HTTP. The others
are the tools.
"""
