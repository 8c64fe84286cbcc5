"""The file of contexts: named fleets, each with its API and token file or its store, and the one in use.

    current: lab
    contexts:
      lab:
        api: https://lab.example.com:8080
        token_file: /home/ann/.config/redsched/lab.token
      here:
        redis_url: unix:///run/redis/redis.sock

It is at $REDSCHED_CONFIG, else in redsched/config.yaml in the user's configuration folder. `redsched context` edits it.
"""

import os
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from redsched.auth.replace_file import written_beside
from redsched.errors import InvalidRequest, NotFound

EXAMPLE = "redsched context set NAME --api https://HOST:8080 --token-file FILE"


class Context(BaseModel):
    """A fleet: how to reach its API, or its store. Its fields are settings."""

    model_config = ConfigDict(extra="forbid")

    api: Annotated[str, Field(description="URL of the API.")] = ""
    token_file: Annotated[str, Field(description="File with the token for it.")] = ""
    api_ca: Annotated[str, Field(description="Authorities of its certificate (PEM).")] = ""
    api_cert: Annotated[str, Field(description="Certificate of yours for it (PEM).")] = ""
    api_key: Annotated[str, Field(description="The key of that certificate (PEM).")] = ""
    api_insecure: Annotated[bool, Field(description="Allow plain http to another machine.")] = False
    redis_url: Annotated[str, Field(description="URL of the store, instead of an API.")] = ""

    @model_validator(mode="after")
    def _one_of_both(self) -> "Context":
        if bool(self.api) == bool(self.redis_url):
            raise ValueError("give either `api` or `redis_url`")
        return self


class Contexts(BaseModel):
    """The contents of the file."""

    model_config = ConfigDict(extra="forbid")

    current: str = ""
    contexts: dict[str, Context] = Field(default_factory=dict)

    def get(self, name: str) -> Context:
        """Return a context. Raises NotFound."""
        if name not in self.contexts:
            known = ", ".join(sorted(self.contexts)) or f"none yet: `{EXAMPLE}` makes one"
            raise NotFound(f"there is no context {name!r} in {path()}: it has {known}")
        return self.contexts[name]


def path() -> Path:
    """Return the path of the file."""
    if given := os.environ.get("REDSCHED_CONFIG"):
        return Path(given)
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "redsched" / "config.yaml"


def read() -> Contexts:
    """Return the contents of the file; nothing if there is none. Raises InvalidRequest if it cannot be used."""
    file = path()
    try:
        text = file.read_text()
    except (FileNotFoundError, NotADirectoryError):
        return Contexts()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{file} cannot be read: {error}") from error
    import yaml  # takes long to load, and most commands have no such file

    try:
        found: Any = yaml.safe_load(text)
        return Contexts.model_validate(found or {})
    except yaml.YAMLError as error:
        raise InvalidRequest(f"{file} is not YAML: {error}") from error
    except ValidationError as error:
        raise InvalidRequest(f"{file}: {_mistake(error)}: correct the file, or use `redsched context set`") from error


def _mistake(error: ValidationError) -> str:
    """Return what is wrong with the file, and where."""
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        known = Context.model_fields if len(first["loc"]) > 1 else Contexts.model_fields
        return f"{where} is not known: use {', '.join(known)}"
    if not where:
        return "it is not a mapping with `current` and `contexts`"
    return f"{where}: {first['msg'].removeprefix('Value error, ')}"


def write(found: Contexts) -> None:
    """Replace the file, in one step. Only its owner can read it: a URL of a store may have a password."""
    import yaml

    file = Path(os.path.realpath(path()))  # a link, such as one to a folder of dotfiles, stays a link
    text = yaml.safe_dump(found.model_dump(exclude_defaults=True), sort_keys=False)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with written_beside(file, text) as new:
            new.replace(file)
    except OSError as error:
        raise InvalidRequest(f"{file} cannot be written: {error}") from error
