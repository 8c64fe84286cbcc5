"""Bodies of plans: what would happen, and what of it is asked."""

from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field

from redsched.errors import InvalidRequest
from redsched.model import HostReport, Request
from redsched.model.records.plans import Aim, planned
from redsched.model.types import GivenHost, GivenName, GivenToken, Need
from redsched.model.validation import check_topology
from redsched.pacing import paced
from redsched.requests import Strict

MAX_HOSTS = 100
MAX_MOVES = 1000
"""The most moves of one plan."""
MAX_APPLIED = 100
"""The most moves that one call carries out."""
MAX_MOVE_S = 600
MAX_NEW_HOSTS = 10_000
"""The most hosts that one plan may add."""
SMALL: dict[str, Any] = {"resources": {"VCPU": 2, "MEMORY_MB": 4096}}


def _topology_or_none(value: str) -> str:
    return check_topology(value) if value else value


PlannedRequest = Annotated[Request, AfterValidator(planned)]


class CapacityBody(Strict):
    """The request to count, and whether to look at failures too."""

    request: Annotated[PlannedRequest, Field(description="The body of a selection, without claim ids.")]
    n_plus_one: Annotated[
        str,
        AfterValidator(_topology_or_none),
        Field(description="Also tell whether all claims fit without any one host, zone or value of `label:<key>`."),
    ] = ""

    model_config = ConfigDict(json_schema_extra={"examples": [{"request": SMALL, "n_plus_one": "zone"}]})


class LeavingBody(Strict):
    """The hosts that leave."""

    hosts: Annotated[tuple[GivenHost, ...], Field(min_length=1, max_length=MAX_HOSTS, description="Hosts by name.")]

    model_config = ConfigDict(json_schema_extra={"examples": [{"hosts": ["h17"]}]})


@dataclass(frozen=True, slots=True, kw_only=True)
class NewHost(HostReport):
    """A host to be added: its report, with its name, or with {n} in the name as often as `repeat` says."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9{}._-]{1,64}$", description="Its name; {n}: its number.")]
    repeat: Annotated[Need, Field(description="The number of such hosts. More than 1 needs {n} in the name.")] = 1

    def __post_init__(self) -> None:
        if self.repeat > MAX_NEW_HOSTS:
            raise InvalidRequest(f"repeat is at most {MAX_NEW_HOSTS}, not {self.repeat}")
        if (self.repeat > 1) != ("{n}" in self.name):
            raise InvalidRequest(
                "a name with {n} needs `repeat` above 1, and `repeat` needs {n} in the name, such as rack1-{n}"
            )
        self._report(1)

    async def reports(self) -> list[HostReport]:
        """Return the report of each host. Gives others a turn meanwhile."""
        return [self._report(number) async for number in paced(range(1, self.repeat + 1))]

    def _report(self, number: int) -> HostReport:
        """Return the report of one host, which checks itself. Raises InvalidRequest."""
        given = {one.name: getattr(self, one.name) for one in fields(HostReport) if one.name != "name"}
        return HostReport(self.name.replace("{n}", str(number)), **given)


class AddingBody(Strict):
    """The hosts to be added, and the request of which to count how many fit then."""

    hosts: Annotated[tuple[NewHost, ...], Field(min_length=1, max_length=MAX_NEW_HOSTS, description="The new hosts.")]
    request: Annotated[
        PlannedRequest | None, Field(description="The body of a selection, to count before and after.")
    ] = None

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "hosts": [
                        {
                            "name": "new-{n}",
                            "repeat": 4,
                            "zone": "az1",
                            "inventories": {"VCPU": {"total": 64}, "MEMORY_MB": {"total": 262_144}},
                        }
                    ],
                    "request": SMALL,
                }
            ]
        }
    )

    async def reports(self) -> list[HostReport]:
        """Return the report of each new host, giving others a turn meanwhile.

        Raises InvalidRequest if there are too many.
        """
        if sum(one.repeat for one in self.hosts) > MAX_NEW_HOSTS:
            raise InvalidRequest(f"a plan adds at most {MAX_NEW_HOSTS} hosts: plan for some of them")
        return [report for one in self.hosts for report in await one.reports()]


class RebalanceBody(Strict):
    """What claims are moved for, and how many."""

    model_config = ConfigDict(
        strict=False,
        populate_by_name=True,
        json_schema_extra={"examples": [{"for": "request", "max_moves": 10, "request": SMALL}]},
    )

    aim: Annotated[Aim, Field(alias="for", description="request, waiting, drain or policy.")]
    max_moves: Annotated[int, Field(ge=1, le=MAX_MOVES, strict=True, description="The most moves.")] = 10
    request: Annotated[
        PlannedRequest | None, Field(description="For `request`: the body of a selection; its count is what to reach.")
    ] = None
    hosts: Annotated[
        tuple[GivenHost, ...], Field(max_length=MAX_HOSTS, description="For `drain`: the hosts to be emptied.")
    ] = ()
    policy: Annotated[
        GivenName | Literal[""], Field(description="For `policy`: its name. Empty: that of the settings.")
    ] = ""


class MoveStep(Strict):
    """A move of a plan. What is only shown may be left out."""

    claim_id: GivenName
    token: GivenToken
    source: GivenHost
    target: GivenHost
    project: Annotated[str, Field(max_length=64)] = ""
    gain: Annotated[str, Field(max_length=1000)] = ""


class ApplyBody(Strict):
    """The moves of a plan, in its order, and how long each may take."""

    moves: Annotated[tuple[MoveStep, ...], Field(min_length=1, max_length=MAX_APPLIED)]
    timeout_s: Annotated[
        int, Field(ge=1, le=MAX_MOVE_S, description="Time within which each claim must run on its target.")
    ] = 60

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "moves": [
                        {
                            "claim_id": "6f1c",
                            "token": "1790000000000-9f3a12cd.4711",
                            "source": "h17",
                            "target": "h3",
                        }
                    ]
                }
            ]
        }
    )
