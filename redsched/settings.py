"""The settings of redsched: one class, one prefix (REDSCHED_), each documented in docs/settings.md.

Settings of a whole cell, which must be the same for all processes (how long tombstones are kept, the clock jump that
starts an epoch), are fields of the cell's `meta` hash instead: see docs/keys.md.
"""

import os
import re
from collections.abc import Iterable
from ipaddress import ip_network
from typing import Annotated, Any, Literal, Self, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from redsched.errors import InvalidRequest
from redsched.model import MAX_RATIO
from redsched.model.unique_keys import DuplicateKey, loads
from redsched.model.units import plain_number
from redsched.model.validation import check_class, check_name
from redsched.model.workload import GPU_SHARES

PREFIX = "REDSCHED_"
MAX_CELL_NAME = 32
Seconds = Annotated[float, Field(gt=0)]
_MIRRORS_ALL = f"a scheduler has all cells of {PREFIX}CELLS in memory: unset this, and name fewer cells to need less"
REMOVED = {"mirror_cells": _MIRRORS_ALL, "loaded_cells": _MIRRORS_ALL}
"""Settings of earlier versions that have no effect now, each with what holds instead."""
Factor = Annotated[float, Field(allow_inf_nan=False)]
GpuShare = Annotated[int, Field(ge=1, le=1000)]


class Settings(BaseModel):
    """Settings: arguments, else read from the environment: `REDSCHED_` and the field's name in capitals, in any case.

    Times are in seconds. Raises pydantic.ValidationError, and InvalidRequest for a text that should be JSON.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    def __init__(self, **given: Any) -> None:
        super().__init__(**(from_environment() | given))

    redis_url: str = Field(
        "",
        description="URL of the store: redis://, rediss://, unix://, sentinel:// or cluster://. "
        "Empty: `up` starts a private one.",
    )
    redis_password_file: str = Field(
        "", description="File with the store's password alone, accessible to its owner alone. Empty: that of the URL."
    )
    cells: tuple[str, ...] = Field(("c1",), description="The cells this process schedules over, comma-separated.")
    pool_size: int = Field(4, ge=1, le=64, description="Number of connections of a process for reads.")
    reply_timeout_s: Seconds = Field(5.0, description="How long one reply of the store may take.")
    resend_for_s: Seconds = Field(
        10.0,
        description="How long a call whose reply was lost is retried before its outcome is reported as unknown.",
    )
    durability: str = Field(
        "none",
        description="What the response to a claim waits for: none, replicas=N, fsync, or replicas=N,fsync.",
    )
    durability_timeout_s: Seconds = Field(2.0, description="How long a claim waits for that before it is undone.")

    poll_s: Seconds = Field(0.03, description="Pause between two polls of the feed.")
    tick_s: Seconds = Field(1.0, description="How often a scheduler ticks the store's clock and sweeps what is due.")
    catch_up_timeout_s: Seconds = Field(5.0, description="How long a request waits for the feed before it returns 503.")
    select_timeout_s: Seconds = Field(10.0, description="How long a selection may retry before it returns 503.")

    plan_limit_s: float = Field(
        5.0,
        ge=0,
        le=60,
        description="How long a decision may take that is too long for a worker's event loop; 0: none may.",
    )

    reserved_hosts_percent: int = Field(
        10, ge=0, le=100, description="How many of a cell's hosts, in percent, may be reserved for requests that wait."
    )
    short_work_s: Seconds = Field(
        60.0,
        description="How long work on a reserved host may run while it is not known when the host becomes free.",
    )

    candidates: int = Field(8, ge=1, le=64, description="Hosts that one claim call tries in order for each place.")
    pick_from: int = Field(
        4, ge=1, le=64, description="Number of best hosts of which the first is picked at random; 1: always the best."
    )
    keep_decisions: bool = Field(
        True, description="Keep with each claim how its host was chosen: hosts left out by reason, scores by weigher."
    )
    policy: str = Field("spread", description="The weighing policy of requests that name none.")
    weights: dict[str, Factor] = Field(
        default_factory=dict, description="Multipliers of weighers over those of the policy, as JSON."
    )
    policies: dict[str, dict[str, Factor]] = Field(
        default_factory=dict, description="Policies of your own: the multipliers of each, as JSON."
    )
    metrics_weights: dict[str, Factor] = Field(
        default_factory=dict, description="Factor of each host metric that the metrics weigher adds up, as JSON."
    )
    metrics_required: bool = Field(False, description="Refuse hosts that lack a metric of metrics_weights.")
    metrics_unavailable: Factor = Field(
        -10_000.0, description="Value that the metrics weigher uses for a host that lacks a metric."
    )
    image_props_weights: dict[str, Factor] = Field(
        default_factory=dict, description="Factor of each property that the image_props weigher uses, as JSON."
    )
    gpu_shares: dict[GpuShare, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(
        default_factory=lambda: {250: 1.0, 500: 1.0, 1000: 1.0},
        min_length=1,
        description="The usual shares of a GPU in thousandths, and how common each is, as JSON.",
    )
    gpu_beside: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(
        default_factory=lambda: {"VCPU": 8.0, "MEMORY_MB": 32768.0},
        description="The usual amount of each class that is requested with a whole GPU, as JSON.",
    )
    scarce: dict[str, dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]]] = Field(
        default_factory=dict,
        description="Scarce classes besides GPUs, each with the usual amounts requested with one of it, as JSON.",
    )
    spare_up_to: float = Field(
        0.5,
        ge=0,
        le=1,
        allow_inf_nan=False,
        description="A class that at most this part of the hosts have is scarce, and its hosts are spared; 0: none is.",
    )
    nova_filters: tuple[str, ...] = Field(
        (), description="Filter classes written for Nova, by import path, comma-separated."
    )
    nova_weighers: tuple[str, ...] = Field(
        (), description="Weigher classes written for Nova, by import path, comma-separated."
    )
    nova_conf: str = Field(
        "", description="File (nova.conf) with the options that Nova's own classes read. Empty: Nova's defaults."
    )

    max_claims_per_host: int = Field(
        0, ge=0, description="Maximum number of claims on a host, unless an aggregate sets it; 0: no limit."
    )
    max_starting_per_host: int = Field(
        0,
        ge=0,
        description="Maximum number of claims starting at once on a host, unless an aggregate sets it; 0: no limit.",
    )

    check_s: float = Field(
        300.0,
        ge=0,
        description="How often a scheduler checks the store for inconsistencies and repairs them; 0: never.",
    )
    enable_new_hosts: bool = Field(
        True, description="Whether hosts that are not known yet join enabled; otherwise disabled, until enabled."
    )
    events_keep_s: float = Field(86_400.0, ge=0, description="How long events are kept; 0: none is recorded.")
    events_most: int = Field(100_000, ge=1000, description="Maximum number of events in the log of a cell.")

    fence: str = Field(
        "",
        description="Command that proves that the machine of a host, its last argument, is off. "
        "Empty: no host is written off without an operator.",
    )
    fence_timeout_s: Seconds = Field(60.0, description="How long the fence command may run.")
    write_off_after_s: Seconds = Field(120.0, description="How long a host must be down before it is fenced.")
    fence_hosts: int = Field(
        2, ge=1, description="How many hosts of a cell may be fenced within fence_within_s; see fence_percent."
    )
    fence_percent: int = Field(
        5, ge=0, le=50, description="How many, in percent of the cell's hosts, if that is more than fence_hosts."
    )
    fence_within_s: Seconds = Field(600.0, description="The time over which fenced hosts are counted.")

    auth: str = Field(
        "", description="File (YAML) of the tokens that the API accepts, and their roles. Empty: no authentication."
    )
    tls_cert: str = Field("", description="File (PEM) of the API's certificate and its chain. Empty: no TLS.")
    tls_key: str = Field("", description="File (PEM) of the certificate's key, accessible to its owner alone.")
    tls_ca: str = Field("", description="File (PEM) of the authorities of clients' certificates. Empty: none needed.")
    behind_proxy: tuple[str, ...] = Field(
        (), description="Addresses and networks, comma-separated, from which alone the API accepts connections."
    )
    trusted_hosts: tuple[str, ...] = Field(
        (), description="Host names under which clients reach the API, comma-separated. Empty: any, if there is auth."
    )
    max_body_bytes: int = Field(
        1_048_576, ge=1024, description="Largest request body that the API accepts; larger ones get 413."
    )
    max_connections: int = Field(
        1000, ge=1, description="Maximum number of connections of clients to each worker of the API."
    )
    head_timeout_s: Seconds = Field(10.0, description="How long a request line and headers may take to arrive.")
    body_timeout_s: Seconds = Field(30.0, description="How long a body may take to arrive.")
    access_log: bool = Field(False, description="Log one line for each request to the API, at the level info.")
    tracing: bool = Field(False, description="Make spans of OpenTelemetry; the API and agents send them (OTEL_*).")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="What is logged, to stderr.")
    log_format: Literal["text", "json"] = Field("text", description="Whether a line of the log is text or JSON.")

    api: str = Field("", description="URL of the API that an agent without access to the store uses. Empty: the store.")
    token_file: str = Field("", description="File with the token that the agent sends to that API. Empty: none.")
    api_ca: str = Field("", description="File (PEM) with the authorities that may sign that API's certificate.")
    api_cert: str = Field("", description="File (PEM) with the agent's own certificate for that API.")
    api_key: str = Field("", description="File (PEM) with the key of api_cert.")
    api_insecure: bool = Field(False, description="Allow plain http to an API on another machine.")
    context: str = Field("", description="The fleet of commands, by its name in `redsched context list`.")
    host_name: str = Field("", description="The agent's host name. Empty: this machine's.")
    zone: str = Field("default", description="The zone of this machine.")
    labels: dict[str, str] = Field(default_factory=dict, description="Further labels of this machine, as JSON.")
    lease_s: int = Field(
        30, ge=2, le=3600, description="A host's lease: without a heartbeat for this long, it is down."
    )
    collect_s: Seconds = Field(5.0, description="How often the agent collects the data of its machine.")
    report_s: Seconds = Field(300.0, description="How often the agent sends a full report even if nothing changed.")
    compare_s: Seconds = Field(60.0, description="How often the agent compares its journal with the store's claims.")
    reserved_vcpu: int = Field(0, ge=0, description="VCPU of this machine that claims may not use.")
    reserved_memory_mb: int = Field(512, ge=0, description="MEMORY_MB of this machine that claims may not use.")
    reserved_disk_gb: int = Field(1, ge=0, description="DISK_GB of this machine that claims may not use.")
    ratio_vcpu: float = Field(4.0, gt=0, le=MAX_RATIO, description="allocation_ratio of VCPU on this machine.")
    ratio_memory: float = Field(1.0, gt=0, le=MAX_RATIO, description="allocation_ratio of MEMORY_MB on this machine.")
    ratio_disk: float = Field(1.0, gt=0, le=MAX_RATIO, description="allocation_ratio of DISK_GB on this machine.")
    disk_path: str = Field("/", description="The file system whose size is DISK_GB.")
    libvirt_uri: str = Field("qemu:///system", description="The libvirtd that the collector libvirt reads.")
    libvirt_pool: str = Field(
        "default", description="The storage pool whose size the collector libvirt reports as DISK_GB. Empty: none."
    )
    external_vcpu_from_load: bool = Field(
        False,
        description="Report the 1-minute load that claims do not cause as external VCPU; otherwise it is 0.",
    )
    journal: str = Field(
        "", description="The agent's journal file. Empty: redsched/<host>.sqlite in the user's state folder."
    )
    local: str = Field(
        "", description="File (YAML) of work that runs on the agent's hosts without a claim. Empty: none."
    )
    hook: str = Field(
        "", description="Command or http(s) URL that starts, stops and resizes work. Empty: confirm at once."
    )
    hook_timeout_s: Seconds = Field(300.0, description="How long a hook may run.")
    hook_env: tuple[str, ...] = Field(
        (), description="Further variables of the agent's environment that a hook gets, comma-separated."
    )
    job_folder: str = Field(
        "",
        description="Where the hook for jobs of an agent has their folders. Empty: ~/.local/state/redsched/jobs.",
    )
    work_watch_s: Seconds = Field(
        2.0, description="How often the agent checks that the work that hooks named still runs."
    )
    numa_pools: bool = Field(
        False, description="Report VCPU, PCPU, MEMORY_MB and huge pages by NUMA node, in pools numa0, numa1, ..."
    )
    dedicated_cpus: str = Field(
        "", description="CPUs of this machine that are allocated whole, as PCPU, such as 2-7,10-15. Empty: none."
    )
    pci_devices: list[dict[str, Any]] = Field(
        default_factory=list, description="The PCI devices of this machine that claims may take, as JSON."
    )

    @field_validator("cells", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(name.strip() for name in value.split(",")) if isinstance(value, str) else value

    @field_validator("nova_filters", "nova_weighers", "behind_proxy", "trusted_hosts", "hook_env", mode="before")
    @classmethod
    def _split_list(cls, value: object) -> object:
        return tuple(one.strip() for one in value.split(",") if one.strip()) if isinstance(value, str) else value

    @field_validator("hook_env")
    @classmethod
    def _check_variables(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) or name.upper().startswith(PREFIX):
                raise InvalidRequest(
                    f"hook_env has {name[:80]!r}: name variables, such as MY_REGION, and none of {PREFIX}*, which are "
                    "the settings of the agent"
                )
        return names

    @field_validator("*", mode="before")
    @classmethod
    def _read_units(cls, value: object, info: ValidationInfo) -> object:
        """Accept times and sizes with units: REDSCHED_LEASE_S=1m, REDSCHED_RESERVED_MEMORY_MB=2Gi."""
        return plain_number(str(info.field_name), value)

    @field_validator("cells")
    @classmethod
    def _check_cells(cls, cells: tuple[str, ...]) -> tuple[str, ...]:
        """Check the names of the cells.

        A server's claim id is the cell's name, a dot and 24 digits, and must be a valid name too.
        """
        for name in cells:
            check_name("cell", name)
        if not cells or len(set(cells)) != len(cells) or max(map(len, cells)) > MAX_CELL_NAME:
            raise InvalidRequest(f"cells must be one or more different names of up to {MAX_CELL_NAME} characters")
        return cells

    @field_validator("gpu_beside")
    @classmethod
    def _check_gpu_beside(cls, beside: dict[str, float]) -> dict[str, float]:
        _check_beside("gpu_beside", GPU_SHARES, beside)
        return beside

    @field_validator("scarce")
    @classmethod
    def _check_scarce(cls, scarce: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
        for name, beside in scarce.items():
            if name == GPU_SHARES:
                raise InvalidRequest(f"scarce has {name}: set what is requested with a GPU in {PREFIX}GPU_BESIDE")
            if not beside:
                raise InvalidRequest(
                    f'scarce has {name} with no other class: name some, such as {{"{name}": {{"VCPU": 4}}}}'
                )
            _check_beside("scarce", name, beside)
        return scarce

    @field_validator("behind_proxy")
    @classmethod
    def _check_networks(cls, networks: tuple[str, ...]) -> tuple[str, ...]:
        for one in networks:
            try:
                ip_network(one, strict=False)
            except ValueError:
                raise InvalidRequest(
                    f"behind_proxy has {one[:80]!r}: use IP addresses or networks, such as 10.0.0.5,10.1.0.0/16"
                ) from None
        return networks

    @field_validator("fence")
    @classmethod
    def _check_fence(cls, command: str) -> str:
        if not command:
            return command
        from redsched.subprocesses import split_command  # which loads asyncio

        if not split_command("fence", command):
            raise InvalidRequest(f"fence is blank: name a command, or leave {PREFIX}FENCE empty, which fences no host")
        return command

    @field_validator("durability")
    @classmethod
    def _check_durability(cls, text: str) -> str:
        options = text.split(",")
        if text != "none" and (
            len({word.partition("=")[0] for word in options}) < len(options)
            or not all(re.fullmatch("fsync|replicas=[1-9][0-9]?", word) for word in options)
        ):
            raise InvalidRequest("durability must be none, replicas=N, fsync or replicas=N,fsync")
        return text

    @model_validator(mode="after")
    def _check_wait(self) -> Self:
        if self.durability != "none" and self.durability_timeout_s >= self.reply_timeout_s:
            raise InvalidRequest(
                f"durability_timeout_s is {self.durability_timeout_s:g}, and must be below reply_timeout_s, "
                f"{self.reply_timeout_s:g}: otherwise the connection is closed first"
            )
        return self


def _check_beside(setting: str, scarce: str, beside: Iterable[str]) -> None:
    for name in (scarce, *beside):
        check_class(name)
    if scarce in beside:
        raise InvalidRequest(f"{setting} has {scarce} beside itself: name other classes")


def from_environment() -> dict[str, Any]:
    """Return the settings that the environment holds, by field. Raises InvalidRequest for one that is not JSON."""
    return {name: _decoded(name, text) for name, text in _environment().items() if name in Settings.model_fields}


def removed_in_environment() -> dict[str, str]:
    """Return the settings in the environment that have no effect any longer, by variable, and what holds instead."""
    found = _environment()
    return {f"{PREFIX}{name.upper()}": instead for name, instead in REMOVED.items() if found.get(name)}


def _environment() -> dict[str, str]:
    """Return the texts of all variables of redsched, by the names of settings."""
    return {name[len(PREFIX) :].lower(): text for name, text in os.environ.items() if name.upper().startswith(PREFIX)}


def _decoded(name: str, text: str) -> Any:
    """Return the value of a setting in the environment: mappings and lists are JSON, others are read from texts."""
    if get_origin(Settings.model_fields[name].annotation) not in (dict, list):
        return text
    try:
        return loads(text)
    except DuplicateKey as error:
        raise InvalidRequest(f"{PREFIX}{name.upper()} {error}") from error
    except ValueError as error:
        raise InvalidRequest(f"{PREFIX}{name.upper()} must be JSON: {error}") from error


def load(**given: Any) -> Settings:
    """Read the settings from the environment, but for those given. Raises pydantic.ValidationError."""
    return Settings(**given)
