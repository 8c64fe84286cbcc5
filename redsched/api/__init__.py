"""The REST API of a scheduler.

    app.py           the factory and the lifespan             routes/        one file per subject
    access/          who may do what                          problems.py    every error of a route as a problem
    request_body.py  JSON bodies, bounded and strict          responses.py   JSON responses
    fast_path.py     POST /v1/selections without the router   openapi.py     what routes declare about their responses
    readiness.py     readiness of the workers                 metrics.py     every metric

operations.py makes the routes of `redsched.operations`. They use the Scheduler; only the relay of agents' calls knows
`redsched.store`. `redsched.serve` has the processes, connections and TLS that carry the API.
`redsched.api.app:create_app` is the entry point.
"""
