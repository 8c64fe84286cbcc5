"""What any HTTP application of redsched needs, and nothing of what one answers.

exposure.py         who may reach the port, and what protects it there
supervisor.py       binds the port, starts and restarts the workers     processes.py    forks of this process
worker.py           one worker: uvicorn, with limits                    registry.py     what the workers share
http_connection.py  limits of size and time of a connection             request_head.py what RFC 9112 requires
tls.py              the TLS files, loaded anew when they change         tls_handshake.py    TLS connections
browsers.py         no pages of other origins                           plain_paths.py  no encoded slashes
request_ids.py      the id of each request                              problems.py     errors as problems
"""

BACKLOG = 2048
"""The most connections of a listening socket that wait to be accepted."""
