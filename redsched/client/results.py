"""Results whose fields are known better than those of the API's responses, which also describe dry runs."""

from redsched.model import ClaimStatus
from redsched.schema.answer import Answer
from redsched.schema.responses import SelectionAnswer


class ClaimedPlace(SelectionAnswer):
    """A place that was claimed: its host, its claim and the claim's token."""

    claim_id: str
    state: ClaimStatus
    token: str


class ClaimedPlaces(Answer):
    """All places of a request, in the order of `claim_ids`."""

    selections: list[ClaimedPlace]
