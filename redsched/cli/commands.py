"""The table of commands: nouns with their verbs, and commands of one word.

Each entry has the help and the location of the function, so that `redsched --help` imports none of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

PACKAGE = "redsched.cli"


@dataclass(frozen=True, slots=True)
class Entry:
    """One command: `function` is `module:name` below redsched.cli, and `help` is the first line of its docstring."""

    function: str
    help: str

    @property
    def module(self) -> str:
        """The full name of the module that has the function."""
        return f"{PACKAGE}.{self.function.partition(':')[0]}"


@dataclass(frozen=True, slots=True)
class Noun:
    """The commands about one kind of object, by verb."""

    help: str
    verbs: Mapping[str, Entry]


def _declared(kind: str, set_function: str, set_help: str) -> dict[str, Entry]:
    return {
        "list": Entry(f"verbs.declared:{kind}.list_all", "List them."),
        "show": Entry(f"verbs.declared:{kind}.show_one", "Show one."),
        "set": Entry(f"verbs.declared:{set_function}", set_help),
        "delete": Entry(f"verbs.declared:{kind}.delete", "Delete one. Refused while it is in use, unless forced."),
    }


NOUNS: Mapping[str, Noun] = {
    "host": Noun(
        "Hosts: their free amounts, and whether they accept claims.",
        {
            "list": Entry("verbs.host_list:list_hosts", "List hosts with their free amounts."),
            "show": Entry(
                "verbs.hosts:show", "Show one host: its slots, pools, traits, labels, metrics and aggregates."
            ),
            "drain": Entry("verbs.hosts:drain", "Stop new claims on this host and empty it."),
            "enable": Entry("verbs.hosts:enable", "Allow new claims on this host again."),
            "disable": Entry("verbs.hosts:disable", "Stop new claims on this host; existing claims stay."),
            "write-off": Entry("verbs.hosts:write_off", "Write this host off, because it will not come back."),
            "remove": Entry(
                "verbs.hosts:remove",
                "Remove this host. Refused while it holds claims or its lease is valid, unless forced.",
            ),
        },
    ),
    "claim": Noun(
        "Claims: amounts that work holds on hosts.",
        {
            "list": Entry("verbs.claims:list_claims", "List claims."),
            "show": Entry(
                "verbs.claims:show", "Show one claim: placements, attempts, last failure, why it is where it is."
            ),
            "release": Entry("verbs.claims:release", "Release claims, by id or by filters."),
            "confirm": Entry(
                "verbs.claim_verbs:confirm", "Confirm that a claim's work runs, for a host without an agent."
            ),
            "renew": Entry(
                "verbs.claim_verbs:renew",
                "Renew the lease of a claim that is not active yet, or of all that match filters.",
            ),
            "fail": Entry(
                "verbs.claim_verbs:fail",
                "Report that a claim's work could not be started. The next host that fits takes it.",
            ),
            "move": Entry(
                "verbs.claim_verbs:move",
                "Move a claim to another place. Its present amounts are held until the work runs there.",
            ),
            "resize": Entry(
                "verbs.claim_verbs:resize",
                "Change a claim's amounts in place. Amounts that are not listed do not change.",
            ),
            "shelve": Entry(
                "verbs.claim_verbs:shelve",
                "Free the amounts of a claim, or of all that match filters, and keep the claims.",
            ),
            "unshelve": Entry("verbs.claim_verbs:unshelve", "Place a shelved claim again, or all that match filters."),
        },
    ),
    "quota": Noun(
        "Quotas: limits on the total usage of a project's claims.",
        {
            "list": Entry("verbs.quotas:list_quotas", "List the quotas of projects with their usage."),
            "show": Entry("verbs.quotas:show", "Show the quota of a project with its usage."),
            "set": Entry(
                "verbs.quotas:set_quota",
                "Limit the total usage of a project's claims. Classes that are not listed have no limit.",
            ),
            "delete": Entry("verbs.quotas:delete", "Delete the quota of a project, which then has no limits."),
        },
    ),
    "aggregate": Noun(
        "Aggregates: named sets of hosts with metadata.",
        _declared("AGGREGATES", "set_aggregate", "Create an aggregate, or change its metadata and hosts."),
    ),
    "server-group": Noun(
        "Server groups: claims that are placed together or apart.",
        _declared(
            "SERVER_GROUPS",
            "set_server_group",
            "Create or change a server group. While it has members, only --max-per-host can change.",
        ),
    ),
    "shared-pool": Noun(
        "Shared pools: amounts that several hosts of a cell share.",
        _declared(
            "SHARED_POOLS",
            "set_shared_pool",
            "Create a shared pool, or change its inventory. Claimed amounts do not change.",
        ),
    ),
    "plan": Noun(
        "Plans: what would happen, without writing anything.",
        {
            "capacity": Entry("verbs.plans:capacity", "Show how many more of a request fit, and what runs out."),
            "drain": Entry("verbs.plans:drain", "Show where the claims of hosts would go in a drain."),
            "without": Entry("verbs.plans:without", "Show where the claims of hosts would go if the hosts died."),
            "rebalance": Entry("verbs.rebalance:rebalance", "Plan moves, and carry them out with --apply."),
            "with": Entry("verbs.plans:with_hosts", "Show what the hosts of a fleet file would change."),
        },
    ),
    "function": Noun(
        "Functions of the store that people call with redis-cli: they only read.",
        {
            "install": Entry(
                "verbs.functions:install",
                "Install the functions for redis-cli on each primary that has an older version or none.",
            ),
            "show": Entry(
                "verbs.functions:show",
                "Show which version of the functions each primary has, and how to call them.",
            ),
        },
    ),
    "context": Noun(
        "Contexts: the fleets that commands know by name.",
        {
            "list": Entry("verbs.contexts:list_contexts", "List the contexts, and which one commands use."),
            "show": Entry("verbs.contexts:show", "Show one context as YAML. A password is left out."),
            "use": Entry(
                "verbs.contexts:use", "Use this context when neither options nor the environment name a fleet."
            ),
            "set": Entry(
                "verbs.contexts:set_context", "Create a context, or replace it. The first one is used at once."
            ),
            "delete": Entry("verbs.contexts:delete", "Delete a context."),
        },
    ),
    "token": Noun(
        "Access tokens: who may call the API, by the token file.",
        {
            "list": Entry(
                "verbs.tokens:list_tokens", "List the access tokens of the token file, without their digests."
            ),
            "new": Entry(
                "verbs.tokens:new", "Create an access token, print it once, and write its digest into the token file."
            ),
            "revoke": Entry(
                "verbs.tokens:revoke",
                "Remove an access token from the token file. Processes that use the file refuse it within seconds.",
            ),
        },
    ),
}

VERBS: Mapping[str, Entry] = {
    "up": Entry("up.command:up", "Run a store, the API and the agent of this machine until Ctrl-C."),
    "api": Entry("verbs.api:api", "Serve the REST API over a store until Ctrl-C."),
    "agent": Entry(
        "verbs.agent:agent", "Run the agent of this machine until Ctrl-C: report the host and run its claims."
    ),
    "select": Entry("verbs.selection:select", "Select hosts and claim the amounts on them."),
    "run": Entry("job.command:run", "Run a command on a host that fits: redsched run VCPU=4 -- train.sh --epochs 3."),
    "logs": Entry("job.logs:logs", "Show the log of a job: redsched logs job-1 --follow."),
    "explain": Entry("verbs.selection:explain", "Explain why hosts fit a request or not. Writes nothing."),
    "status": Entry("verbs.status:status", "Show what runs, what is wrong or stuck, and what to do about it."),
    "top": Entry(
        "top.command:top",
        "Watch the fleet in the terminal: problems, capacity, hosts and the latest events.",
    ),
    "capacity": Entry(
        "verbs.capacity:capacity",
        "Show how much there is, how much is claimed and free, and the most that one claim can take.",
    ),
    "events": Entry("verbs.events:events", "Show the latest events, or those after a given one."),
    "audit": Entry("verbs.audit:audit", "Check the store's sums, limits and leftovers while it is in use."),
    "export": Entry(
        "verbs.archive:export", "Export a cell as JSON lines: declared objects, hosts, claims and their requests."
    ),
    "import": Entry("verbs.archive:import_file", "Import an exported cell."),
    "replay": Entry(
        "verbs.replay:replay", "Replay an exported cell or a trace on a private store, and compare policies."
    ),
    "init": Entry(
        "verbs.store:init", "Declare the cells new, so that no scheduler waits for hosts that never existed."
    ),
    "acl": Entry("verbs.acl:acl", "Print the permissions of a user of the store, as a command or for an ACL file."),
    "upgrade": Entry("verbs.store:upgrade", "Lock out of the cells older releases that cannot run beside this one."),
}

PANELS: Mapping[str, tuple[str, ...]] = {
    "Look": ("status", "top", "host", "claim", "capacity", "events"),
    "Place": ("run", "logs", "select", "explain", "plan"),
    "Declare": ("quota", "aggregate", "server-group", "shared-pool"),
    "Run": ("up", "api", "agent"),
    "Access": ("context", "token", "acl"),
    "Look after the store": ("init", "audit", "export", "import", "replay", "function", "upgrade"),
}
"""The commands under the heads of `redsched --help`, in its order. A command that has no head is not known."""

ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("sinfo", "node", "nodes", "machines", "pestat", "hinfo"), ("host list",)),
    **dict.fromkeys(
        ("squeue", "ps", "job", "jobs", "pod", "pods", "qstat", "bjobs", "queue", "alloc"), ("claim list",)
    ),
    **dict.fromkeys(("sbatch", "qsub", "bsub", "submit"), ("run --detach",)),
    **dict.fromkeys(("salloc", "apply", "create"), ("select",)),
    "srun": ("run",),
    **dict.fromkeys(("scancel", "qdel", "bkill", "cancel", "kill", "stop", "rm"), ("claim release",)),
    **dict.fromkeys(("sacct", "history"), ("events",)),
    **dict.fromkeys(("log", "tail", "attach", "sattach"), ("logs --follow",)),
    **dict.fromkeys(("sshare", "sreport", "sacctmgr"), ("capacity --by project", "quota list")),
    **dict.fromkeys(("kubectl", "nomad", "scontrol", "get", "ls"), ("host list", "claim list")),
    **dict.fromkeys(("describe", "inspect"), ("host show", "claim show")),
    **dict.fromkeys(("cordon", "eligibility"), ("host disable",)),
    **dict.fromkeys(("uncordon", "undrain"), ("host enable",)),
    "fence": ("host write-off",),
    "df": ("capacity",),
    "htop": ("top",),
    "health": ("status",),
    "namespace": ("quota list",),
}
"""Words of Slurm, Kubernetes, Nomad and others that people type as a command, with the commands for them here."""
ELSEWHERE_OF: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "host": {
        "cordon": ("host disable",),
        **dict.fromkeys(("uncordon", "undrain", "resume", "activate"), ("host enable",)),
        **dict.fromkeys(("fence", "evacuate", "lost"), ("host write-off --evacuate",)),
        **dict.fromkeys(("delete", "rm", "purge", "forget"), ("host remove",)),
        **dict.fromkeys(("describe", "inspect", "get"), ("host show",)),
    },
    "claim": {
        **dict.fromkeys(("delete", "rm", "remove", "cancel", "kill", "stop", "end"), ("claim release",)),
        **dict.fromkeys(("migrate", "evacuate"), ("claim move",)),
        "suspend": ("claim shelve",),
        "resume": ("claim unshelve",),
        **dict.fromkeys(("describe", "inspect", "get"), ("claim show",)),
        **dict.fromkeys(("create", "new", "add"), ("select",)),
    },
}
"""Verbs that people type behind a noun, which are nearest to the wrong ones here or to none."""


def plural(noun: str) -> str:
    """Return the plural of a noun, which may be typed instead of it."""
    return f"{noun}s"


def entries() -> dict[str, Entry]:
    """Return all commands by their full names, such as `host list`."""
    of_nouns = {f"{name} {verb}": entry for name, noun in NOUNS.items() for verb, entry in noun.verbs.items()}
    return of_nouns | dict(VERBS)
