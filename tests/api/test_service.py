"""/healthz, /readyz and /metrics, and the worker processes behind one port."""

import asyncio
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any

import httpx
import pytest
import redis
from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.parser import text_string_to_metric_families

import redsched.operate.status.status
import redsched.scheduler.health
from redsched import aio
from redsched.api.metrics import _MILLISECONDS, Metrics
from redsched.api.readiness import ReadinessMonitor
from redsched.cache.fleet import FleetUsage
from redsched.errors import InvalidRequest, StoreUnavailable
from redsched.scheduler.results import Effort, Fenced, Finding, Readiness, Stats
from redsched.serve import processes
from redsched.serve.processes import ChildProcess
from redsched.serve.registry import WorkerRegistry
from redsched.serve.supervisor import Workers
from redsched.settings import Settings
from redsched.store.embedded.server import PrivateServer
from tests.api.parts import check_problem, client_of, put_host, select
from tests.support.waiting import patience_s, wait_until, wait_until_sync


async def answers_200(api: httpx.AsyncClient, path: str) -> bool:
    return (await api.get(path)).status_code == 200


async def problems_of(api: httpx.AsyncClient) -> list[dict[str, Any]]:
    """Return what the status finds wrong, except that a busy machine keeps the replica from following at once."""
    answer = await api.get("/v1/status")
    assert answer.status_code == 200, answer.text
    return [one for one in answer.json()["problems"] if one["kind"] != "scheduler-behind"]


async def is_healthy(api: httpx.AsyncClient) -> bool:
    return bool((await api.get("/v1/status")).json().get("healthy"))


async def test_healthz_says_that_the_process_answers(empty_api: httpx.AsyncClient) -> None:
    assert (await empty_api.get("/healthz")).json() == {"status": "ok"}


async def test_readyz_without_any_host_is_ready(empty_api: httpx.AsyncClient) -> None:
    await wait_until(partial(answers_200, empty_api, "/readyz"))
    answer = await empty_api.get("/readyz")
    assert (answer.json()["status"], answer.json()["hosts"], answer.json()["workers"]) == ("ready", 0, 1)


async def test_the_status_names_what_is_wrong(empty_api: httpx.AsyncClient, clean_store: str) -> None:
    """It is 200 also then: only the status of the store is bad, not the request."""
    await put_host(empty_api, "h1")
    assert await problems_of(empty_api) == []
    await wait_until(partial(is_healthy, empty_api), timeout=15)
    answer = await empty_api.get("/v1/status")
    assert [one["version"] for one in answer.json()["cells"][0]["schedulers"]] == [version("redsched")]
    with redis.Redis.from_url(clean_store, protocol=2) as client:
        client.hset("rs:{c1}:host:h1", "alive_until_ms", "1")
    (problem,) = await problems_of(empty_api)
    assert (problem["kind"], problem["about"]) == ("host-down", ["h1"])
    check_problem(await empty_api.get("/v1/status?by=zone"), 422, "invalid-request")


async def test_probes_and_scrapes_are_answered_while_the_store_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prometheus gives up on a scrape after ten seconds, and would miss the metric that reports the outage."""
    with PrivateServer.start() as server:
        async with client_of(Settings(redis_url=server.url), is_new=True) as api:
            await wait_until(partial(answers_200, api, "/readyz"))
            await wait_until(partial(answers_200, api, "/v1/status"))
            server.pause()
            try:
                with monkeypatch.context() as patched:
                    patched.setattr(redsched.scheduler.health, "READY_S", 0.25)
                    patched.setattr(redsched.operate.status.status, "STATUS_S", 0.5)
                    ready, scraped, status = await aio.gather(
                        api.get(path) for path in ("/readyz", "/metrics", "/v1/status")
                    )
            finally:
                server.resume()
            check_problem(ready, 503, "not-ready")
            assert "the store has not replied within 0.25 s" in ready.json()["detail"]
            assert (scraped.status_code, parsed(scraped.text)["redsched_workers_ready",]) == (200, 0.0)
            check_problem(status, 503, "store-unavailable")
            assert "the store did not give its status within 0.5 s" in status.json()["detail"]
            await wait_until(partial(answers_200, api, "/readyz"))
            await wait_until(partial(is_healthy, api), timeout=15)


async def test_readyz_fails_while_the_server_may_evict(empty_api: httpx.AsyncClient, clean_store: str) -> None:
    """If a claim were evicted, its amounts could be claimed twice."""
    with redis.Redis.from_url(clean_store, protocol=2) as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            found = check_problem(await empty_api.get("/readyz"), 503, "not-ready")
        finally:
            client.config_set("maxmemory-policy", "noeviction")
    assert "noeviction" in found["detail"]


async def test_readyz_fails_while_the_store_is_out_of_memory_and_claims_can_be_released(
    empty_api: httpx.AsyncClient, clean_store: str
) -> None:
    await put_host(empty_api, "h1")
    await select(empty_api, claim_ids=["kept"])
    with redis.Redis.from_url(clean_store, protocol=2) as client:
        client.config_set("maxmemory", 1)
        try:
            ready = check_problem(await empty_api.get("/readyz"), 503, "not-ready")
            new = await empty_api.post("/v1/selections", json={"resources": {"VCPU": 1}})
            refused = check_problem(new, 503, "store-full")
            status = (await empty_api.get("/v1/status")).json()
            released = await empty_api.delete("/v1/claims/kept")
        finally:
            client.config_set("maxmemory", 0)
    assert "the store is out of memory (it uses" in ready["detail"]
    assert "release, shelve and host remove work" in refused["detail"]
    assert (refused["max_memory_bytes"], new.headers["retry-after"]) == (1, "5")
    assert status["problems"][0]["kind"] == "store-full"
    assert released.status_code == 204


async def test_selections_of_one_turn_are_counted_as_if_each_were_observed() -> None:
    """The bounds of buckets are inclusive, and the last bucket has none."""
    metrics, registry = Metrics(), CollectorRegistry()
    plain = Histogram("plain", "Each value observed.", registry=registry, buckets=_MILLISECONDS)
    for number, seconds in enumerate((0.0, 1e-3, 1.0001e-3, 0.25, 5.0, 5.1, 1e-3)):
        metrics.observe(Effort("claimed" if number else "same", number, 0, seconds / 2, seconds))
        plain.observe(seconds)
    await asyncio.sleep(0)
    [expected], [found] = plain.collect(), metrics.selection_seconds.collect()
    shown = [
        [(one.name.partition("_")[2].removeprefix("selection_seconds_"), one.labels, one.value) for one in family]
        for family in ([one for one in of.samples if "created" not in one.name] for of in (expected, found))
    ]
    assert shown[0] == shown[1]
    [counted] = metrics.selections.collect()
    totals = {one.labels["outcome"]: one.value for one in counted.samples if one.name.endswith("_total")}
    assert totals == {"claimed": 6, "same": 1}


async def test_metrics_count_selections_by_outcome(clean_store: str) -> None:
    """They are summed over two workers, whichever one serves /metrics."""
    with Workers("127.0.0.1", 0, 2) as workers:
        workers.start({"REDSCHED_REDIS_URL": clean_store})
        async with httpx.AsyncClient(base_url=workers.url, timeout=patience_s(20)) as api:
            await put_host(api, "h1")
        await wait_until(lambda: workers_with_hosts(workers) == 2, what="both replicas have the host")
        for _ in range(4):  # each uses a new connection, so either worker may serve it
            async with httpx.AsyncClient(base_url=workers.url, timeout=patience_s(20)) as api:
                await select(api, resources={"VCPU": 1})
        async with httpx.AsyncClient(base_url=workers.url, timeout=patience_s(20)) as api:
            await api.post("/v1/selections", json={"resources": {"VCPU": 1}, "claim": False})
            await api.post("/v1/selections", json={"resources": {"VCPU": 9}})
            text = (await api.get("/metrics")).text
    found = parsed(text)
    assert found["redsched_selections_total", "claimed"] == 4
    assert found["redsched_selections_total", "dry-run"] == 1
    assert found["redsched_selections_total", "no-valid-host"] == 1
    assert found["redsched_claim_calls_total",] == 4
    assert found["redsched_selection_seconds_count",] == 6
    assert found["redsched_snapshots_total",] >= 2
    assert found["redsched_hosts",] == 1
    assert found["redsched_refusals_total", "VCPU"] == 1
    assert found["redsched_claim_seconds_count",] == found["redsched_candidates_used_sum",] == 4
    assert found["redsched_claim_conflicts_total",] == 0
    assert found["redsched_feed_lag_seconds_count",] >= 2
    assert found["redsched_store_latency_seconds_count",] >= 2
    assert found["redsched_store_memory_bytes",] > 100_000
    assert found["redsched_audit_findings_total", "2", "false"] == 0
    assert found["redsched_build_info", python_version(), version("redsched")] == 1


def workers_with_hosts(workers: Workers) -> int:
    """Return how many workers have counted one host, from the files that they share their gauges in."""
    files = map(str, workers.folder.glob("gauge_livemax_*.db"))
    read = MmapedDict.read_all_values_from_file
    values = [one for file in files for one in read(file)]  # type: ignore[no-untyped-call]
    return sum(value == 1 for key, value, *_ in values if json.loads(key)[0] == "redsched_hosts")


async def test_the_fleets_figures_come_from_the_replica_of_whichever_worker_answers(clean_store: str) -> None:
    with Workers("127.0.0.1", 0, 2) as workers:
        workers.start({"REDSCHED_REDIS_URL": clean_store})
        async with httpx.AsyncClient(base_url=workers.url, timeout=patience_s(20)) as api:
            await put_host(api, "h1")
            await select(api, resources={"VCPU": 3})
        for _ in range(4):  # each uses a new connection, so either worker may serve it
            async with httpx.AsyncClient(base_url=workers.url, timeout=patience_s(20)) as api:

                async def shown(api: httpx.AsyncClient = api) -> bool:
                    found = parsed((await api.get("/metrics")).text)
                    names = ("capacity", "claimed", "free", "free_largest")
                    amounts = [found.get((f"redsched_{name}", "c1", "VCPU", "az1")) for name in names]
                    counts = [
                        found.get((f"redsched_{name}", "c1", "enabled")) for name in ("hosts_by_status", "claims")
                    ]
                    return (amounts, counts) == ([8, 3, 5, 5], [1, 1])

                await wait_until(shown, what="the replica has the claim")


async def test_totals_are_counted_once_however_often_they_are_sampled() -> None:
    metrics = Metrics()
    found = {Finding(2, repaired=True): 1}
    stats = Stats(
        0,
        0,
        0,
        0.0,
        5,
        1,
        gaps=1,
        claims_expired=3,
        audits={("c1", "cell"): 2, ("c1", "ids"): 0},
        findings=found,
        fenced={Fenced.FAILED: 2},
        fencing_held=3,
        store_s=0.001,
    )
    metrics.sample(stats, ready=True)
    metrics.sample(replace(stats, claims_expired=4, store_s=None), ready=True)
    shown = await samples(metrics)
    assert shown["redsched_feed_entries_total",] == 5
    assert shown["redsched_feed_gaps_total",] == 1
    assert shown["redsched_leases_expired_total", "claim"] == 4
    assert shown["redsched_audits_total", "c1", "cell"] == 2
    assert shown["redsched_audits_total", "c1", "ids"] == 0, "an increase from nothing to 1 is none to Prometheus"
    assert shown["redsched_audit_findings_total", "2", "true"] == 1
    assert shown["redsched_fencing_total", "failed"] == 2
    assert (shown["redsched_fencing_total", "written-off"], shown["redsched_fencing_held",]) == (0, 3)
    assert (shown["redsched_store_latency_seconds_count",], shown["redsched_store_failures_total",]) == (1, 1)


async def test_there_are_no_more_labels_than_reasons_that_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redsched.api.metrics.MAX_REASONS", 2)
    metrics = Metrics()
    for reason in ("a", "b", "c", "a", "d"):
        metrics.observe(Effort("no-valid-host", 0, 0, 0.0, 0.0, reason=reason))
    await asyncio.sleep(0)
    shown = await samples(metrics)
    assert {name[1]: value for name, value in shown.items() if name[0] == "redsched_refusals_total"} == {
        "a": 2,
        "b": 1,
        "other": 2,
    }


async def test_the_figures_of_the_fleet_are_computed_once_a_second_at_most() -> None:
    """Scrapes at the same time share them too."""
    metrics, calls = Metrics(), list[None]()

    async def fleet() -> dict[str, FleetUsage]:
        calls.append(None)
        await asyncio.sleep(0)
        return {}

    metrics.serve_fleet(fleet)
    await asyncio.gather(*(metrics.exposition() for _ in range(3)))
    await metrics.exposition()
    assert len(calls) == 1


async def samples(metrics: Metrics) -> dict[tuple[str, ...], float]:
    return parsed((await metrics.exposition())[0].decode())


def parsed(text: str) -> dict[tuple[str, ...], float]:
    """Return the exposed values by name and values of labels, which are sorted by label."""
    return {
        (one.name, *one.labels.values()): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


async def test_readyz_waits_for_every_worker_and_for_the_hosts_that_were_promised(clean_store: str) -> None:
    with Workers("127.0.0.1", 0, 2, hosts=1) as workers:
        workers.start({"REDSCHED_REDIS_URL": clean_store})
        async with httpx.AsyncClient(base_url=workers.url, timeout=patience_s(20)) as api:
            answer = await api.get("/readyz")
            check_problem(answer, 503, "not-ready")
            await put_host(api, "h1")

            async def ready() -> bool:
                return (await api.get("/readyz")).status_code == 200

            await wait_until(ready)


class _Ready:
    """A stand-in for a scheduler that is ready."""

    async def readiness(self) -> Readiness:
        return Readiness(ready=True, detail="caught up", hosts=0)

    def stats(self) -> Stats:
        return Stats(hosts=0, hosts_alive=0, hosts_attested=0, lag_s=0.0, entries=0, snapshots=1)


class _Ignored:
    def sample(self, stats: Stats, ready: bool) -> None: ...


async def test_a_worker_that_is_not_ready_or_gone_makes_all_not_ready(tmp_path: Path) -> None:
    """The other worker has no file, then one of an ended process, then one of a running process."""
    watch = ReadinessMonitor(_Ready(), WorkerRegistry(tmp_path, number=0, workers=2), _Ignored())
    assert (await watch.look()).ready is False
    ended = await asyncio.create_subprocess_exec("true")
    await ended.wait()
    (tmp_path / "ready-1").write_text(str(ended.pid))
    assert "worker 1 of 2" in (await watch.look()).detail
    (tmp_path / "ready-1").write_text(str(os.getpid()))
    assert (await watch.look()).ready is True


async def test_a_worker_that_died_is_started_again_on_the_same_port(clean_store: str) -> None:
    with Workers("127.0.0.1", 0, 1) as workers:
        workers.start({"REDSCHED_REDIS_URL": clean_store})
        [before] = workers.pids
        await wait_until(lambda: any(workers.folder.glob(f"gauge_live*_{before}.db")))
        os.kill(before, signal.SIGKILL)

        async def revived() -> bool:
            workers.revive()
            return workers.pids != [before]

        await wait_until(revived)
        # Its gauges are removed with it, since its last values for hosts and lag are outdated.
        assert list(workers.folder.glob(f"gauge_live*_{before}.db")) == []
        async with httpx.AsyncClient(base_url=workers.url, timeout=patience_s(20)) as api:
            assert (await api.get("/healthz")).status_code == 200

            async def ready() -> bool:
                return (await api.get("/readyz")).status_code == 200

            await wait_until(ready)


def test_a_port_in_use_is_refused_and_nothing_is_started() -> None:
    with Workers("127.0.0.1", 0, 2) as workers, pytest.raises(InvalidRequest, match="--port"):
        Workers("127.0.0.1", workers.port, 1)


def test_what_keeps_the_workers_from_starting_is_reported_once() -> None:
    with Workers("127.0.0.1", 0, 2) as workers, pytest.raises(StoreUnavailable, match=r"nowhere\.sock"):
        workers.start({"REDSCHED_REDIS_URL": "unix:///nowhere.sock", "REDSCHED_REPLY_TIMEOUT_S": "0.5"})


def test_ended_workers_leave_nothing(clean_store: str) -> None:
    """No process is left, the folder is deleted, and the port is free."""
    with Workers("127.0.0.1", 0, 2) as workers:
        workers.start({"REDSCHED_REDIS_URL": clean_store})
        pids = workers.pids
    assert not workers.folder.exists()
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []
    Workers("127.0.0.1", workers.port, 1).stop()


def test_children_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    """After SIGKILL the parent cannot end its children, so the kernel does it."""

    def begin() -> int:
        [child] = begun("child", sleep)
        (tmp_path / "new").write_text(str(child.pid))
        (tmp_path / "new").rename(tmp_path / "pid")
        return sleep()

    [parent] = begun("parent", begin)
    try:
        wait_until_sync((tmp_path / "pid").exists)
        pid = int((tmp_path / "pid").read_text())
    finally:
        parent.send(signal.SIGKILL)
    assert parent.wait(patience_s(30)) == -signal.SIGKILL
    wait_until_sync(lambda: not _runs(pid))


def test_a_child_has_its_own_name_session_signals_and_input(tmp_path: Path) -> None:
    """Its name is what `ps` and `top` show. The parent's handlers of signals, and its input, are not the child's."""
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def describe() -> int:
        handlers = [signal.getsignal(one) is signal.SIG_DFL for one in signals]
        seen = (Path("/proc/self/comm").read_text(), os.getsid(0) == os.getpid(), handlers, os.read(0, 1))
        (tmp_path / "seen").write_text(repr((*seen, signal.pthread_sigmask(signal.SIG_BLOCK, ()), os.environ["MORE"])))
        return 7

    def begin() -> int:
        """Start the child from a process that has input and handles all signals."""
        reading, writing = os.pipe()
        os.write(writing, b"input")
        os.dup2(reading, 0)
        for one in signals:
            signal.signal(one, lambda *_: None)
        [child] = begun("redsched-child", describe, {"MORE": "more"})
        assert "MORE" not in os.environ
        return child.wait(patience_s(30)) or 0

    [parent] = begun("parent", begin)
    assert parent.wait(patience_s(30)) == 7
    assert (tmp_path / "seen").read_text() == repr(("redsched-child\n", True, [True] * 3, b"", set(), "more"))


def test_a_signal_during_a_fork_loses_no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """The handler that raises is run once the caller knows the child, which it can then stop."""
    fork, known = os.fork, list[ChildProcess]()

    class Ended(Exception):
        pass

    def end(*_: object) -> None:
        raise Ended

    def interrupted() -> int:
        pid = fork()
        if pid:
            # As in a process with one thread: otherwise a thread of the test runner might take the signal.
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        return pid

    monkeypatch.setattr(os, "fork", interrupted)
    before = signal.signal(signal.SIGTERM, end)
    try:
        with pytest.raises(Ended):
            processes.start("child", sleep, {}, known.append)
    finally:
        signal.signal(signal.SIGTERM, before)
    processes.stop(known)
    assert [one.exit_code for one in known] == [-signal.SIGTERM]


def test_a_child_that_fails_prints_why_and_ends_alone(capfd: pytest.CaptureFixture[str]) -> None:
    def fail() -> int:
        raise LookupError("nothing here")

    [child] = begun("child", fail)
    assert child.wait(patience_s(30)) == 1
    assert "LookupError: nothing here" in capfd.readouterr().err


def test_a_parent_that_ignores_its_childrens_ends_notices_them(tmp_path: Path) -> None:
    """A launcher may have set SIGCHLD to be ignored, and the kernel then keeps no exit codes."""

    def begin() -> int:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        [child] = begun("child", lambda: 3)
        return 0 if child.wait(patience_s(30)) is not None else 1

    [parent] = begun("parent", begin)
    assert parent.wait(patience_s(60)) == 0


def begun(name: str, main: Callable[[], int], environment: Mapping[str, str] | None = None) -> list[ChildProcess]:
    """Start a child, and return it in a list."""
    children = list[ChildProcess]()
    processes.start(name, main, environment or {}, children.append)
    return children


def sleep() -> int:
    time.sleep(60)
    return 0


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
