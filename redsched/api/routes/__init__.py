"""The routes, one file per subject. Each declares every status that it can return."""
