"""The grammar: nouns with verbs, plurals, -h, suggestions for unknown commands, and what `--help` imports."""

import re
import subprocess
import sys

import pytest

from redsched.cli.commands import ELSEWHERE, ELSEWHERE_OF, NOUNS, PANELS, VERBS, entries, plural
from redsched.cli.main import run as run_here
from tests.cli.conftest import Redsched
from tests.cli.parts import run

GRAMMAR = {
    "host": ["list", "show", "drain", "enable", "disable", "write-off", "remove"],
    "claim": ["list", "show", "release", "confirm", "renew", "fail", "move", "resize", "shelve", "unshelve"],
    **{noun: ["list", "show", "set", "delete"] for noun in ("quota", "aggregate", "server-group", "shared-pool")},
    "plan": ["capacity", "drain", "without", "rebalance", "with"],
    "function": ["install", "show"],
    "context": ["list", "show", "use", "set", "delete"],
    "token": ["list", "new", "revoke"],
}
UNKNOWN = {
    "noun": (("hsot",), "`host`"),
    "plural": (("clams",), "`claims`"),
    "command": (("selct",), "`select`"),
    "verb": (("host", "lst"), "`host list`"),
    "verb of a plural": (("hosts", "drian", "h1"), "`hosts drain`"),
    "verb without its noun": (("release", "mine"), "`claim release`"),
    "verb of several nouns": (("delete", "a"), "`quota delete` or `aggregate delete` or `server-group delete`"),
}
LIGHT = {"redsched.cli.commands", "redsched.cli.groups", "redsched.cli.main"}
HELP = "import sys; from redsched.cli.main import run; run(['--help']); print(*sys.modules, file=sys.stderr)"


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Run a command that succeeds, and return its output."""
    assert run_here(words) == 0
    return capsys.readouterr().out


def test_commands_are_nouns_with_verbs_and_single_words() -> None:
    assert {name: list(noun.verbs) for name, noun in NOUNS.items()} == GRAMMAR
    placing, looking = "run select explain logs", "status top capacity events audit"
    running = "up api agent acl export import replay init upgrade"
    assert set(VERBS) == {*placing.split(), *looking.split(), *running.split()}


@pytest.mark.parametrize("words", entries())
def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str], words: str) -> None:
    """-h equals --help, and the usage line has the whole command."""
    said = shown(capsys, *words.split(), "-h")
    assert said == shown(capsys, *words.split(), "--help")
    assert f"redsched {words} " in said


@pytest.mark.parametrize("noun", NOUNS)
def test_a_noun_lists_its_verbs_also_by_its_plural(capsys: pytest.CaptureFixture[str], noun: str) -> None:
    lines = shown(capsys, noun, "-h")
    assert all(f" {verb} " in lines for verb in NOUNS[noun].verbs)
    assert shown(capsys, plural(noun), "-h") == lines.replace(f"redsched {noun} ", f"redsched {noun}s ").replace(
        "COMMAND [ARGS]...  ", "COMMAND [ARGS]... ", 1
    )


def test_a_plural_takes_verbs_and_lists_without_one(redsched: Redsched) -> None:
    listed = redsched("host", "list", "--zone", "az1").check().output
    assert redsched("hosts", "list", "--zone", "az1").check().output == listed
    assert redsched("hosts", "--zone", "az1").check().output == listed
    assert redsched("shared-pools").check().output == "no shared pools\n"
    assert redsched("hosts", "disable", "h1").check().output == "h1 is disabled\n"


@pytest.mark.parametrize(("words", "meant"), UNKNOWN.values(), ids=UNKNOWN)
def test_an_unknown_command_suggests_the_nearest(words: tuple[str, ...], meant: str) -> None:
    run(*words).check_failed(2, "No such command", f"Did you mean {meant}", "--help` shows how")


@pytest.mark.parametrize(
    ("typed", "meant"),
    {
        "squeue": "`redsched claim list`",
        "sinfo": "`redsched host list`",
        "nodes": "`redsched host list`",
        "ps": "`redsched claim list`",
        "sbatch": "`redsched run --detach`",
        "scancel": "`redsched claim release`",
        "kubectl": "`redsched host list` or `redsched claim list`",
        "cordon": "`redsched host disable`",
        "undrain": "`redsched host enable`",
        "host undrain": "`redsched host enable`",
        "hosts uncordon": "`redsched host enable`",
        "host cordon": "`redsched host disable`",
        "claim cancel": "`redsched claim release`",
    }.items(),
)
def test_a_command_of_another_scheduler_is_translated(typed: str, meant: str) -> None:
    run(*typed.split(), "h1").check_failed(2, f"No such command {typed.split()[-1]!r}", f"Use {meant}")


@pytest.mark.parametrize("typed", ELSEWHERE)
def test_words_of_other_schedulers_lead_to_commands_that_exist(typed: str) -> None:
    assert typed not in {*NOUNS, *VERBS, *map(plural, NOUNS)}
    exist(*ELSEWHERE[typed])


@pytest.mark.parametrize("noun", ELSEWHERE_OF)
def test_verbs_of_other_schedulers_lead_to_commands_that_exist(noun: str) -> None:
    assert not ELSEWHERE_OF[noun].keys() & NOUNS[noun].verbs.keys()
    exist(*dict.fromkeys(command for commands in ELSEWHERE_OF[noun].values() for command in commands))


def exist(*commands: str) -> None:
    """Check that these commands exist, with the option that they are given."""
    for command in commands:
        words, _, option = command.partition(" --")
        said = run(*words.split(), "--help").check().output
        assert not option or f"--{option.split()[0]}" in said


def test_an_unknown_command_that_is_like_no_other_suggests_none() -> None:
    assert "Did you mean" not in run("xyzzy").check_failed(2, "'xyzzy'", "`redsched --help` shows how")


def test_an_unknown_option_points_to_the_help_of_its_command() -> None:
    run("host", "list", "--jsn").check_failed(2, "--json", "`redsched host list --help`")


def test_each_command_is_under_one_head_of_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    named = [name for names in PANELS.values() for name in names]
    assert {*NOUNS, *VERBS} - set(named) == set(), "PANELS has no head for them, so `redsched` does not know them"
    assert sorted(named) == sorted([*NOUNS, *VERBS])
    text = shown(capsys, "--help")
    assert [head for head in PANELS if f" {head} " not in text] == []


@pytest.mark.parametrize("words", ["host list", "claim release", "select", "plan rebalance"])
def test_the_help_has_no_types_of_python(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, *words.split(), "--help")
    options = text[text.index(" Options ") :]
    assert re.findall(r"<(?:bool|str|int|list)\b", options) == []


def test_help_imports_no_command() -> None:
    """It starts without Redis, pydantic, numpy and the commands' modules, which take most of a command's time."""
    ran = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, timeout=60, check=True)
    modules = ran.stderr.split()
    assert "write-off" not in ran.stdout
    assert "server-group" in ran.stdout
    assert {one for one in modules if one.startswith("redsched.cli.")} == LIGHT
    heavy = ("redis", "hiredis", "pydantic", "numpy", "asyncio", "uvloop", "structlog")
    assert [one for one in modules if one.split(".")[0] in heavy] == []
    assert {one for one in modules if one.startswith("redsched.")} - LIGHT == {
        "redsched.cli",
        "redsched.errors",
        "redsched.exports",
    }
