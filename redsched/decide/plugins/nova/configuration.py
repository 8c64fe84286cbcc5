"""Nova's own configuration, from the file that REDSCHED_NOVA_CONF names, as Nova's classes read it."""

from importlib import import_module
from pathlib import Path
from typing import Any

from redsched.decide.plugins.nova.catalogue import FILTER_PACKAGE, WEIGHER_PACKAGE, path_of
from redsched.errors import InvalidRequest
from redsched.settings import Settings

SETTING = "REDSCHED_NOVA_CONF"
MISSING = "Nova is not installed here: pip install nova, or remove the setting"
_GROUPS = ("filter_scheduler", "metrics")
_OPTIONS = ("service_down_time", "report_interval", "servicegroup_driver")


def read_nova_conf(file: str) -> None:
    """Read a nova.conf into `nova.conf.CONF`, which is one for the whole process. Do nothing for ''.

    Options that classes of the scheduler read are parsed at once. Raises InvalidRequest if Nova is not installed, or if
    the file is missing, unreadable, no configuration, or has an invalid value of such an option.
    """
    if not file:
        return
    try:
        conf = _conf()
    except ModuleNotFoundError as error:
        raise InvalidRequest(f"{SETTING} is {file!r}, but {_missing(error)}") from error
    try:
        Path(file).read_text()
        conf([], project="nova", default_config_files=[file], default_config_dirs=[])
        _read_options(conf)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{SETTING} names {file!r}, which cannot be read: {error}") from error
    except Exception as error:  # oslo.config's errors have no common base with those of its types
        text = " ".join(str(error).split())
        raise InvalidRequest(f"{SETTING} names {file!r}, which is no valid nova.conf: {text}") from error


def is_missing(error: BaseException) -> bool:
    """Return whether an error says that Nova itself is not installed."""
    return isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == "nova"


def _missing(error: ModuleNotFoundError) -> str:
    return MISSING if is_missing(error) else f"Nova cannot be imported: {error}"


def _read_options(conf: Any) -> None:
    """Read each option of the groups, because oslo.config parses a value when it is first read."""
    for name in _OPTIONS:
        conf[name]
    for group in _GROUPS:
        for name in conf[group]:
            conf[group][name]


def refuse_unusable(settings: Settings) -> None:
    """Raise InvalidRequest if classes of Nova that these settings name would fail with the nova.conf in use."""
    named = {*settings.nova_filters, *settings.nova_weighers}
    if path_of(FILTER_PACKAGE, "ComputeFilter") in named and _conf().servicegroup_driver != "db":
        raise InvalidRequest(
            f"Nova's ComputeFilter cannot run here with servicegroup_driver = {_conf().servicegroup_driver}, because "
            "redsched knows itself which hosts are up: remove it, or use servicegroup_driver = db"
        )
    metrics = _conf().metrics if path_of(WEIGHER_PACKAGE, "MetricsWeigher") in named else None
    if metrics is not None and metrics.required and metrics.weight_setting:
        raise InvalidRequest(
            "Nova's MetricsWeigher cannot run here with [metrics] required = true, because it would fail each request "
            "for which a host lacks a metric: set required = false, and use MetricsFilter to refuse such hosts"
        )


def _conf() -> Any:
    return import_module("nova.conf").CONF
