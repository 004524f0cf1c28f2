"""A session's answer as something that passes or fails: for commands, reports and pytest.

It meets a service through the client, and needs nothing more than the bare install brings.
"""
