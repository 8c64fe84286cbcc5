"""Requests: what enters in JSON or YAML, by subject, and how it is parsed.

parsing.py     text to dataclasses and models, and what is wrong with it
reports.py     reports of hosts             plans.py      plans
verbs.py       verbs of claims and hosts    filters.py    lists and deletions
declared.py    shared pools, and what the store has as the bodies that declare it

Selections, aggregates, server groups and quotas are read straight into the dataclasses of `redsched.model`.

Requests are checked here for their form only (strict types, no unknown field); names and ranges are checked once, in
`redsched.model`, whose messages say what to do. The JSON schema states both, so that the OpenAPI document is complete.
"""

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """Base class of requests: no unknown fields, no type conversion, no NaN or Infinity."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, frozen=True)
