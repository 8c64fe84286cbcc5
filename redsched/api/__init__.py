"""The REST API of a scheduler.

    app.py           the factory and the lifespan             routes/        one file per subject
    access/          who may do what                          problems.py    every error of a route as a problem
    request_body.py  JSON bodies, bounded and strict          responses.py   JSON responses
    fast_path.py     POST /v1/selections without the router   openapi.py     what routes declare about their responses
    readiness.py     readiness of the workers                 metrics.py     every metric

It uses the Scheduler and nothing below it; `redsched.serve` has the processes, connections and TLS that carry it.
`redsched.api.app:create_app` is the entry point.
"""
