"""An example of each response, for the OpenAPI document: a small fleet in which project web has a claim on h17."""

from typing import Any

TOKEN = "1790000000000-9f3a12cd.4711"
AT_MS = 1_790_000_000_000
AMOUNTS = {"VCPU": 2, "MEMORY_MB": 4096}

SELECTION: dict[str, Any] = {
    "claim_id": "6f1c",
    "state": "claimed",
    "cell": "c1",
    "host": "h17",
    "slots": AMOUNTS,
    "token": TOKEN,
    "expires_at_ms": AT_MS + 120_000,
    "alternates": [{"host": "h3"}],
}
PLACEMENT: dict[str, Any] = {
    "placed": TOKEN,
    "token": TOKEN,
    "root": TOKEN,
    "host": "h17",
    "state": "active",
    "slots": AMOUNTS,
    "end_reason": None,
    "expires_at_ms": None,
    "move_deadline_ms": None,
    "from_host": "h3",
    "from_why": "written-off",
    "placed_at_ms": AT_MS,
}
CLAIM: dict[str, Any] = {
    "claim_id": "6f1c",
    "actor": "web-ci",
    "request_id": "5f3a9c1e7b2d4680",
    "cell": "c1",
    "host": "h17",
    "state": "active",
    "token": TOKEN,
    "host_condition": "up",
    "host_down_since_ms": None,
    "slots": AMOUNTS,
    "project": "web",
    "consumer": "shop",
    "owner": "alice",
    "server_group": "web",
    "end_reason": None,
    "claimed_at_ms": AT_MS,
    "expires_at_ms": None,
    "closed": "",
    "attempts": 1,
    "max_attempts": 3,
    "max_runtime_s": 0,
    "runtime_deadline_ms": None,
    "restarts": 0,
    "next_attempt_at_ms": None,
    "alternates": [{"host": "h3"}],
    "placements": [PLACEMENT],
    "resizing_to": {},
    "digest": "",
    "counted": {"zone": "az1"},
    "on_exit": "release",
    "gang_on_exit": "keep",
    "log": f"h17:/var/log/redsched/jobs/{TOKEN}/log",
    "payload": {"argv": ["train.sh", "--epochs", "3"]},
    "work_ended_at_ms": None,
    "reason": None,
    "decision": {
        "token": TOKEN,
        "host": "h17",
        "at_ms": 1751790000000,
        "hosts": 3,
        "fits": 2,
        "reasons": [{"reason": "VCPU", "hosts": 1}],
        "candidate": 1,
        "ranked": [{"host": "h17", "score": 0.75, "weighers": {"spread": 0.75}}],
        "policy": "spread",
        "release": "0.1.0",
    },
}
MISS: dict[str, Any] = {
    "host": "h3",
    "needs": AMOUNTS,
    "free": {"VCPU": 1, "MEMORY_MB": 8192},
    "changes": ["1 VCPU less"],
}
SLOT: dict[str, Any] = {
    "total": 64,
    "reserved": 2,
    "allocation_ratio": 4.0,
    "min_unit": 1,
    "max_unit": 64,
    "step_size": 1,
    "capacity": 248,
    "claimed": 2,
    "external": 1,
    "free": 245,
}
SEATS: dict[str, Any] = {
    "total": 100,
    "reserved": 0,
    "allocation_ratio": 1.0,
    "min_unit": 1,
    "max_unit": 100,
    "step_size": 1,
    "capacity": 100,
    "claimed": 3,
    "external": 0,
    "free": 97,
}
HOST: dict[str, Any] = {
    "name": "h17",
    "cell": "c1",
    "zone": "az1",
    "status": "enabled",
    "alive": True,
    "attested": True,
    "condition": "up",
    "down_since_ms": None,
    "written_off": False,
    "version": 42,
    "lease_s": 30,
    "slots": {"VCPU": SLOT},
    "traits": ["HW_CPU_X86_AVX2"],
    "labels": {"rack": "r4"},
    "metrics": {"cpu.percent": 12.5},
    "claims": 1,
    "pools": {"numa0": {"parent": "", "traits": ["HW_NUMA_ROOT"]}},
    "aggregates": ["licensed"],
    "draining": "",
    "drain_deadline_ms": None,
    "drain_then": "",
    "status_reason": "",
    "unmovable": [],
    "failed_moves": [],
    "reservation": "",
    "reservation_until_ms": None,
    "kept": {},
}
DRAIN: dict[str, Any] = {
    "host": "h17",
    "state": "moving",
    "status": "draining",
    "draining": "move",
    "claims": 1,
    "drain_deadline_ms": AT_MS + 600_000,
    "drain_then": "stop",
    "unmovable": [{"claim_id": "6f1c", "reason": "none of 2 hosts can take 2 VCPU: 2 short of VCPU"}],
    "failed_moves": [],
}
AGGREGATE: dict[str, Any] = {"name": "licensed", "metadata": {"ssd": "true"}, "hosts": ["h17"]}
SERVER_GROUP: dict[str, Any] = {
    "name": "web",
    "policy": "anti-affinity",
    "by": "host",
    "max_per_host": 1,
    "count_by": ["label:rack"],
    "members": 1,
    "counts": {"host": {"h17": 1}, "zone": {"az1": 1}, "label:rack": {"r4": 1}},
}
SHARED_POOL: dict[str, Any] = {
    "name": "licences",
    "cell": "c1",
    "slots": {"CUSTOM_SEAT": SEATS},
    "traits": ["CUSTOM_LICENCE"],
    "aggregates": ["licensed"],
}
QUOTA: dict[str, Any] = {
    "project": "web",
    "limits": {"VCPU": 100, "claims": 50},
    "used": {"MEMORY_MB": 4096, "VCPU": 2, "claims": 1},
}
EVENT: dict[str, Any] = {
    "id": f"c1:{AT_MS}-0",
    "cell": "c1",
    "at_ms": AT_MS,
    "seq": 4711,
    "kind": "claimed",
    "claim": "6f1c",
    "host": "h17",
    "project": "web",
    "slots": AMOUNTS,
}
BULK: dict[str, Any] = {
    "claim_id": "6f1c",
    "project": "web",
    "host": "h17",
    "state": "active",
    "outcome": "ending",
    "problem": None,
}

EPOCH = "1790000000000-9f3a12cd"
INBOX_ENTRY: dict[str, Any] = {
    "actor": "web-ci",
    "request_id": "5f3a9c1e7b2d4680",
    "entry_id": f"{AT_MS}-0",
    "number": 7,
    "epoch": EPOCH,
    "op": "claim",
    "claim_id": "6f1c",
    "token": TOKEN,
}
OUTCOME: dict[str, Any] = {"outcome": "OK", "epoch": EPOCH, "now_ms": AT_MS, "details": []}

CLASSES = [{"resource_class": "VCPU", "capacity": 496, "free": 490, "after": 488}]
UNPLACED: dict[str, Any] = {
    "claim_id": "6f1d",
    "project": "web",
    "host": "h17",
    "reason": "none of 2 hosts can take 2 VCPU: 2 short of VCPU",
}
MOVE: dict[str, Any] = {"claim_id": "6f1c", "source": "h17", "target": "h3"}
LEAVING: dict[str, Any] = {
    "hosts": ["h17"],
    "moves": [{"claim_id": "6f1c", "project": "web", "source": "h17", "target": "h3"}],
    "unplaced": [UNPLACED],
    "classes": CLASSES,
}

STATUS = {
    "healthy": False,
    "problems": [
        {
            "kind": "host-down",
            "cell": "c1",
            "detail": "host h17 has been down for 12 min, with 1 claim: no report within the lease",
            "advice": "start the agent again; if the machine will not come back, write the host off",
            "commands": ["redsched host write-off h17 --evacuate"],
            "about": ["h17"],
            "count": 1,
        }
    ],
    "cells": [
        {
            "name": "c1",
            "epoch": "1790000000000-9f3a12cd",
            "epoch_began_ms": 1790000000000,
            "now_ms": 1790000720000,
            "settled": True,
            "settle_at_ms": None,
            "unattested": 0,
            "hosts": {
                "total": 2,
                "up": 1,
                "down": 1,
                "written_off": 0,
                "unattested": 0,
                "disabled": 0,
                "draining": 1,
                "with_agent": 2,
                "slowest": "h18",
                "slowest_ms": 4000,
                "agent_versions": {"1.2.0": 2},
            },
            "claims": {"active": 1, "ending": 0, "pending": 0, "shelved": 0, "starting": 0},
            "at_least": [],
            "draining": [],
            "closed": [{"name": "h18", "status": "draining", "claims": 0, "moves": False, "reason": "new GPUs"}],
            "schedulers": [
                {"id": "4f2a", "version": "1.2.0", "node": "n1", "pid": 4711, "lag_ms": 10, "seen_ms": 2000}
            ],
            "audit": None,
        }
    ],
    "servers": [
        {
            "name": "",
            "version": "valkey 8.1.4",
            "role": "primary",
            "replicas": 1,
            "memory_bytes": 4194304,
            "max_memory_bytes": 0,
            "memory_policy": "noeviction",
            "append_only": True,
            "saved": True,
            "primary": "",
            "is_linked": True,
        }
    ],
    "durability": "replicas=1",
}
ANSWERS: dict[str, dict[str, Any]] = {
    "AboutAnswer": {
        "name": "redsched",
        "version": "0.1.0",
        "summary": "A shared-state scheduler on Redis",
        "openapi": "/openapi.json",
        "docs": "/docs",
        "role": "reader",
    },
    "AcceptedAnswer": {"watch": "/v1/hosts/h17/drain"},
    "AcceptedClaim": {**CLAIM, "resizing_to": {"VCPU": 4, "MEMORY_MB": 4096}, "watch": "/v1/claims/6f1c"},
    "AgentAnswer": {"cells": ["c1"]},
    "AddingPlan": {
        "hosts": 4,
        "classes": CLASSES,
        "waiting": 1,
        "served": 1,
        "room": {"before": 245, "after": 373, "at_least": False},
    },
    "AggregateView": AGGREGATE,
    "AggregatePage": {"aggregates": [AGGREGATE], "next": None},
    "Applied": {"moves": [{**MOVE, "problem": ""}]},
    "AttestedAnswer": {"outcome": "OK", "epoch": EPOCH, "now_ms": AT_MS, "drop": []},
    "BulkPage": {
        "results": [BULK],
        "next": "1~c1:1795251499598-651f2cc8:203~~h17:6f1c",
        "watch": "/v1/claims?project=web&state=ending",
    },
    "Capacity": {
        "by": "zone",
        "capacity": [
            {
                "name": "az1",
                "classes": {
                    "VCPU": {
                        "total": 128,
                        "claimed": 40,
                        "external": 2,
                        "free": 54,
                        "away": 32,
                        "kept": 0,
                        "largest": 30,
                        "largest_at": "h17",
                    }
                },
            }
        ],
    },
    "CapacityPlan": {
        "places": 245,
        "at_least": False,
        "zones": {"az1": 122, "az2": 123},
        "reasons": [{"reason": "VCPU", "hosts": 2}],
        "classes": CLASSES,
        "quota": 49,
        "redundancy": {
            "by": "zone",
            "checked": 2,
            "failed": 1,
            "failing": [{"domain": "az1", "hosts": 1, "claims": 1, "unplaced": 1, "examples": [UNPLACED]}],
            "unchecked": 0,
            "unlabelled": 0,
        },
    },
    "Claim": CLAIM,
    "ClaimIdsAnswer": {"ids": {"h17": ["6f1c"]}},
    "ClaimPage": {"claims": [CLAIM], "next": None},
    "DevicesAnswer": {"devices": {"gpu0": "GPU-5fd4f087-86f3-7a43-b711-4771313afc50"}},
    "DrainProgress": DRAIN,
    "EndingAnswer": {"claim_id": "6f1c", "state": "ending", "watch": "/v1/claims/6f1c"},
    "EventsAnswer": {"events": [EVENT], "next": None},
    "Explanation": {
        "hosts": 2,
        "fits": 1,
        "unsearched": 0,
        "cut_short": False,
        "ranked": [{"host": "h17", "score": 0.75, "weighers": {"spread": 0.75, "failures": 0.0}}],
        "spared": {"CUSTOM_GPU_MILLI": 1},
        "unknown_zones": [],
        "unknown_hosts": [],
        "unknown_classes": [],
        "classes": [],
        "zones": [],
        "largest": {},
        "closed": [{"host": "h5", "reason": "draining"}],
        "reasons": [{"reason": "VCPU", "hosts": 1}],
        "nearest": [MISS],
        "exceeded": [],
        "checks": [
            {"host": "h3", "reason": "VCPU", "checks": [{"name": "VCPU", "ok": False, "detail": "needs 2, free 1"}]}
        ],
    },
    "HeldClaimsAnswer": {"claims": {"6f1c": {"host": "h17", "state": "active", "token": TOKEN, "amount.VCPU": "2"}}},
    "HealthAnswer": {"status": "ok"},
    "HeartbeatAnswer": {"outcome": "OK"},
    "HeartbeatsAnswer": {"hosts": {"h17": OUTCOME}},
    "HostView": HOST,
    "HostPage": {"hosts": [HOST], "next": None},
    "InboxAnswer": {"entries": [INBOX_ENTRY]},
    "InboxesAnswer": {"epoch": EPOCH, "reset": False, "entries": {"h17": [INBOX_ENTRY]}},
    "LeavingPlan": LEAVING,
    "OutcomeAnswer": {**OUTCOME, "details": ["starting"]},
    "QuotaView": QUOTA,
    "QuotaPage": {"quotas": [QUOTA], "next": None},
    "ReadyAnswer": {"status": "ready", "detail": "caught up", "hosts": 2, "workers": 1},
    "RebalancePlan": {
        "aim": "request",
        "moves": [{**MOVE, "project": "web", "token": TOKEN, "gain": "h17 takes one more"}],
        "before": 0,
        "after": 1,
        "goal": 1,
        "is_cut": False,
    },
    "ReportAnswer": {
        "outcome": "OK",
        "epoch": "1790000000000-9f3a12cd",
        "attested": True,
        "version": 42,
        "drop": [],
        "warnings": ["MEMORY_MB: reserved 65536 is above total 32768"],
    },
    "ReportedAnswer": {"outcome": "OK", "epoch": EPOCH, "now_ms": AT_MS, "attested": True, "version": 42},
    "Selections": {"selections": [SELECTION]},
    "ServerGroupView": SERVER_GROUP,
    "ServerGroupPage": {"server_groups": [SERVER_GROUP], "next": None},
    "SharedPoolView": SHARED_POOL,
    "SharedPoolPage": {"shared_pools": [SHARED_POOL], "next": None},
    "TextNamesAnswer": {"missing": ["alternates:6f1c"]},
    "TextsAnswer": {"texts": {"alternates:6f1c": "h3 h4"}},
    "StatusReport": STATUS,
    "Usage": {"usage": [{"zone": "az1", "project": "web", "used": {"VCPU": 2, "claims": 1}}]},
}
"""Examples by the name of the response model. `tests/api/http/test_openapi.py` validates each against its schema."""
