"""What people write for redsched by hand: YAML, and with it JSON, read strictly. Fleet files, requests, options."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from redsched.errors import InvalidRequest


def read_text(what: str, path: Path) -> str:
    """The text of a file that is a `what`. Raises InvalidRequest in one line that names it."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidRequest(f"{what} {path} cannot be read: {reason}") from error


def parse_yaml(text: str) -> Any:
    """The value of a YAML text. Raises InvalidRequest in one line."""
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise InvalidRequest(f"not YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise InvalidRequest("not YAML that can be read: nested too deeply") from error


class _Loader(yaml.SafeLoader):
    """SafeLoader lets the last of two equal keys win in silence; a host or amount would be lost without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        for key in keys:
            if isinstance(key, Hashable) and keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} is given twice", node.start_mark)
        return super().construct_mapping(node, deep)
