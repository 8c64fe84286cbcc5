"""The summary that `redsched up` prints once everything is ready: addresses, and lines to try."""

import json
import textwrap
from collections.abc import Sequence

from redsched.cli.up.readiness import first_request
from redsched.cli.up.stack import LocalStack
from redsched.store.topology.url import Kind, parse, without_password

COLUMNS = 80
"""What the summary fits into, unless a path or URL alone is longer."""
INDENT = " " * 9
"""Before the further lines of a text."""
COMMANDS = ("look", "shell", "try")
"""What people paste into a shell: it is not wrapped."""
HEADER_FILE = "me.header"
"""A file with the header of a token: on the command line of curl, other users of the machine could see the token."""
FIRST_HOST = {"inventories": {"VCPU": {"total": 8}}}


def started(everything: LocalStack) -> None:
    """Print the summary."""
    url = everything.workers.url
    lines = {
        "API": f"{url}  (workers: {everything.options.workers})",
        "page": f"{url}/  (the fleet, in a browser)",
        "docs": f"{url}/docs",
        "store": _store(everything),
        "hosts": _hosts(everything),
        "look": _redis_cli(everything),
        "shell": f"export REDSCHED_REDIS_URL={without_password(everything.url)}",
        **_auth(everything),
        "try": _curl(everything),
    }
    wrapper = textwrap.TextWrapper(COLUMNS, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False)
    print("redsched is up. Ctrl-C stops everything.")
    for name, said in lines.items():
        line = f"  {name:<6} {said}"
        print(line if name in COMMANDS else wrapper.fill(line), flush=True)


def _store(everything: LocalStack) -> str:
    private = everything.private
    if not private:
        return without_password(everything.url)
    kept = everything.options.data
    end = f"kept in {kept}" if kept else "lost when it stops, unless --data DIR"
    return f"{private.kind} {private.version}, embedded; {end}"


def _hosts(everything: LocalStack) -> str:
    own = ["this machine"] if everything.options.agent else []
    simulated = [f"{everything.simulated} simulated"] if everything.simulated else []
    return " and ".join(own + simulated) or "none started here"


def _redis_cli(everything: LocalStack) -> str:
    if everything.private:
        return f"redis-cli -s {everything.private.socket}"
    store = parse(everything.url)
    host, port = next(iter(store.nodes), ("", 0))
    if store.kind is Kind.SENTINEL:
        return f"redis-cli -h {host} -p {port} SENTINEL GET-MASTER-ADDR-BY-NAME {store.master}"
    if store.kind is Kind.CLUSTER:
        return f"redis-cli -c -h {host} -p {port}"
    return f"redis-cli -u {without_password(everything.url)}"


def _auth(everything: LocalStack) -> dict[str, str]:
    path = everything.settings.auth
    header = f"`Authorization: Bearer TOKEN`, with one of an operator, into {HEADER_FILE}"
    return {"auth": f"tokens of {path}: for the next line, write {header}"} if path else {}


def _curl(everything: LocalStack) -> str:
    url = everything.workers.url
    options = _tls(everything) + ([f"-H @{HEADER_FILE}"] if everything.settings.auth else [])
    first = first_request(everything)
    if first.resources:
        return _command("POST", f"{url}/v1/selections", options, {"resources": first.resources})
    if first.has_hosts:
        return _command("GET", f"{url}/v1/hosts", options)
    return _command("PUT", f"{url}/v1/hosts/h1/report", options, FIRST_HOST)


def _tls(everything: LocalStack) -> list[str]:
    """Return the options of curl for a certificate of an own authority, and for a client's certificate."""
    if not everything.workers.url.startswith("https:"):
        return []
    return ["--cacert CA.pem", *(["--cert CLIENT.pem --key CLIENT.key"] if everything.settings.tls_ca else [])]


def _command(method: str, url: str, options: Sequence[str], body: object = None) -> str:
    """Return a command of curl, in lines that a shell joins."""
    sent = [] if body is None else ["-H 'Content-Type: application/json'", f"-d '{json.dumps(body)}'"]
    return f" \\\n{INDENT}  ".join([f"curl -X {method} {url}", *options, *sent])
