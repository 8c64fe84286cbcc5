"""The fleet over the REST API, for commands without access to the store: the part of a Scheduler that commands use.

Each call goes to the route of the same meaning, and returns what the library returns, restored from the response. So a
command does not know which of the two it has, and `mypy` checks that both take its calls.
"""

from redsched.cli.remote.fleet import RemoteFleet

__all__ = ["RemoteFleet"]
