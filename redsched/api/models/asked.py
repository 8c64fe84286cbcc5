"""What comes in: bodies and queries, each with the way into the words of `redsched.model`."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from redsched.api.models.words import (
    Amount,
    GivenClass,
    GivenEpoch,
    GivenLeaseS,
    GivenName,
    GivenNeed,
    GivenToken,
    LabelValue,
    LeaseS,
    Name,
    Need,
    ResourceClass,
    Strict,
    Trait,
)
from redsched.model import (
    MAX_ALTERNATES,
    MAX_COUNT,
    MAX_RATIO,
    AgentStamp,
    ClaimStatus,
    HostReport,
    HostStatus,
    Inventory,
    Request,
)


def _as_list(schema: dict[str, Any]) -> None:
    """A name given twice in a set is taken once, not refused: so must the schema say."""
    del schema["uniqueItems"]


def _as_filled_list(schema: dict[str, Any]) -> None:
    """The same, and empty is refused (by `redsched.model`)."""
    _as_list(schema)
    schema["minItems"] = 1


Traits = Annotated[frozenset[Trait], Field(max_length=1000, json_schema_extra=_as_list)]
SomeTraits = Annotated[frozenset[Trait], Field(json_schema_extra=_as_filled_list)]
Names = Annotated[frozenset[Name], Field(max_length=10_000, json_schema_extra=_as_list)]
Ratio = Annotated[float, WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": MAX_RATIO})]
Multiplier = Annotated[float, WithJsonSchema({"type": "number", "minimum": -1e6, "maximum": 1e6})]


def _range(low: int, high: int) -> WithJsonSchema:
    return WithJsonSchema({"type": "integer", "minimum": low, "maximum": high})


class SelectionRequest(Strict):
    """What is asked for: amounts of resource classes, and where they may come from."""

    resources: Annotated[dict[ResourceClass, Need], Field(description="Amounts by resource class.")]
    required: Annotated[Traits, Field(description="Traits the host must have.")] = frozenset()
    forbidden: Annotated[Traits, Field(description="Traits the host must not have.")] = frozenset()
    any_of: Annotated[
        tuple[SomeTraits, ...],
        Field(max_length=100, description="Of each list, the host must have one trait."),
    ] = ()
    zone: Annotated[Name | Names, Field(description="One zone, or a list of which any will do.")] = frozenset()
    hosts: Annotated[Names, Field(description="Only these hosts. Empty: any.")] = frozenset()
    exclude_hosts: Annotated[Names, Field(description="Not these hosts.")] = frozenset()
    labels: Annotated[dict[Name, LabelValue], Field(description="Labels the host must have.")] = Field(
        default_factory=dict
    )
    policy: Annotated[Name | Literal[""], Field(description="A weighing policy: spread or pack.")] = ""
    weights: Annotated[dict[str, Multiplier], Field(description="Multipliers by weigher.")] = Field(
        default_factory=dict
    )
    count: Annotated[int, _range(1, MAX_COUNT), Field(description="Places, each of `resources`.")] = 1
    mode: Annotated[Literal["all"], Field(description="All places or none.")] = "all"
    alternates: Annotated[int, _range(0, MAX_ALTERNATES), Field(description="Further hosts that fit, unclaimed.")] = 0
    project: Annotated[Name | Literal[""], Field(description="Whose it is.")] = ""
    consumer: Annotated[Name | Literal[""], Field(description="What it is for.")] = ""
    claim_ids: Annotated[
        tuple[Name, ...], Field(max_length=MAX_COUNT, description="One id for each place, in order. Absent: made here.")
    ] = ()
    lease_s: Annotated[LeaseS, Field(description="Seconds in which a host has to take the claim up.")] = 120
    claim: Annotated[bool, Field(description="false: a dry run, which writes nothing.")] = True

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"resources": {"VCPU": 2, "MEMORY_MB": 4096}, "alternates": 2}]}
    )

    def request(self) -> Request:
        """The request in the scheduler's words. Raises InvalidRequest."""
        given: dict[str, Any] = {name: getattr(self, name) for name in self.model_fields_set if name not in _RENAMED}
        if "zone" in self.model_fields_set:
            given["zones"] = frozenset((self.zone,)) if isinstance(self.zone, str) else self.zone
        return Request(**given)


_RENAMED = frozenset(("zone", "mode"))


class InventoryBody(Strict):
    """What a slot has. capacity = floor((total - reserved) * allocation_ratio)."""

    total: Amount
    reserved: Amount = 0
    allocation_ratio: Ratio = 1.0
    min_unit: Need = 1
    max_unit: Need | None = None
    step_size: Need = 1

    def inventory(self) -> Inventory:
        """The inventory in the words of the model. Raises InvalidRequest."""
        return Inventory(**{name: getattr(self, name) for name in self.model_fields_set})


class AgentBody(Strict):
    """Who sends a report, and its place in the order."""

    journal: Name
    nonce: Name
    number: Need

    def stamp(self) -> AgentStamp:
        """The stamp in the words of the model. Raises InvalidRequest."""
        return AgentStamp(self.journal, self.nonce, self.number)


class HeldClaimBody(Strict):
    """A claim that a host holds, from its journal."""

    id: GivenName
    token: GivenToken
    state: Literal["claimed", "starting", "active", "ending"] = "active"
    slots: Annotated[dict[GivenClass, GivenNeed], Field(description="Amounts by slot.")]
    project: GivenName | Literal[""] = ""
    consumer: GivenName | Literal[""] = ""
    digest: Annotated[str, Field(pattern="^[0-9a-f]{0,64}$")] = ""


class EndedClaimBody(Strict):
    """A claim whose work has ended on the host."""

    id: GivenName
    token: GivenToken


class ReportBody(Strict):
    """A host's word about itself. A PUT replaces all of it but the claims."""

    inventories: Annotated[dict[ResourceClass, InventoryBody], Field(description="What the host has, by class.")]
    cell: Name = "c1"
    zone: Name = "default"
    labels: dict[Name, LabelValue] = Field(default_factory=dict)
    traits: Traits = frozenset()
    metrics: dict[Name, float] = Field(default_factory=dict)
    external: Annotated[dict[ResourceClass, Amount], Field(description="Usage that no claim explains.")] = Field(
        default_factory=dict
    )
    lease_s: LeaseS = 30
    agent: AgentBody | None = None
    epoch: Annotated[GivenEpoch, Field(description="The epoch that this report attests to.")] = ""
    claims: Annotated[tuple[HeldClaimBody, ...], Field(description="What runs here; matters when attesting.")] = ()
    ended: Annotated[tuple[EndedClaimBody, ...], Field(description="Claims whose work has ended here.")] = ()

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "zone": "az1",
                    "labels": {"rack": "r4"},
                    "traits": ["HW_CPU_X86_AVX2"],
                    "inventories": {"VCPU": {"total": 64, "allocation_ratio": 4.0}, "MEMORY_MB": {"total": 262144}},
                    "external": {"VCPU": 1},
                }
            ]
        }
    )

    def report(self, host: str) -> HostReport:
        """The report of `host` in the words of the model. Raises InvalidRequest."""
        given = {name: getattr(self, name) for name in self.model_fields_set - _NOT_OF_THE_HOST}
        inventories = {slot: one.inventory() for slot, one in self.inventories.items()}
        return HostReport(host, inventories, **given)


_NOT_OF_THE_HOST = frozenset(("inventories", "agent", "epoch", "claims", "ended"))


class ReportPatch(BaseModel):
    """A merge patch of a report: the members to change, null for those to take out."""

    model_config = ConfigDict(extra="allow")


class HeartbeatBody(Strict):
    """A host's sign of life."""

    lease_s: GivenLeaseS = 30
    agent: AgentBody | None = None

    model_config = ConfigDict(json_schema_extra={"examples": [{"lease_s": 30}]})


class TokenBody(Strict):
    """The token of the claim's last placing, as its selection gave it."""

    token: GivenToken


class RenewBody(TokenBody):
    """The token, and the lease asked for."""

    lease_s: GivenLeaseS = 120


class _Page(Strict):
    # Queries are text: "100" must become 100, so these two are not strict.
    model_config = ConfigDict(strict=False, extra="forbid")

    limit: Annotated[int, Field(ge=1, le=1000, description="How many at most.")] = 100
    after: Annotated[str, Field(pattern=r"^[!-~]{0,200}$", description="`next` of the page before.")] = ""


class ClaimsQuery(_Page):
    """Filters of a list of claims."""

    host: GivenName | None = None
    project: GivenName | None = None
    consumer: GivenName | None = None
    zone: GivenName | None = None
    state: ClaimStatus | None = None


class HostsQuery(_Page):
    """Filters of a list of hosts."""

    zone: GivenName | None = None
    status: HostStatus | None = None


class ReleaseQuery(Strict):
    """How a claim is released."""

    model_config = ConfigDict(strict=False, extra="forbid")

    force: Annotated[bool, Field(description="Free at once, although its host may still run it.")] = False
    token: Annotated[GivenToken | Literal[""], Field(description="Release only the placing with this token.")] = ""


class ForgetQuery(Strict):
    """How a host is removed."""

    model_config = ConfigDict(strict=False, extra="forbid")

    force: Annotated[bool, Field(description="Although it holds claims, which end with it.")] = False


class ExplainQuery(Strict):
    """What to explain beside the counts."""

    host: Annotated[GivenName | None, Field(description="Show every check for this host.")] = None


class InboxQuery(Strict):
    """Where to read an inbox from."""

    after: Annotated[str, Field(pattern=r"^([0-9]{1,19}(-[0-9]{1,19})?)?$", description="The last entry seen.")] = ""
