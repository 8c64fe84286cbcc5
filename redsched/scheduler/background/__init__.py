"""What a scheduler does beside requests: sweeping, reconciling, repeating releases, recording events."""
