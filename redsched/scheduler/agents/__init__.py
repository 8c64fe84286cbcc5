"""The agents that have no access to the store: what they may call, and what of their input is checked."""
