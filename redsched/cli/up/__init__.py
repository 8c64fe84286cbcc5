"""`redsched up`: everything on this machine, in one command."""
