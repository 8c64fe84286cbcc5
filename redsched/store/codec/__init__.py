"""What is in the store, as plain data: keys, fields, results, outcomes. Free of Redis."""
