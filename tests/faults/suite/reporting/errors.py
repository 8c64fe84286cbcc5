"""Errors of the suite itself, in one line: they belong to the round in which they occur, and end no plan."""

import traceback

MAX_CHARS = 400
"""Maximum length of an error's text: the errors of servers end with their logs."""


def told(error: BaseException) -> str:
    """Return an error's type, its text, and the place in the code that raised it."""
    text = " ".join(str(error).split())[:MAX_CHARS]
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({_short(frames[-1].filename)}:{frames[-1].lineno} {frames[-1].name})" if frames else ""
    return f"{type(error).__name__}: {text}{where}"


def _short(filename: str) -> str:
    return "/".join(filename.split("/")[-2:])
