"""What can be done with claims: look, renew, resize, move, shelve, release, one or many."""
