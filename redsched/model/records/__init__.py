"""Records: what the library returns, the API writes, and the client hands back. Each is described once, here.

A field is documented where JSON needs it, by `Field(description=...)`. `redsched.model.record` writes and reads them.
"""
