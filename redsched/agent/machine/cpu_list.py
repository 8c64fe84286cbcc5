"""Parse CPU lists as the kernel and operators write them: `2-7,10-15`."""

from redsched.errors import InvalidRequest

MAX_CPUS = 8192
"""The most CPUs that the kernel can be built for."""


def parse_cpus(text: str) -> frozenset[int]:
    """Return the CPUs of a list such as `0-3,8`; the empty set for ''. Raises InvalidRequest."""
    found: set[int] = set()
    for part in filter(None, (part.strip() for part in text.split(","))):
        first, dash, last = part.partition("-")
        low, high = _cpu(first, text), _cpu(last if dash else first, text)
        if high < low:
            raise InvalidRequest(f"CPU list {text[:80]!r}: {part[:20]!r} is a descending range")
        found.update(range(low, high + 1))
    return frozenset(found)


def _cpu(text: str, whole: str) -> int:
    text = text.strip()
    if not (text.isascii() and text.isdecimal()) or len(text) > 4 or int(text) >= MAX_CPUS:
        raise InvalidRequest(
            f"CPU list {whole[:80]!r}: {text[:20]!r} is not a CPU number: use numbers and ranges, such as 2-7,10-15"
        )
    return int(text)
