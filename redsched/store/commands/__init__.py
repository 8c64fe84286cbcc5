"""One typed coroutine for each script and each read, by subject."""
