"""Follow changes, read events, sum up usage."""
