"""The REST API of a scheduler.

    app.py           the factory and the lifespan             worker.py      one worker process
    routes/          one file per subject                     problems.py    every error as an RFC 9457 problem
    request_body.py  JSON bodies, bounded and strict          responses.py   JSON responses
    fast_path.py     POST /v1/selections without the router   openapi.py     what routes declare about their responses
    plain_paths.py   no encoded slashes
    http_connection.py   connections with limits of size and time
    readiness.py     readiness of the workers                 metrics.py     every metric

It uses the Scheduler and nothing below it. `redsched.api.app:create_app` is the entry point.
"""
