"""Logging of a redsched process: to stderr, one line per event, at the level of the setting log_level.

With log_format `json` each line is a JSON object: those of redsched, of its libraries, and what ends a process.

structlog is imported at the first event: importing it takes a sixth of the time of a command, and most log nothing.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from redsched import origin

if TYPE_CHECKING:
    from structlog.typing import EventDict, FilteringBoundLogger


def get_logger(name: str) -> "FilteringBoundLogger":
    """Return a logger that writes as `configure` has set up."""
    return cast("FilteringBoundLogger", _LazyLogger(name))


def configure(level: str, is_json: bool = False) -> None:
    """Set up structlog and the standard logging of libraries. Call it once, at process start."""
    number = logging.getLevelNamesMapping()[level.upper()]
    handler = logging.StreamHandler(_STDERR)
    handler.setFormatter(_JsonFormatter() if is_json else logging.Formatter("%(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=max(number, logging.WARNING), handlers=[handler])
    _LazyLogger.level, _LazyLogger.is_json = number, is_json
    _configured.cache_clear()


class _Stderr:
    """Writes to what stderr is at the time: progress drawn there takes it over, to stay below what is logged."""

    def write(self, text: str) -> int:
        """Write a text."""
        return sys.stderr.write(text)

    def flush(self) -> None:
        """Flush what was written."""
        sys.stderr.flush()


_STDERR = _Stderr()


class _JsonFormatter(logging.Formatter):
    """Formats what libraries log as a line of JSON with the names that the lines of redsched have."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields = {
            "event": record.getMessage(),
            "logger": record.name,
            "level": record.levelname.lower(),
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z"),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields)


class _LazyLogger:
    """Stands for structlog's logger of this name, which it creates for each use."""

    level: int | None = None
    """The level of the process; None until it is configured."""
    is_json = False

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, method: str) -> Any:
        return getattr(_configured().get_logger(self._name), method)


def _add_origin(_logger: object, _method: str, event: "EventDict") -> "EventDict":
    """Add who caused what is logged, and by which request, unless the event names them itself; '' names nobody."""
    current = origin.current()
    for name, value in (("actor", current.actor), ("request_id", current.request_id)):
        if not event.setdefault(name, value):
            del event[name]
    return event


@cache
def _configured() -> Any:
    import structlog

    if _LazyLogger.level is not None:
        structlog.configure(
            wrapper_class=structlog.make_filtering_bound_logger(_LazyLogger.level),
            logger_factory=structlog.PrintLoggerFactory(_STDERR),  # type: ignore[arg-type]
            processors=[
                structlog.contextvars.merge_contextvars,
                _add_origin,
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                *(_json_lines() if _LazyLogger.is_json else _text_lines()),
            ],
        )
    return structlog


def _text_lines() -> list[Any]:
    """Return the processors that end in a line of text, and a traceback below it."""
    import structlog

    # Plain tracebacks: rich ones print the values of locals, and with them the callers' data.
    return [
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)
    ]


def _json_lines() -> list[Any]:
    """Return the processors that end in a JSON object with the traceback in `exception`."""
    import structlog

    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
