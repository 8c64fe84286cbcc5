"""Users of the store by role: the keys and commands that each needs, as ACL rules."""
