"""The differences between Nova or Placement and redsched that the documentation names, by kind of record."""
