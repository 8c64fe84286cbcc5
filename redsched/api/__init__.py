"""The REST API of a scheduler.

    app.py           the factory and the lifespan             worker.py      one worker process
    routes/          one file a subject                       problems.py    every error as an RFC 9457 problem
    request_body.py  a JSON body, bounded and strict          responses.py   JSON responses
    fast_path.py     POST /v1/selections without the router   openapi.py     what routes declare about their responses
    readiness.py     whether the workers are ready            metrics.py     every metric

It knows the Scheduler and nothing below it. `redsched.api.app:create_app` is the way in.
"""
