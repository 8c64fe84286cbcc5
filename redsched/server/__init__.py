"""The processes of one API: the supervisor that starts the workers, and the registry that they share."""
