"""Background work of a scheduler: sweep, reconcile, replay releases, record events."""
