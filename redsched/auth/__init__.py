"""Who calls: callers, the file of tokens, and OpenID Connect."""
