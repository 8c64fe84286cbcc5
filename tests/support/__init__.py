"""What several test suites share: waiting on conditions, and the servers under test."""
