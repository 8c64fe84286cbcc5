"""The in-memory replica of a cell: columns, the snapshot they start from, and the feed that updates them."""
