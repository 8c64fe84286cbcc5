"""The keys of aggregate metadata that affect decisions, and the values they allow.

Any other key is free for the operator's use. docs/constraints.md says what each key demands.
"""

from redsched.errors import InvalidRequest
from redsched.model.validation import check_metadata, check_name, check_trait, parse_int

PROJECTS_KEY = "filter_tenant_id"
"""May have any suffix: Nova's way to list more projects than fit in one value."""
TRAIT_KEY = "trait:"
LABEL_KEY = "label:"
REQUIRED, FORBIDDEN = "required", "forbidden"
"""The values that `trait:` and `label:` keys allow."""
PROPERTY_KEY = "property:"
PROPERTY_REQUIRED_KEY = "property-required:"
PROPERTY_FORBIDDEN_KEY = "property-forbidden:"
PROPERTY_CONFINED_KEY = "property-confined:"
INSTANCE_TYPE_KEY = "instance_type"
"""Nova's name for `property-required:instance_type`."""
CLAIMS_KEYS = ("max_claims_per_host", "max_instances_per_host")
STARTING_KEYS = ("max_starting_per_host", "max_io_ops_per_host")
"""The second key is Nova's name for the first."""


def check_aggregate_metadata(key: str, value: str) -> None:
    """Raise InvalidRequest if an aggregate may not have this: keys that affect decisions need a valid value."""
    check_metadata(key, value)
    if key.startswith((TRAIT_KEY, LABEL_KEY)):
        _check_word(key, value)
    if key in (*CLAIMS_KEYS, *STARTING_KEYS) and parse_int(value, -1) < 0:
        raise InvalidRequest(f"metadata {key!r} must be a whole number (0: no limit), not {value!r}")


def _check_word(key: str, value: str) -> None:
    if key.startswith(TRAIT_KEY):
        check_trait(key.removeprefix(TRAIT_KEY))
    else:
        check_name("label", key.removeprefix(LABEL_KEY))
    if value not in (REQUIRED, FORBIDDEN):
        raise InvalidRequest(f"metadata {key!r} must be {REQUIRED} or {FORBIDDEN}, not {value!r}")
