"""The routes, one file a subject. Each declares every status that it can answer."""
