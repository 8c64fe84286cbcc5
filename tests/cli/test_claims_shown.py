"""What `redsched claim list` and `claim show` print: nothing is cut at 80 columns."""

from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from unittest.mock import patch

from redsched.cli.output.listings import Form
from redsched.cli.verbs.claims import LISTING, _show_claim
from redsched.model import Claim, ClaimStatus, DecisionNote, Placement, RankedHost, ReasonCount
from tests.cli.conftest import Redsched

BOTH_LINKS = True


CLAIM_ID = "c1.123456789012345678901234"
TOKENS = ("1795385242868-a917cb8a.123456", "1795385242868-a917cb8a.234567")
AMOUNTS = {"MEMORY_MB": 262_144, "VCPU": 64}


def moving() -> Claim:
    """Return a claim with an id as servers generate it, with a move to another host under way."""
    states = (ClaimStatus.ACTIVE, ClaimStatus.STARTING)
    places = zip(TOKENS, states, ("sim-00001", "sim-00002"), strict=True)
    placements = tuple(Placement(token, token, TOKENS[0], host, state, AMOUNTS) for token, state, host in places)
    main = placements[0]
    return Claim(
        CLAIM_ID,
        "c1",
        main.host,
        main.state,
        main.token,
        AMOUNTS,
        "web",
        attempts=2,
        max_attempts=3,
        placements=placements,
    )


def on_a_terminal(show: Callable[[], None]) -> str:
    """Return what `show` prints on a terminal of 80 columns."""
    with patch.dict("os.environ", {"TERM": "dumb"}), patch("sys.stdout", StringIO()) as terminal:
        terminal.isatty = lambda: True  # type: ignore[method-assign]
        show()
        return terminal.getvalue()


def test_the_list_fits_80_columns_and_cuts_nothing() -> None:
    shown = on_a_terminal(lambda: LISTING.show([moving()], dict, Form()))
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown
    words = shown.replace("│", " ").split()
    assert {CLAIM_ID, "active", "sim-00001", "sim-00002", "MEMORY_MB=262144", "VCPU=64", "web"} <= set(words)


def test_the_list_and_a_claim_show_the_owner() -> None:
    one = Claim("train-1", "c1", "gpu-1", ClaimStatus.ACTIVE, TOKENS[0], {"VCPU": 4}, "lab", owner="ann")
    listed = on_a_terminal(lambda: LISTING.show([one], dict, Form())).splitlines()
    assert max(map(len, listed)) <= 80
    assert [line.split()[:6] for line in listed] == [
        ["CLAIM", "STATE", "HOST", "AMOUNTS", "PROJECT", "OWNER"],
        ["train-1", "active", "gpu-1", "VCPU=4", "lab", "ann"],
    ]
    assert "owner: ann" in on_a_terminal(lambda: _show_claim(one)).splitlines()


def test_claims_are_listed_and_released_by_owner(redsched: Redsched) -> None:
    for owner in ("ann", "bob"):
        redsched("select", "VCPU=1", "--id", f"of-{owner}", "--project", "web", "--owner", owner).check()
    redsched("select", "VCPU=1", "--id", "of-nobody", "--project", "web").check()
    assert redsched("claim", "list", "--owner", "ann", "--owner", "oidc:x y", "-o", "name").check().output == "of-ann\n"
    assert redsched("claim", "list", "--sort", "owner", "-o", "name").check().output.split() == [
        *("of-nobody", "of-ann", "of-bob"),
    ]
    redsched("claim", "list", "--owner", "@me").check_failed(2, "no owner of claims")
    redsched("claim", "list", "--mine").check_failed(2, "name")
    redsched("claim", "release", "--owner", "bob", "--yes").check()
    assert set(redsched("claim", "list", "-o", "name").check().output.split()) == {"of-ann", "of-nobody"}


def test_one_claim_fits_80_columns_with_both_tokens() -> None:
    shown = on_a_terminal(lambda: _show_claim(moving()))
    assert max(map(len, shown.splitlines())) <= 80
    assert set(TOKENS) <= set(shown.replace("│", " ").split())
    assert "attempts: 2 of 3" in shown


def test_why_a_claim_is_on_its_host_fits_80_columns_with_a_column_for_each_weigher() -> None:
    weighers = {"io_ops": -0.5, "ram": 1.0, "hypervisor_version": 0.25}
    ranked = tuple(RankedHost(f"sim-{number:05}", 0.75, weighers) for number in (1, 2, 3))
    reasons = ReasonCount("VCPU", 96), ReasonCount("required:HW_CPU_X86_AVX512VNNI", 2)
    decision = DecisionNote(TOKENS[0], "sim-00001", 2, 1_795_385_242_868, 101, reasons, "nova", "1.0.0", ranked)
    shown = on_a_terminal(lambda: _show_claim(replace(moving(), decision=decision)))
    assert max(map(len, shown.splitlines())) <= 80
    words = " ".join(shown.split())
    assert "why sim-00001: 3 of 101 hosts fitted at " in words
    assert "weighed by nova" in words
    assert "left out: 96 short of VCPU, 2 by required:HW_CPU_X86_AVX512VNNI" in words
    assert "candidate 2 was taken: those before it had no room any more" in words
    assert "HOST SCORE io_ops ram hypervisor_version sim-00001 0.750 -0.500 1.000 0.250 sim-00002" in words


def test_one_claim_is_shown_with_attempts_and_placements(redsched: Redsched) -> None:
    selected = redsched("select", "VCPU=2", "--id", "mine", "--consumer", "ci", "--json").check().json()
    token = selected["selections"][0]["token"]
    shown = redsched("claim", "show", "mine").check().output.splitlines()
    assert shown[2].split() == ["TOKEN", "STATE", "HOST", "AMOUNTS", "WHY"]
    assert shown[3].split() == [token, "claimed", selected["selections"][0]["host"], "VCPU=2", "-"]
    assert {"consumer: ci", "attempts: 1 of 3"} <= set(shown)
    redsched("claim", "release", "mine").check()
    ended = redsched("claim", "show", "mine").check().output
    assert f"no placements; the last token was {token}" in ended
    assert "end_reason: released" in ended


def test_a_claim_that_was_moved_says_from_where_and_why(redsched: Redsched) -> None:
    selected = redsched("select", "VCPU=2", "--id", "mine", "--host", "h1", "--host", "h2", "--json").check().json()
    first = selected["selections"][0]
    redsched("claim", "confirm", "mine", "--token", first["token"]).check()
    assert "came to" not in redsched("claim", "show", "mine").check().output
    redsched("claim", "move", "mine").check()
    other = "h2" if first["host"] == "h1" else "h1"
    lines = redsched("claim", "show", "mine").check().output.splitlines()
    (came,) = [line for line in lines if line.startswith("came to")]
    assert came.startswith(f"came to {other} from {first['host']} at ")
    assert came.endswith("): a call has moved it")


def test_what_did_not_become_active_is_shown_by_attempt(redsched: Redsched) -> None:
    """The table is on stderr, below the error line; stdout stays empty, since nothing was selected."""
    ran = redsched("select", "VCPU=2", "--host", "h1", "--id", "mine", "--until", "active", "--confirm-timeout", "1")
    headline, heads, attempt = ran.errors.splitlines()
    assert (ran.exit_code, ran.output) == (3, "")
    assert headline == "redsched: claim mine was not active in time; everything that was claimed is released"
    assert heads.split() == ["TIME", "CLAIM", "HOST", "KIND"]
    assert attempt.split()[1:] == ["mine", "h1", "not-confirmed", "within", "1", "s"]


def test_a_claim_shows_what_its_end_means_for_its_gang(redsched: Redsched) -> None:
    on_exit = ("--on-exit", "replace", "--gang-on-exit", "replace")
    redsched("select", "VCPU=1", "--count", "2", "--id", "a", "--id", "b", *on_exit).check()
    redsched("select", "VCPU=1", "--id", "alone", *on_exit).check()
    assert "gang_on_exit: replace" in redsched("claim", "show", "a").check().output.splitlines()
    assert redsched("claim", "show", "a", "--json").check().json()["gang_on_exit"] == "replace"
    assert "gang_on_exit" not in redsched("claim", "show", "alone").check().output
    redsched("select", "VCPU=1", "--count", "2", *on_exit[2:]).check_failed(2, "gang_on_exit replace requires on_exit")
