"""Schemas of the API: bodies and queries in `requests`, pages of records, and examples.

Requests are checked here for their form only (strict types, no unknown field); names and ranges are checked once, in
`redsched.model`, whose messages say what to do. The JSON schema states both, so that the OpenAPI document is complete.
"""
