"""Responses about claims."""

from typing import Annotated, Literal

from pydantic import Field

from redsched.schema.answer import Answer


class EndingAnswer(Answer):
    """A claim that ends when its host reports that the work is gone."""

    claim_id: str
    state: Literal["ending"]
    watch: Annotated[str, Field(description="Path of the claim; same as `Location`.")]
