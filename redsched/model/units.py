"""Amounts and times with units, as people type them: `4Gi` of MEMORY_MB, `5h`. Programs send plain numbers.

The suffix of a resource class names its unit: `_KB`, `_MB` and `_GB` count KiB, MiB and GiB (as in Nova),
`_KILOBIT_PER_SEC` and `_KILOPACKET_PER_SEC` thousands per second. Other classes count pieces and take no unit. A value
with a unit must be a whole multiple of the class's unit: nothing is rounded.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from redsched.errors import InvalidRequest

_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}
_DECIMAL = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_COUNTED: tuple[tuple[str, str, int, Mapping[str, int]], ...] = (
    ("_KB", "KiB", 2**10, _BINARY),
    ("_MB", "MiB", 2**20, _BINARY),
    ("_GB", "GiB", 2**30, _BINARY),
    ("_KILOBIT_PER_SEC", "kbit/s", 10**3, _DECIMAL),
    ("_KILOPACKET_PER_SEC", "thousand packets/s", 10**3, _DECIMAL),
)
"""By suffix of a class: its unit, the size of that in basic units, and the units accepted in input."""
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}

_WHOLE = re.compile(r"-?[0-9]{1,16}\Z")
_WITH_UNIT = re.compile(r"([0-9]{1,16}(?:\.[0-9]{1,9})?) ?([A-Za-z]{1,20})\Z")
_DURATION = re.compile(r"(?:[0-9]{1,16}(?:\.[0-9]{1,9})?[A-Za-z]{1,20})+\Z")
_PART = re.compile(r"([0-9.]+)([A-Za-z]+)")

_AMOUNTS = frozenset(("resources", "slots", "external", "limits"))
"""The keys of bodies and files whose values are amounts by class or slot."""
_INVENTORIES = "inventories"
_RATIO = "allocation_ratio"
_TIME_ENDING = "_s"
_SIZE_ENDINGS = ("_kb", "_mb", "_gb")


def parse_amount(name: str, text: str) -> int:
    """Parse an amount of the resource class or slot `name`. Raises InvalidRequest if it is malformed or not whole."""
    if _WHOLE.match(text):
        return int(text)
    found = _WITH_UNIT.match(text)
    if not found:
        raise InvalidRequest(f"{name} must be a whole number, or one with a unit, not {text[:80]!r}")
    number, unit = found.groups()
    for ending, counted, size, units in _COUNTED:
        if _ends_with(name, ending):
            return _exact(name, text, Fraction(number) * _size_of(name, unit, counted, units) / size, counted)
    raise InvalidRequest(f"{name} is counted in pieces and takes no unit: give a whole number, not {text!r}")


def mib(amount: int) -> str:
    """Return bytes in MiB, as text."""
    return f"{amount / 2**20:.1f} MiB"


def is_in_pieces(name: str) -> bool:
    """Return whether a class counts pieces, and has no unit."""
    return not any(_ends_with(name, ending) for ending, *_ in _COUNTED)


def parse_seconds(name: str, text: str) -> int:
    """Parse a time into seconds: `90`, `90s`, `5m`, `1h30m`, `2d`. Raises InvalidRequest if malformed or not whole."""
    if _WHOLE.match(text):
        return int(text)
    if not _DURATION.match(text):
        raise InvalidRequest(f"{name} must be seconds, or a time such as 90s, 5m, 1h30m or 2d, not {text[:80]!r}")
    total = Fraction(0)
    for number, unit in _PART.findall(text):
        if unit not in _SECONDS:
            raise InvalidRequest(f"{name} {text!r} has the unit {unit!r}: use s, m (minutes), h or d")
        total += Fraction(number) * _SECONDS[unit]
    return _exact(name, text, total, "seconds")


def without_units(value: Any, word: str = "") -> Any:
    """Return a body, or a part of a file as parsed from YAML, with plain numbers in place of texts with units.

    `word` is the key under which the value was found. Values that may be free text (labels, metadata) are left as they
    are. Raises InvalidRequest if a value has a wrong unit.
    """
    if isinstance(value, list):
        return [without_units(one, word) for one in value]
    if not isinstance(value, dict):
        return plain_number(word, value)
    if word in _AMOUNTS:
        return {name: _amount(name, one) for name, one in value.items()}
    if word == _INVENTORIES:
        return {name: _inventory(name, one) for name, one in value.items()}
    if word == "pools":
        return {name: without_units(pool) for name, pool in value.items()}
    if word in ("labels", "metadata", "metrics", "properties", "aggregate_metadata", "query", "payload"):
        return value
    return {key: without_units(one, str(key)) for key, one in value.items()}


def plain_number(word: str, value: Any) -> Any:
    """Convert a text with a unit to a number, if the suffix of the key `word` names a unit, as in `lease_s`.

    Returns any other value unchanged. Raises InvalidRequest if the unit is wrong.
    """
    if word.endswith(_TIME_ENDING) and _is_typed(value):
        return parse_seconds(word, value)
    return _amount(word, value) if word.endswith(_SIZE_ENDINGS) else value


def _inventory(name: str, value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: one if key == _RATIO else _amount(name, one) for key, one in value.items()}


def _amount(name: Any, value: Any) -> Any:
    return parse_amount(name, value) if isinstance(name, str) and _is_typed(value) else value


def _is_typed(value: Any) -> bool:
    """Return whether a value is a number with a unit. Other texts are left to the validation of the field."""
    return isinstance(value, str) and bool(_WITH_UNIT.match(value) or _DURATION.match(value))


def _size_of(name: str, unit: str, counted: str, units: Mapping[str, int]) -> int:
    if unit in units:
        return units[unit]
    usual = ", ".join(units)
    if units is _BINARY and unit.upper() in ("K", "M", "G", "T", "P", "B", "KB", "MB", "GB", "TB", "PB"):
        raise InvalidRequest(
            f"{name}: the unit {unit!r} is ambiguous, 1000 or 1024: use {usual}, or a plain number of {counted}"
        )
    raise InvalidRequest(f"{name}: unknown unit {unit!r}: use {usual}, or a plain number of {counted}")


def _ends_with(name: str, ending: str) -> bool:
    return name.upper().endswith(ending)


def _exact(name: str, text: str, value: Fraction, counted: str) -> int:
    if value.denominator != 1:
        raise InvalidRequest(f"{name}: {text} is {float(value):g} {counted}: give a whole number of them")
    return value.numerator
