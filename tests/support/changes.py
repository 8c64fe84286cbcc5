"""How many files a change of the code takes that is made again and again, such as a field of a claim.

    scripts/count-changes claim-field [--keep FOLDER]
    scripts/count-changes operation [--keep FOLDER]

Makes the change in a clone of this checkout, as its page of docs/howto says, runs the tests that it adds and those
which look for what is missing, and prints the files that changed. `--keep` leaves the clone in a new folder.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Edit:
    """Text that goes before the first line of a file that begins with `before`; '' for a file that is new."""

    path: str
    before: str
    text: str


@dataclass(frozen=True, slots=True)
class Change:
    """The edits of a change, the programs that write further files, and the tests that must pass."""

    page: str
    edits: Sequence[Edit]
    tests: Sequence[str]
    writers: Sequence[str] = ()


NOTE_TEST = '''"""A note that a request gives its claims is kept, shown, and brought back by hosts."""

from dataclasses import replace

from redsched.client import Client
from redsched.settings import Settings
from tests.cli.conftest import Redsched, served
from tests.scheduler.claims.test_after_a_wipe import MINE, brought_back
from tests.scheduler.working import at_work


def test_a_note_is_shown_by_commands_and_the_client(redsched: Redsched, store: str) -> None:
    redsched("select", "VCPU=1", "--id", "noted", "--note", "for Ann").check()
    redsched("select", "VCPU=1", "--id", "plain").check()
    assert "note: for Ann" in redsched("claim", "show", "noted").check().output
    listed = redsched("claim", "list", "--json").check().json()["claims"]
    assert {one["claim_id"]: one.get("note") for one in listed} == {"noted": "for Ann", "plain": None}
    with served(Settings(redis_url=store)) as url, Client(url) as client:
        client.select({"VCPU": 1}, claim_ids=("again",), note="for Bob")
        assert client.claims.get("again").note == "for Bob"
        assert {one.claim_id: one.note for one in client.claims.list()} == {
            "again": "for Bob",
            "noted": "for Ann",
            "plain": "",
        }


async def test_a_host_brings_a_note_back_to_a_store_that_was_wiped(clean_store: str) -> None:
    async with at_work(clean_store, 4, 4) as work:
        assert (await brought_back(work, clean_store, replace(MINE, note="for Ann"))).note == "for Ann"
'''

CLAIM_FIELD = Change(
    "docs/howto/add-a-claim-field.md",
    (
        Edit("redsched/store/codec/claim_fields.py", "    one_of,", "    matching,\n"),
        Edit(
            "redsched/store/codec/claim_fields.py",
            '    Field("host", PLACEMENT,',
            '    Field(\n        "note",\n        CLAIM,\n        "A note for people; absent if there is none.",\n'
            '        matching(r"[ -~]{1,64}"),\n        journaled=True,\n        survives=True,\n'
            '        carried=True,\n        absent="",\n'
            "    ),\n",
        ),
        Edit(
            "redsched/model/claims.py",
            "    host_condition: Annotated[",
            '    note: Annotated[str, Field(description="A note. Absent if empty.", exclude_if=not_)] = ""\n',
        ),
        Edit(
            "redsched/model/request_fields.py",
            "    payload: Annotated[",
            "    note: Annotated[\n"
            '        str, Field(max_length=64, description="A note for people, kept with the claims.")\n    ] = ""\n',
        ),
        Edit(
            "redsched/model/request_validation.py",
            '    check_range("max_runtime_s"',
            "    if len(request.note) > 64 or not (request.note.isascii() and request.note.isprintable()):\n"
            '        raise InvalidRequest(f"note must be up to 64 ASCII characters, not {request.note[:80]!r}")\n',
        ),
        Edit(
            "redsched/cli/verbs/selection.py",
            '    claim_id: Annotated[list[str], typer.Option("--id", help=f"{about(\'claim_ids\')}',
            '    note: Annotated[str, typer.Option(help=about("note"), show_default=False)] = "",\n',
        ),
        Edit("redsched/cli/verbs/selection.py", "        claim_ids=claim_id,", "        note=note,\n"),
        Edit("redsched/cli/verbs/claims.py", '        "owner": found.owner,', '        "note": found.note,\n'),
        Edit(
            "docs/rest.md",
            "| `claim_ids` | generated |",
            "| `note` | none | A note for people, up to 64 characters. |\n",
        ),
        Edit("docs/rest.md", "`max_runtime_s`, `runtime_deadline_ms`,", "`note`,\n"),
        Edit("docs/cli.md", "| `--on-exit` |", "| `--note` | A note for people, which `claim show` shows. |\n"),
        Edit("CHANGELOG.md", "- ", "- `note` of a request: a note for people, kept with its claims.\n"),
        Edit("tests/store/test_attested.py", '    "owner": "oidc:a b",', '    "note": "for Ann",\n'),
        Edit("tests/cli/test_note.py", "", NOTE_TEST),
    ),
    (
        "tests/cli/test_note.py",
        "tests/store/test_attested.py",
        "tests/store/test_claim_fields.py",
        "tests/unit/documented/test_documented_keys.py",
        "tests/unit/documented/test_documented_ways_in.py",
        "tests/unit/documented/test_documented.py",
        "tests/unit/documented/test_documented_commands.py",
        "tests/unit/test_bodies.py",
        "tests/unit/test_records.py",
    ),
    writers=("tests.support.claim_rows",),
)
PING_TEST = '''"""A host is pinged the same way on a scheduler and over REST."""

from redsched.errors import NotFound
from redsched.operations.hosts import Hosts
from tests.contract.parts import Play, contract


@contract(Hosts.ping)
async def test_pinging(play: Play) -> None:
    assert (await play.does("h1", cell="c1")).alive
    await play.refuses(NotFound, "h9")
'''

OPERATION = Change(
    "docs/howto/add-an-operation.md",
    (
        Edit(
            "redsched/model/records/hosts.py",
            "Slots = Annotated[",
            "@dataclass(frozen=True, slots=True)\nclass Ping:\n"
            '    """Whether a host is heard of."""\n\n    host: str\n    alive: bool\n\n\n',
        ),
        Edit(
            "redsched/operations/hosts.py",
            "from redsched.model.records.hosts import",
            "from redsched.model.records.hosts import Ping\n",
        ),
        Edit(
            "redsched/operations/hosts.py",
            '    @operation(_word("enable_host"',
            "    @operation(\n        Route(\n"
            '            id="ping_host",\n            method="GET",\n            path=f"{HOST}/ping",\n'
            '            tag="hosts",\n            summary="Ping a host",\n            policy=READ,\n'
            "            answers={200: Ping},\n            errors=(NotFound, ClaimState),\n"
            '            query="HostQuery",\n        )\n    )\n'
            '    def ping(self, host: str, cell: str = "") -> Ping:\n'
            '        """Return whether a host is heard of."""\n\n',
        ),
        Edit(
            "redsched/scheduler/hosts/hosts.py",
            "from redsched.model.records.hosts import",
            "from redsched.model.records.hosts import Ping\n",
        ),
        Edit(
            "redsched/scheduler/hosts/hosts.py",
            "    async def enable(",
            '    async def ping(self, host: str, cell: str = "") -> Ping:\n'
            '        """Return whether a host is heard of. Raises as `get`."""\n'
            "        return Ping(host, (await self.get(host, cell)).alive)\n\n",
        ),
        Edit("redsched/api/examples.py", '    "HostView": HOST,', '    "Ping": {"host": "h17", "alive": True},\n'),
        Edit(
            "docs/rest.md",
            "| `GET /v1/hosts/{host}/drain` |",
            "| `GET /v1/hosts/{host}/ping` | Whether it is heard of. |\n",
        ),
        Edit(
            "tests/api/http/test_openapi.py",
            '        "GET /v1/hosts/{host}/drain",',
            '        "GET /v1/hosts/{host}/ping",\n',
        ),
        Edit("docs/howto/python-client.md", "| `hosts.get`", "| `hosts.ping` | Whether a host is heard of. |\n"),
        Edit("CHANGELOG.md", "- ", "- `hosts.ping` and its route: whether a host is heard of.\n"),
        Edit("tests/contract/test_ping.py", "", PING_TEST),
    ),
    (
        "tests/contract/test_ping.py",
        "tests/contract/test_complete.py",
        "tests/api/access/test_scopes.py::test_the_documented_matrix_is_the_table",
        "tests/api/http/test_openapi.py::test_the_document_has_every_route_of_the_contract",
        "tests/unit/test_operations.py",
        "tests/unit/test_records.py",
        "tests/unit/documented/test_documented_client.py",
        "tests/unit/documented/test_documented_ways_in.py",
    ),
    writers=("tests.api.access.matrix",),
)
CHANGES: Mapping[str, Change] = {"claim-field": CLAIM_FIELD, "operation": OPERATION}


def apply(change: Change, root: Path) -> None:
    """Make the edits of a change in a checkout. Raises LookupError if a file has no such line."""
    for one in change.edits:
        path = root / one.path
        path.write_text(inserted(path.read_text(), one) if one.before else one.text)


def inserted(text: str, edit: Edit) -> str:
    """Return a file's text with an edit. Raises LookupError if it has no such line."""
    lines = text.splitlines(keepends=True)
    at = next((number for number, line in enumerate(lines) if line.startswith(edit.before)), None)
    if at is None:
        raise LookupError(f"{edit.path} has no line that begins with {edit.before!r}: mend the edit")
    return "".join((*lines[:at], edit.text, *lines[at:]))


def count(change: Change, clone: Path) -> list[str]:
    """Return the files that a change takes, made in a new clone. Raises CalledProcessError if a test fails there."""
    subprocess.run(("git", "clone", "--quiet", "--shared", ROOT, clone), check=True)
    apply(change, clone)
    here = {**os.environ, "PYTHONPATH": os.fspath(clone)}
    for writer in change.writers:
        subprocess.run((sys.executable, "-m", writer), cwd=clone, env=here, check=True)
    subprocess.run(("git", "add", "--all"), cwd=clone, check=True)
    tests = (sys.executable, "-m", "pytest", "-q", "-n", "0", *change.tests)
    subprocess.run(tests, cwd=clone, env=here, check=True)
    listed = ("git", "diff", "--cached", "--name-only")
    return subprocess.run(listed, cwd=clone, check=True, capture_output=True, text=True).stdout.splitlines()


def main() -> None:
    """Make a change in a clone, and print its files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("change", choices=CHANGES)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave the clone in a new folder")
    asked = parser.parse_args()
    with TemporaryDirectory() as folder:
        files = count(CHANGES[asked.change], asked.keep or Path(folder, "clone"))
    print(*files, f"{len(files)} files", sep="\n")


if __name__ == "__main__":
    main()
