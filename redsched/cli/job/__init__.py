"""`redsched run`: place a job, follow its log, and end with its exit status. `redsched logs`: show a log later."""
