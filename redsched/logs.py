"""Logging of a redsched process: to stderr, one line per event, at the level of the setting log_level."""

import logging
import sys

import structlog


def configure(level: str) -> None:
    """Set up structlog and the standard logging of libraries. Call it once, at process start."""
    number = logging.getLevelNamesMapping()[level.upper()]
    logging.basicConfig(
        level=max(number, logging.WARNING), stream=sys.stderr, format="%(levelname)s %(name)s %(message)s"
    )
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            # Plain tracebacks: rich ones print the values of locals, and with them the callers' data.
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            ),
        ],
    )
