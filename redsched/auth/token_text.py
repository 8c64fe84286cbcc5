"""The text of a token file with one entry more or less. Comments stay where the file is written in the usual way.

The text is edited by lines, and the result is parsed. If that is not what was intended, the whole file is written anew.
"""

from collections.abc import Callable, Mapping
from typing import Any

import yaml

from redsched.auth.token_file import check_document
from redsched.errors import InvalidRequest
from redsched.yaml_io import parse_yaml

TOKENS = "tokens"
Document = dict[str, Any]


def with_entry(text: str, entry: Mapping[str, Any]) -> str:
    """Return the text with one entry more. Raises InvalidRequest if the file, or the entry in it, is not valid."""
    document = _document(text)
    if entry["id"] in _ids(document):
        raise InvalidRequest(f"token {entry['id']!r} exists: revoke it first, or choose another id")
    wanted = {**document, TOKENS: [*document[TOKENS], dict(entry)]}
    check_document(wanted)
    return _edited(text, wanted, lambda tokens: _inserted(text, tokens, dict(entry)))


def without_entry(text: str, token_id: str) -> str | None:
    """Return the text without an entry; None if there is none with this id. Raises InvalidRequest."""
    document = _document(text)
    ids = _ids(document)
    if token_id not in ids:
        return None
    number = ids.index(token_id)
    left = [one for place, one in enumerate(document[TOKENS]) if place != number]
    return _edited(text, {**document, TOKENS: left}, lambda tokens: _removed(text, tokens, number))


def keeps_comments(before: str, after: str) -> bool:
    """Return whether every comment of a text is in another."""
    comments = [line.strip() for line in before.splitlines() if line.strip().startswith("#")]
    return all(one in after for one in comments)


def _document(text: str) -> Document:
    """Return the content of a file that is valid, or new."""
    document = parse_yaml(text, quotes=False)
    if document is None:
        return {TOKENS: []}
    check_document(document)
    return {TOKENS: [], **document}


def _ids(document: Document) -> list[str]:
    return [one["id"] for one in document[TOKENS]]


def _edited(text: str, wanted: Document, edit: Callable[[yaml.Node | None], str]) -> str:
    edited = edit(_tokens(text))
    try:
        if parse_yaml(edited) == wanted:
            return edited
    except InvalidRequest:
        pass  # flow style, anchors and the like
    return _dumped(wanted)


def _tokens(text: str) -> yaml.Node | None:
    root = yaml.compose(text, yaml.SafeLoader)
    pairs = root.value if isinstance(root, yaml.MappingNode) else []
    return next((value for key, value in pairs if key.value == TOKENS), None)


def _inserted(text: str, tokens: yaml.Node | None, entry: Document) -> str:
    if tokens is None:
        return f"{_ended(text)}{_dumped({TOKENS: [entry]})}"
    if not tokens.value:  # `tokens: []`
        return f"{text[: tokens.start_mark.index].rstrip()}\n{_dumped([entry])}{text[tokens.end_mark.index :].lstrip()}"
    lines = _ended(text).splitlines(keepends=True)
    indent = " " * tokens.start_mark.column
    new = [f"{indent}{line}\n" for line in _dumped([entry]).splitlines()]
    end = _last_line(tokens.value[-1]) + 1
    return "".join([*lines[:end], *new, *lines[end:]])


def _removed(text: str, tokens: yaml.Node | None, number: int) -> str:
    if tokens is None:
        return text
    entry, lines = tokens.value[number], text.splitlines(keepends=True)
    rest = [*lines[: entry.start_mark.line], *lines[_last_line(entry) + 1 :]]
    if len(tokens.value) == 1:
        rest = [line.replace(f"{TOKENS}:", f"{TOKENS}: []", 1) if line.startswith(TOKENS) else line for line in rest]
    return "".join(rest)


def _last_line(node: yaml.Node) -> int:
    """Return the line in which a value ends. That of a mapping in block style is marked at what follows it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _last_line(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.line)


class _Dumper(yaml.SafeDumper):
    """Writes lists of names in one line, and each field of a mapping in its own."""

    def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> yaml.MappingNode:
        return super().represent_mapping(tag, mapping, flow_style is not None and flow_style)


def _dumped(value: object) -> str:
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=1000))


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"
