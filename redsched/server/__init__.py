"""The processes of one API: the supervisor that starts the workers, and what they tell each other."""
