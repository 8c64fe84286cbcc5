"""The data in the store as plain objects: keys, fields, results, outcomes. Independent of Redis."""
