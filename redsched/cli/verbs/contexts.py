"""`redsched context list`, `show`, `use`, `set`, `delete`: the fleets that commands know by name."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from redsched.cli import contexts
from redsched.cli.contexts import Context
from redsched.cli.options import named, takes
from redsched.cli.output import tables
from redsched.cli.output.formats import in_names
from redsched.cli.output.listings import Column, Form, Listing
from redsched.errors import InvalidRequest
from redsched.store.topology.url import check_url, without_password


def _names(_context: typer.Context, incomplete: str) -> Sequence[str]:
    try:
        return [name for name in contexts.read().contexts if name.startswith(incomplete)]
    except InvalidRequest:
        return []


Name = Annotated[str, named("NAME", "The context's name.", "context", _names)]


@takes(Form, "form")
def list_contexts(form: Form) -> None:
    """List the contexts, and which one commands use."""
    found = contexts.read()
    rows = [(name, one, name == found.current) for name, one in in_names(found.contexts)]
    shown = {"current": found.current, "contexts": [{"name": name, **_shown(one)} for name, one, _ in rows]}
    LISTING.show(rows, lambda: shown, form)


def show(name: Name) -> None:
    """Show one context as YAML. A password is left out."""
    tables.show_yaml(_shown(contexts.read().get(name)))


def use(name: Name) -> None:
    """Use this context when neither options nor the environment name a fleet."""
    found = contexts.read()
    found.get(name)
    contexts.write(found.model_copy(update={"current": name}))
    print(f"commands use context {name} now")


def set_context(
    name: Name,
    api: Annotated[str, typer.Option("--api", metavar="URL", help="URL of the API.", show_default=False)] = "",
    token_file: Annotated[
        str, typer.Option("--token-file", metavar="FILE", help="File with the token.", show_default=False)
    ] = "",
    api_ca: Annotated[
        str,
        typer.Option("--api-ca", metavar="FILE", help="Authorities of its certificate (PEM).", show_default=False),
    ] = "",
    api_cert: Annotated[
        str, typer.Option("--api-cert", metavar="FILE", help="Certificate of yours for it (PEM).", show_default=False)
    ] = "",
    api_key: Annotated[
        str, typer.Option("--api-key", metavar="FILE", help="The key of that certificate (PEM).", show_default=False)
    ] = "",
    insecure: Annotated[bool, typer.Option("--insecure", help="Allow plain http to another machine.")] = False,
    url: Annotated[
        str, typer.Option("--url", metavar="URL", help="URL of the store, instead of an API.", show_default=False)
    ] = "",
) -> None:
    """Create a context, or replace it. The first one is used at once."""
    if bool(api) == bool(url):
        raise InvalidRequest("a context names one fleet: give either --api or --url")
    files = {"token_file": token_file, "api_ca": api_ca, "api_cert": api_cert, "api_key": api_key}
    absolute = {option: str(Path(file).expanduser().absolute()) for option, file in files.items() if file}
    if url and (absolute or insecure):
        raise InvalidRequest("--url names a store, which needs no token file or certificates of an API: leave them out")
    one = Context(api=api, redis_url=url, api_insecure=insecure, **absolute)
    _check(one)
    found = contexts.read()
    found.contexts[name] = one
    contexts.write(found.model_copy(update={"current": found.current or name}))
    used = "" if (found.current or name) == name else f"; `redsched context use {name}` uses it"
    print(f"context {name} is set{used}")


def _check(one: Context) -> None:
    """Raise InvalidRequest for a URL or a file that no command could use."""
    if one.redis_url:
        check_url(one.redis_url)
        return
    from redsched.rest import TokenFile, checked_url, tls_context  # loads OpenSSL

    checked_url(one.api, one.api_insecure, "--insecure")
    TokenFile(one.token_file)
    tls_context(one.api_ca, one.api_cert, one.api_key)


def delete(name: Name) -> None:
    """Delete a context."""
    found = contexts.read()
    found.get(name)
    del found.contexts[name]
    contexts.write(found.model_copy(update={"current": "" if found.current == name else found.current}))
    print(f"context {name} is deleted")


def _shown(one: Context) -> dict[str, object]:
    found = one.model_dump(exclude_defaults=True)
    return found | {"redis_url": without_password(one.redis_url)} if one.redis_url else found


LISTING: Listing[tuple[str, Context, bool]] = Listing(
    (
        Column("CONTEXT", lambda one: one[0]),
        Column("USED", lambda one: one[2], leave=3),
        Column("FLEET", lambda one: one[1].api or without_password(one[1].redis_url), leave=2),
        Column("TOKEN FILE", lambda one: one[1].token_file, leave=1),
    ),
    name=lambda one: one[0],
    empty=f"no contexts: `{contexts.EXAMPLE}` makes one",
)
