"""Meet a service over HTTP from Python: what `celeus.Client` and `celeus.AsyncClient` are made of.

It needs nothing but httpx2. `calls` says what to send and what came, `blocking` and `asynchronous`
send it.
"""
