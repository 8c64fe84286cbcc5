"""Cases for Nova and Placement. Plain data: nothing here depends on Nova, Placement or redsched."""
