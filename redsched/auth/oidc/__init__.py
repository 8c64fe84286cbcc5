"""Bearer tokens of an OpenID Connect provider: their mapping to roles, the provider's keys, and verification."""
