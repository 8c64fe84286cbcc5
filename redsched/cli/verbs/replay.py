"""`redsched replay`: place a workload on a private store, under several policies."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
import uvloop

from redsched.cli import options
from redsched.cli.files import write_whole
from redsched.cli.fleet import settings_for
from redsched.cli.options import AsJson
from redsched.cli.output import progress, tables
from redsched.decide.plugins.registry import plugin_registry
from redsched.errors import InvalidRequest
from redsched.model import Request
from redsched.model.units import without_units
from redsched.offline.arrivals import arrivals_of
from redsched.offline.fleet_meter import classes_of
from redsched.offline.replay import MAX_PLACES, Replayed, check_policies, replay as replay_on
from redsched.offline.trace import Trace, is_trace, read_trace
from redsched.operate.backup import archive as archives
from redsched.store.embedded.server import PrivateServer
from redsched.yaml_io import read_text

HEADS = ("POLICY", "PLACED", "REFUSED", "HOSTS", "GUESSED", "FILL%", "PEAK%", "FRAGMENTED%")
OWN_POLICY = "their own"


def replay(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="File written by `redsched export`, or a trace; - for stdin.")
    ],
    policy: Annotated[
        list[str] | None, typer.Option("--policy", help="Weigh by this policy, not by the requests' own. Repeatable.")
    ] = None,
    resource_class: Annotated[
        str,
        typer.Option("--class", metavar="CLASS", help="Class of fill and fragmentation. Default: the fullest."),
    ] = "",
    picture: Annotated[
        str, typer.Option("--picture", metavar="FILE.png", help="Draw fill, fragmentation and refusals over time.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Replay an exported cell or a trace on a private store, and compare policies."""
    _check_picture(picture)
    trace = _read(file)
    _check_class(resource_class, trace)
    settings, found = settings_for(), list[Replayed]()
    policies, registry = policy or [""], plugin_registry(settings)
    for one in policies:  # all of them, before the first is played
        check_policies(trace.arrivals, one, registry)
    for one in policies:
        with PrivateServer.start() as server, progress.shown(f"replaying {one}".strip()):
            found.append(uvloop.run(replay_on(server.url, trace.fleet, trace.arrivals, settings, one)))
    shown = resource_class or _fullest(found)
    if picture:
        from redsched.cli.output.picture import picture as png

        write_whole(Path(picture), png([(one.policy or OWN_POLICY, one) for one in found], shown))
    if as_json:
        return tables.show_json({"class": shown, "replays": [_fields(one) for one in found]})
    tables.show_table(HEADS, [_row(one, shown) for one in found], "nothing to replay")
    print(f"FILL%, PEAK% and FRAGMENTED% are of {shown}.")
    return None


def _check_picture(path: str) -> None:
    """Refuse, before a replay that takes minutes, a picture that could not be written. Raises InvalidRequest."""
    if not path:
        return
    from redsched.cli.output.picture import check_matplotlib

    check_matplotlib()
    if not path.endswith(".png"):
        raise InvalidRequest(f"--picture {path}: pictures are PNG files: use a name that ends with .png")
    if not Path(path).parent.is_dir():
        raise InvalidRequest(f"--picture {path}: the folder {Path(path).parent} does not exist: create it first")


def _read(file: str) -> Trace:
    text = sys.stdin.read() if file == "-" else read_text("file", Path(file))
    lines = text.splitlines()
    try:
        if lines and is_trace(lines[0]):
            trace = read_trace(lines, _request)
        else:
            archive = archives.read(lines)
            trace = Trace(archive, tuple(arrivals_of(archive)))
    except InvalidRequest as error:
        raise InvalidRequest(f"{file}, {error.detail}") from error
    places = sum(one.request.places for one in trace.arrivals)
    if not 0 < places <= MAX_PLACES:
        raise InvalidRequest(f"{file} requests {places} places: a replay needs 1 to {MAX_PLACES} of them")
    return trace


def _request(body: dict[str, Any]) -> Request:
    return options.as_model(without_units(body), Request)


def _check_class(wanted: str, trace: Trace) -> None:
    classes = classes_of(one.request for one in trace.arrivals)
    if wanted and wanted not in classes:
        raise InvalidRequest(f"--class {wanted}: no request asks for it: use one of {', '.join(classes)}")


def _fullest(found: Sequence[Replayed]) -> str:
    return max(sorted(found[0].fill), key=lambda name: max(one.fill[name] for one in found))


def _row(one: Replayed, shown: str) -> Sequence[object]:
    parts = (f"{100 * of[shown]:.1f}" for of in (one.fill, one.peak, one.fragmentation))
    return (one.policy or OWN_POLICY, one.placed, one.refused, one.hosts, one.guessed, *parts)


def _fields(one: Replayed) -> dict[str, object]:
    return asdict(one) | {"fill": one.fill, "peak": one.peak, "fragmentation": one.fragmentation}
