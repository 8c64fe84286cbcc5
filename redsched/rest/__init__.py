"""What all clients of the REST API share: agents without access to the store, and `redsched.client`.

    endpoint.py     the URL, TLS, the token file
    connection.py   the options of httpx, and sending that may be cancelled

httpx is imported when a client connects.
"""
