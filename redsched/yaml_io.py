"""Strict reading of files written by hand, in YAML or JSON: fleet files, requests, options."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from redsched.errors import InvalidRequest


def read_text(what: str, path: Path) -> str:
    """Return the text of a file. Raises InvalidRequest, in one line with the path and `what` the file is."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidRequest(f"{what} {path} cannot be read: {reason}") from error


def parse_yaml(text: str) -> Any:
    """Return the value of a YAML text. Raises InvalidRequest, in one line, if it is malformed."""
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise InvalidRequest(f"not YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise InvalidRequest("not readable as YAML: nested too deeply") from error


class _Loader(yaml.SafeLoader):
    """A SafeLoader that rejects duplicate keys. SafeLoader silently keeps the last one, which would drop hosts."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        for key in keys:
            if isinstance(key, Hashable) and keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} is given twice", node.start_mark)
        return super().construct_mapping(node, deep)
