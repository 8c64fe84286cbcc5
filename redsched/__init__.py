"""redsched: a shared-state scheduler on Redis. Exports the library's public names; docs/library.md shows their use."""

from typing import TYPE_CHECKING

from redsched.exports import exports

if TYPE_CHECKING:
    from redsched.cache.columns import Columns as Columns
    from redsched.decide.rules import Rule as Rule
    from redsched.decide.scoring import Weigher as Weigher
    from redsched.errors import (
        ClaimIdReused as ClaimIdReused,
        ClaimState as ClaimState,
        InvalidRequest as InvalidRequest,
        NotConfirmed as NotConfirmed,
        NotFound as NotFound,
        NoValidHost as NoValidHost,
        OtherAgent as OtherAgent,
        OutcomeUnknown as OutcomeUnknown,
        PluginError as PluginError,
        RedschedError as RedschedError,
        Settling as Settling,
        StaleToken as StaleToken,
        StoreUnavailable as StoreUnavailable,
        Unavailable as Unavailable,
    )
    from redsched.model import (
        AgentStamp as AgentStamp,
        Aggregate as Aggregate,
        Claim as Claim,
        ClaimStatus as ClaimStatus,
        CpuPolicy as CpuPolicy,
        GangMember as GangMember,
        GangOnExit as GangOnExit,
        Group as Group,
        GroupPolicy as GroupPolicy,
        Hints as Hints,
        HostReport as HostReport,
        HostStatus as HostStatus,
        Inventory as Inventory,
        ListedState as ListedState,
        ListedStatus as ListedStatus,
        Numa as Numa,
        NumaAffinity as NumaAffinity,
        NumaCell as NumaCell,
        OnExit as OnExit,
        PciDevices as PciDevices,
        Pool as Pool,
        Relation as Relation,
        RelationType as RelationType,
        Request as Request,
        ServerGroup as ServerGroup,
        SharedPool as SharedPool,
        Spread as Spread,
        Token as Token,
    )
    from redsched.model.filters import ClaimFilter as ClaimFilter
    from redsched.model.records.bulk import (
        BulkOutcome as BulkOutcome,
        BulkPage as BulkPage,
        BulkResult as BulkResult,
    )
    from redsched.scheduler.scheduler import Scheduler as Scheduler
    from redsched.settings import Settings as Settings
else:
    # Imported on first access, so that `import redsched.decide` loads no Redis client.
    __getattr__, __dir__ = exports(__name__)
