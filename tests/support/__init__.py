"""Shared by several test suites: waiting for conditions, the servers under test, plain models and random fleets."""
