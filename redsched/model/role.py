"""What a caller may be to a fleet."""

from enum import StrEnum


class Role(StrEnum):
    """What a caller may do in general. The table of routes says which role may use which route."""

    TENANT = "tenant"
    """Claims for its own projects."""
    AGENT = "agent"
    """Reports and claims of its own hosts."""
    OPERATOR = "operator"
    """Everything."""
    READER = "reader"
    """Reads everything and changes nothing."""
