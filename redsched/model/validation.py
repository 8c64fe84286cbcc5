"""Validation of names and values: hosts, cells, claims, resource classes, traits, slots and labels.

The one place for all rules about names. It is used at each boundary (REST models, fleet files, the store's typed
calls), so that every accepted name is safe in a Redis key, in a field and in a URL.
"""

import re

import os_resource_classes
import os_traits

from redsched.errors import InvalidRequest
from redsched.model.nearest_names import nearest_parts, one_of

MAX_AMOUNT = 2**53 - 1
"""The largest amount: Lua's numbers are doubles, which are exact only up to this."""

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"
"""For cells, zones, projects, consumers, claims, label keys. Excludes `{ } : /`, which keys and slots use."""

HOST_PATTERN = NAME_PATTERN.replace("{0,62}", "{0,252}")
"""For hosts: as long as names in DNS."""

OWNER_PATTERN = r"^[A-Za-z0-9][ -~]{0,254}$"
"""For owners of claims: the ids of tokens, and subjects of OpenID Connect, which have all printable characters."""

CUSTOM_PATTERN = r"^CUSTOM_[A-Z0-9_]{1,57}$"
MAX_STATUS_REASON = 200
"""The longest reason of a host's status."""
MAX_LABEL_LENGTH = 2047
"""The longest value of a label: the flags of a CPU are about 1,900 characters."""
LABEL_VALUE_PATTERN = rf"^[ -~]{{0,{MAX_LABEL_LENGTH}}}$"

DEVICE_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$"
"""For ids of devices: UUIDs such as GPU-5fd4f087-86f3-7a43-b711-4771313afc50, PCI addresses such as 0000:3b:00.0."""

METADATA_KEY_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"
METADATA_VALUE_PATTERN = r"^[ -~]{1,255}$"
"""For aggregate metadata: Nova's keys have colons (`trait:CUSTOM_X`), and lists of projects need room."""

_NAME = re.compile(NAME_PATTERN[:-1] + r"\Z")
_HOST = re.compile(HOST_PATTERN[:-1] + r"\Z")
_DEVICE = re.compile(DEVICE_PATTERN[:-1] + r"\Z")
_OWNER = re.compile(OWNER_PATTERN[:-1] + r"\Z")
_CUSTOM = re.compile(CUSTOM_PATTERN[:-1] + r"\Z")
_LABEL_VALUE = re.compile(LABEL_VALUE_PATTERN[:-1] + r"\Z")
_METADATA_KEY = re.compile(METADATA_KEY_PATTERN[:-1] + r"\Z")
_METADATA_VALUE = re.compile(METADATA_VALUE_PATTERN[:-1] + r"\Z")

STANDARD_CLASSES: frozenset[str] = frozenset(os_resource_classes.STANDARDS)
OWN_CLASSES = ("CUSTOM_GPU_MILLI", "CUSTOM_GPU_MEMORY_MB")
"""The classes of our own that agents report."""
STANDARD_TRAITS: frozenset[str] = frozenset(os_traits.get_traits())


def check_name(what: str, value: str) -> str:
    """Return `value` if it is a well-formed name of a `what` (such as "host"), else raise InvalidRequest."""
    pattern, most = (_HOST, 253) if what == "host" else (_NAME, 63)
    if not pattern.match(value):
        raise InvalidRequest(
            f"{what} {value[:80]!r} is not a name: use 1 to {most} letters, digits, '.', '_' or '-', "
            "beginning with a letter or digit"
        )
    return value


def check_owner(value: str) -> str:
    """Return `value` if it can be the owner of a claim, else raise InvalidRequest."""
    if not _OWNER.match(value):
        raise InvalidRequest(
            f"owner {value[:80]!r} is no owner of claims: use the id of a token, or oidc: and a subject, of 1 to 255 "
            "printable ASCII characters, beginning with a letter or digit"
        )
    return value


def check_device(value: str) -> str:
    """Return `value` if it can be the id of a device, else raise InvalidRequest."""
    if not _DEVICE.match(value):
        raise InvalidRequest(
            f"device {value[:80]!r} is not a device id: use its UUID or PCI address, of 1 to 128 letters, digits, "
            "'.', '_', ':', '@' or '-', beginning with a letter or digit"
        )
    return value


def check_class(value: str) -> str:
    """Return `value` if it is a resource class of os-resource-classes or a CUSTOM_ one, else raise InvalidRequest."""
    if not is_class(value):
        near = nearest_parts(value[:80], (*STANDARD_CLASSES, *OWN_CLASSES))
        raise InvalidRequest(
            f"unknown resource class {value[:80]!r}: {f'did you mean {one_of(near)}? U' if near else 'u'}se one of "
            "os-resource-classes (VCPU, MEMORY_MB, ...) or your own as CUSTOM_[A-Z0-9_]+"
        )
    return value


def is_class(value: str) -> bool:
    """Return whether a text is a resource class of os-resource-classes or a CUSTOM_ one."""
    return value in STANDARD_CLASSES or bool(_CUSTOM.match(value))


SHARED_POOL = "pool:"
"""The prefix of a shared pool's slots: `pool:licences/CUSTOM_LICENCE`."""


def check_slot(value: str) -> str:
    """Return `value` if it is a slot: `VCPU`, `numa0/PCPU`, `pool:licences/CUSTOM_SEAT`. Else raise InvalidRequest."""
    pool, slash, resource_class = value.rpartition("/")
    if slash:
        check_name("pool", pool.removeprefix(SHARED_POOL))
    check_class(resource_class)
    return value


def split_slot(slot: str) -> tuple[str, str]:
    """Split a slot into its pool ('' for the host's root) and its resource class."""
    pool, _, resource_class = slot.rpartition("/")
    return pool, resource_class


def check_topology(value: str) -> str:
    """Return `value` if places can be counted by it: `host`, `zone` or `label:<key>`. Else raise InvalidRequest."""
    if value not in ("host", "zone"):
        kind, _, key = value.partition(":")
        if kind != "label":
            raise InvalidRequest(f"by {value[:80]!r} is not a topology: use host, zone or label:<key>")
        check_name("label", key)
    return value


def check_trait(value: str) -> str:
    """Return `value` if it is a trait of os-traits or a CUSTOM_ one, else raise InvalidRequest."""
    if value not in STANDARD_TRAITS and not _CUSTOM.match(value):
        raise InvalidRequest(
            f"unknown trait {value[:80]!r}: use one of os-traits (HW_CPU_X86_AVX2, ...) "
            "or your own as CUSTOM_[A-Z0-9_]+"
        )
    return value


def shown(value: object) -> str:
    """Return a value for use in a message: short, and without huge integers, which Python refuses to convert."""
    if isinstance(value, int) and abs(value) >= 10**40:
        return "one of more than 40 digits"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def check_amount(what: str, value: int, minimum: int = 0) -> int:
    """Return `value` if it is an integer from `minimum` to 2^53-1, else raise InvalidRequest."""
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= MAX_AMOUNT:
        raise InvalidRequest(f"{what} must be a whole number from {minimum} to {MAX_AMOUNT}, not {shown(value)}")
    return value


def parse_int(text: str, unreadable: int, least: int = 0) -> int:
    """Parse an integer from `least` to 2^53-1 as stored; return `unreadable` for anything else (manual edits)."""
    if len(text) > 16 or not (text.isascii() and text.isdecimal()):
        return unreadable
    value = int(text)
    return value if least <= value <= MAX_AMOUNT else unreadable


def parse_signed(text: str) -> int:
    """Return a whole number that may be negative; 0 if it is missing or unreadable."""
    return -parse_int(text[1:], 0) if text.startswith("-") else parse_int(text, 0)


def check_label_value(key: str, value: str) -> str:
    """Return `value` if it can be a label's value: printable ASCII characters, else raise InvalidRequest."""
    if not _LABEL_VALUE.match(value):
        raise InvalidRequest(
            f"label {key!r} has the value {value[:80]!r}: use up to {MAX_LABEL_LENGTH} printable ASCII characters"
        )
    return value


def check_status_reason(text: str) -> None:
    """Raise InvalidRequest unless this may be the reason of a host's status: one line of printable characters."""
    if len(text) > MAX_STATUS_REASON:
        raise InvalidRequest(f"reason has {len(text)} characters: shorten it to {MAX_STATUS_REASON}")
    if not text.isprintable():
        raise InvalidRequest(f"reason must be one line of printable characters, not {text[:80]!r}")


def check_metadata(key: str, value: str) -> None:
    """Raise InvalidRequest unless these can be a key and a value of an aggregate's metadata."""
    if not _METADATA_KEY.match(key):
        raise InvalidRequest(
            f"metadata key {key[:80]!r}: use 1 to 128 letters, digits, '.', '_', ':' or '-', "
            "beginning with a letter or digit"
        )
    if not _METADATA_VALUE.match(value):
        raise InvalidRequest(f"metadata {key!r} has the value {value[:80]!r}: use 1 to 255 printable ASCII characters")


def check_condition(key: str, text: str) -> None:
    """Raise InvalidRequest unless this is a valid condition on a label: a value, or an operator with its operands."""
    if not _METADATA_VALUE.match(text) and text:
        raise InvalidRequest(f"label {key!r} has the condition {text[:80]!r}: use up to 255 printable ASCII characters")
