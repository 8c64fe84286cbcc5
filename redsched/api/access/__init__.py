"""Who may do what: the gate before all routes, the table of routes and roles, and what each role gets to see."""
