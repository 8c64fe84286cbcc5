"""The matrix of real servers that the suite runs against, each kind and version once."""

from redsched.store.embedded.server import ServerBinary, find_servers


def usable_servers() -> list[ServerBinary]:
    """Every usable server on this machine; the embedded Valkey is always among them."""
    unique = {name_of(one): one for one in find_servers() if not one.problem}
    return sorted(unique.values(), key=lambda one: one.kind, reverse=True)


def name_of(one: ServerBinary) -> str:
    """What the server is called in a test's id."""
    return f"{one.kind}-{one.version}"


SERVERS = usable_servers()
"""Looked for once; Valkey first, because everyone has it."""
