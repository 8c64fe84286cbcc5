"""What the API refuses because of a token, in the words of the command line: its commands, options and settings."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from redsched.errors import Forbidden, RedschedError, Unauthenticated
from redsched.model.role import Role

if TYPE_CHECKING:
    from redsched.settings import Settings

MAY = {
    Role.TENANT: (
        "A tenant's token places, shows and ends claims of its projects (`redsched run`, `select`, `explain`, `claim`, "
        "`events`, `quota`), and `redsched capacity` shows what is free to them"
    ),
    Role.AGENT: (
        "An agent's token is for `redsched agent`; it shows its own hosts (`redsched host show`) and the claims on "
        "them (`redsched claim list`)"
    ),
    Role.READER: "A reader's token shows everything, makes plans and dry runs, and changes nothing",
}
"""What commands a token of each role can be used with."""


@contextmanager
def in_words_of_commands(settings: "Settings") -> Iterator[None]:
    """Raise refusals of the API at these settings in words of the command line. All other errors pass."""
    try:
        yield
    except Unauthenticated as error:
        raise _unauthenticated(error, settings) from error
    except Forbidden as error:
        raise _forbidden(error) from error


def _unauthenticated(error: Unauthenticated, settings: "Settings") -> RedschedError:
    if settings.token_file:
        return Unauthenticated(f"the token in {settings.token_file} is refused: {error.detail}", error.facts)
    found, name = f"the API at {settings.api} wants a token, and", settings.context
    if name:
        missing = f"{found} context {name} names no file with one"
        return Unauthenticated(
            f"{missing}: give --token-file FILE, or set the context again with it, by {_set(name, settings)}"
        )
    missing = f"{found} none is named: give --token-file FILE or set REDSCHED_TOKEN_FILE"
    return Unauthenticated(f"{missing}, or keep both in a context: {_set('NAME', settings)}")


def _set(name: str, settings: "Settings") -> str:
    return f"`redsched context set {name} --api {settings.api} --token-file FILE`"


def _forbidden(error: Forbidden) -> RedschedError:
    """Return a refusal of a role without the words for routes; another one as it is."""
    facts = error.facts
    if not (facts.caller and facts.needs and facts.role in MAY):
        return error
    return Forbidden(
        f"the token of {facts.caller!r} has the role {facts.role}, and this command needs {' or '.join(facts.needs)}. "
        f"{MAY[facts.role]}. Ask an operator if that is not enough",
        facts,
    )
