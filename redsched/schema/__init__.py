"""Schemas of everything that enters or leaves: `requests` in, `responses` out, `types` for both.

Incoming JSON is checked here for its form alone (strict types, no unknown field); names and ranges are checked once, in
`redsched.model`, whose messages say what to do. The JSON schema states both, so that the OpenAPI is complete.
"""
