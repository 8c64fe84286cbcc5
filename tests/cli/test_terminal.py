"""Tables on a terminal of 80 columns: nothing is cut that a user has to copy or compare."""

import asyncio
import re

import redis

from redsched.operate.observe.recorder import Recorder
from redsched.settings import Settings
from redsched.store.store import Store
from tests.cli.conftest import Redsched
from tests.cli.terminals import COLUMNS, lines_of

CLOCK = r"\d\d:\d\d:\d\d"
AGE = "(AGE)"
REASON = "hook /srv/work/hook start for c1.123456789012345678901234 ended with exit code 1 no image of web on this host"


def on_a_terminal(store: str, *arguments: str, fails: bool = False) -> list[str]:
    """Run a command on a terminal of 80 columns, and return the lines that it prints, without trailing spaces."""
    lines = lines_of(store, *arguments, fails=fails)
    assert max(map(len, lines)) <= COLUMNS, lines
    return lines


def claim(redsched: Redsched, *more: str) -> dict[str, str]:
    """Place a claim on h1 with a generated id, and return the selection."""
    return dict(redsched("select", "VCPU=2", "--host", "h1", *more, "--json").check().json()["selections"][0])


def test_events_show_times_of_day_and_reasons_on_lines_of_their_own(redsched: Redsched, store: str) -> None:
    """The columns PROJECT and CONSUMER are left out, since no event has them, and ages, which have no room."""
    found = claim(redsched, "--max-attempts", "1")
    claim_id = found["claim_id"]

    async def fail() -> None:
        async with Store.connect(store) as opened:
            cell = opened.cell("c1")
            await Recorder(cell, Settings()).record()
            await cell.claims.fail("h1", claim_id, found["token"], by_host=True, reason=REASON)
            await Recorder(cell, Settings()).record()

    asyncio.run(fail())
    shown = on_a_terminal(store, "events", "--claim", claim_id)
    day, heads, claimed, failed, *reason = shown
    assert re.fullmatch(r"\d{4}-\d\d-\d\d UTC", day)
    assert heads.split() == ["TIME", "KIND", "CLAIM", "HOST", "WHAT"]
    for line, kind, what in ((claimed, "claimed", "VCPU=2"), (failed, "failed", "VCPU=2 end_reason=failed")):
        assert re.fullmatch(rf"{CLOCK}  {kind} +{re.escape(claim_id)}  h1 +{what}", line)
    assert all(line.startswith("    ") for line in reason)
    assert " ".join(line.strip() for line in reason) == f"reason={REASON}"


EVENT = {"claim": "c1.123456789012345678901234", "host": "compute-17.rack-4.example", "consumer": "vm-frontend-17"}


def _add_events(store: str) -> None:
    """Add two events wider than a terminal, the second one after midnight and with a reason."""
    whose = EVENT | {"project": "website-of-the-shop", "amount.VCPU": 16, "amount.MEMORY_MB": 65_536}
    with redis.Redis.from_url(store, protocol=2) as client:
        for seq, reason in enumerate(("", f"{REASON} at last")):
            at_ms = 1_795_391_999_000 + seq * 1_000
            kind = "failed" if reason else "claimed"
            client.xadd("rs:{c1}:events", {"at_ms": at_ms, "seq": seq, "kind": kind, **whose, "reason": reason})


def test_events_that_are_followed_fit_the_terminal(redsched: Redsched, store: str) -> None:
    """Lines break between words and follow their day; the reason has its own lines."""
    _add_events(store)
    first, claimed, *shown = lines_of(store, "events", "--follow", "--after", "c1:0-0", until=b"at last")
    assert max(map(len, (first, claimed, *shown))) <= COLUMNS
    assert first == "2026-11-22 UTC"
    assert claimed.split() == ["23:59:59", "claimed", EVENT["claim"], EVENT["host"]]
    second_day = shown.index("2026-11-23 UTC")
    assert all(line.startswith("    ") for line in shown[:second_day])
    failed, *rest = shown[second_day + 1 :]
    assert failed.startswith("00:00:00  failed")
    words = " ".join(line.strip() for line in rest)
    assert words.split()[:4] == ["project=website-of-the-shop", "consumer=vm-frontend-17", "MEMORY_MB=65536", "VCPU=16"]
    assert words.endswith(f"reason={REASON} at last")


def test_wide_events_are_whole_lines_on_a_terminal(redsched: Redsched, store: str) -> None:
    _add_events(store)
    followed = lines_of(store, "events", "--follow", "--wide", "--after", "c1:0-0", until=b"at last")
    _, *listed = lines_of(store, "events", "--wide")
    assert [line.split() for line in listed] == [line.split() for line in followed]
    assert followed[1].endswith(f"reason={REASON} at last")


def test_each_day_is_shown_once(redsched: Redsched, store: str) -> None:
    """The third event is after midnight."""
    with redis.Redis.from_url(store, protocol=2) as client:
        for number in range(4):
            at_ms = 1_795_391_990_000 + number * 5_000
            client.xadd("rs:{c1}:events", {"at_ms": at_ms, "seq": number, "kind": "claimed", "claim": "mine"})
    shown = on_a_terminal(store, "events", "--claim", "mine")
    assert [re.sub(r"\(.+\)", AGE, line).split() for line in shown] == [
        ["2026-11-22", "UTC"],
        ["TIME", "KIND", "CLAIM"],
        ["23:59:50", AGE, "claimed", "mine"],
        ["23:59:55", AGE, "claimed", "mine"],
        ["2026-11-23", "UTC"],
        ["00:00:00", AGE, "claimed", "mine"],
        ["00:00:05", AGE, "claimed", "mine"],
    ]


def test_a_selection_shows_whole_tokens(redsched: Redsched, store: str) -> None:
    """A column that does not fit is printed below the row, with its name."""
    name = "nightly-build-of-the-website"
    shown = on_a_terminal(store, "select", "VCPU=2", "--alternates", "1", "--id", name)
    listed = redsched("claim", "show", name, "--json").check().json()
    assert shown[0].split() == ["CLAIM", "HOST", "AMOUNTS", "ALTERNATES"]
    assert shown[1].split()[:2] == [name, listed["host"]]
    assert f"    TOKEN: {listed['token']}" in shown


def test_the_list_of_claims_shows_whole_ids(redsched: Redsched, store: str) -> None:
    claim_id = claim(redsched)["claim_id"]
    *row, age, _in, lease = on_a_terminal(store, "claim", "list")[1].split()
    assert row == [claim_id, "claimed", "h1", "VCPU=2"]
    assert re.fullmatch(r"\d+s", age)
    assert re.fullmatch(r"\d+[sm]", lease)


def test_why_a_claim_is_stuck_is_wrapped(redsched: Redsched, store: str) -> None:
    claim(redsched, "--id", "mine")
    redsched("claim", "confirm", "mine").check()
    first, progress, *rest = on_a_terminal(store, "host", "drain", "h1", "--move", "--wait", "1", fails=True)
    assert first == "h1 is draining"
    whole = " ".join((progress, *(line.strip() for line in rest)))
    assert whole.endswith("1 unmovable: mine: the request names only h1, and the claim is there or has failed there")
