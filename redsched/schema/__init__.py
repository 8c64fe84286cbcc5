"""Pydantic models of the REST edge: `asked` is what comes in, `answered` what goes out, `words` the types in both.

What comes in is checked here for its form alone (strict types, no unknown field); names and ranges are checked once,
in `redsched.model`, whose messages say what to do. The JSON schema states both, so that the OpenAPI tells all of it.
"""
