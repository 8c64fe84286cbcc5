"""HTTP: the REST edge of a scheduler, and the processes that serve it.

    app.py         the factory and the lifespan       body.py       reads a JSON body, bounded and strict
    routes/        one file a subject                 problems.py   every error as an RFC 9457 problem
    models/        what goes in and out, for pydantic and for the OpenAPI
    parsing.py     JSON text as a model, merge patches     bodies.py     what is there, as the body that declares it
    render.py      the scheduler's dataclasses as JSON     openapi.py   what routes declare about their answers
    metrics.py     every metric                       readiness.py  what the workers tell each other
    serve.py       the parent of the workers          worker.py     one worker process

It knows the Scheduler and nothing below it. `redsched.api.app:create_app` is the way in.
"""
