"""Changes, events and usage: what can be followed and summed up."""
