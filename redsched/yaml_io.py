"""Strict reading of files written by hand, in YAML or JSON: fleet files, requests, options."""

from collections import Counter
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from redsched.errors import InvalidRequest

MAX_VALUES = 5_000_000
"""The most values of a file, with each alias (`*name`) counted as what it stands for: a fleet of 100,000 hosts."""


def read_text(what: str, path: Path) -> str:
    """Return the text of a file. Raises InvalidRequest, in one line with the path and `what` the file is."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidRequest(f"{what} {path} cannot be read: {reason}") from error


def parse_yaml(text: str, quotes: bool = True) -> Any:
    """Return the value of a YAML text. Raises InvalidRequest, in one line, if it is malformed.

    `quotes`: whether the error may quote the text, which must not be shown where it may be a secret.
    """
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            _check_size(node)
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise InvalidRequest(f"not YAML: {_problem(error, quotes)}") from error
    except RecursionError as error:
        raise InvalidRequest("not readable as YAML: nested too deeply") from error
    except InvalidRequest:
        raise
    except (ValueError, LookupError, AttributeError, OverflowError) as error:
        # PyYAML's constructors let these through: a date such as 2026-02-30, `!!bool maybe`, `!!timestamp soon`.
        raise InvalidRequest(f"not YAML: a value is not of its type: {type(error).__name__}") from error


def _problem(error: yaml.YAMLError, quotes: bool) -> str:
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    if quotes or mark is None:
        return " ".join(str(error).split()) if quotes else "it has characters that YAML does not allow"
    return f"line {mark.line + 1}, column {mark.column + 1} cannot be parsed"


def _check_size(root: yaml.Node) -> None:
    """Raise InvalidRequest if the values are too many once aliases are expanded, or an alias contains itself.

    A few lines of nested aliases stand for billions of values, which any walk over them would visit.
    """
    sizes: dict[int, int] = {}
    stack = [(root, False)]
    while stack:
        node, is_done = stack.pop()
        parts = _parts(node)
        if is_done:
            sizes[id(node)] = 1 + sum(sizes[id(part)] for part in parts)
            if sizes[id(node)] > MAX_VALUES:
                raise InvalidRequest(f"its aliases stand for more than {MAX_VALUES} values: write fewer of them")
        elif id(node) not in sizes:
            sizes[id(node)] = MAX_VALUES  # until it is done: an alias that contains itself is never smaller
            stack.append((node, True))
            stack += [(part, False) for part in parts]


def _parts(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


class _Loader(yaml.SafeLoader):
    """A SafeLoader that rejects duplicate keys. SafeLoader silently keeps the last one, which would drop hosts."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        twice = [key for key, times in Counter(key for key in keys if isinstance(key, Hashable)).items() if times > 1]
        if twice:
            raise yaml.constructor.ConstructorError(None, None, f"{twice[0]!r} is given twice", node.start_mark)
        return super().construct_mapping(node, deep)
