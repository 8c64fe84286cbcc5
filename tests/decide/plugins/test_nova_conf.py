"""REDSCHED_NOVA_CONF: Nova's own classes have its options, and an unusable file is refused, if Nova is installed."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from redsched.decide.plugins.nova.catalogue import FILTER_PACKAGE, WEIGHER_PACKAGE, path_of
from redsched.decide.plugins.registry import plugin_registry
from redsched.errors import InvalidRequest
from redsched.settings import Settings

pytestmark = pytest.mark.filterwarnings("ignore")  # Nova's libraries emit warnings about each other

METRICS = "[metrics]\nweight_setting = power=-2.0\n"
METRICS_WEIGHER = path_of(WEIGHER_PACKAGE, "MetricsWeigher")
METRICS_FILTER = path_of(FILTER_PACKAGE, "MetricsFilter")
COMPUTE_FILTER = path_of(FILTER_PACKAGE, "ComputeFilter")


@pytest.fixture(autouse=True)
def nova() -> None:
    """Skip the tests if Nova is not installed."""
    pytest.importorskip("nova.conf", reason="Nova is not installed")


def load(folder: Path, text: str, **given: Any) -> None:
    """Load the plugins with a nova.conf of this text."""
    file = folder / "nova.conf"
    file.write_text(text)
    plugin_registry(Settings.model_validate({"nova_conf": str(file), **given}))


def test_the_file_has_the_options_of_this_process(tmp_path: Path) -> None:
    for number in (3, 4):
        load(tmp_path, f"[filter_scheduler]\nmax_io_ops_per_host = {number}\n")
        assert import_module("nova.conf").CONF.filter_scheduler.max_io_ops_per_host == number


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[filter_scheduler\n", "which is no valid nova.conf: Failed to parse"),
        ("whatever\n", "which is no valid nova.conf: Failed to parse"),
        (
            "[filter_scheduler]\nmax_io_ops_per_host = many\n",
            "which is no valid nova.conf: Value for option max_io_ops",
        ),
        ("[metrics]\nrequired = perhaps\n", "which is no valid nova.conf: Value for option required"),
        ("service_down_time = x\n", "which is no valid nova.conf: "),
    ],
)
def test_a_file_that_is_no_configuration_is_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=f"^REDSCHED_NOVA_CONF names '.*nova.conf', {message}"):
        load(tmp_path, text)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for file in (tmp_path / "absent", tmp_path, tmp_path / "binary"):
        with pytest.raises(InvalidRequest, match=r"^REDSCHED_NOVA_CONF names '.*', which cannot be read: "):
            plugin_registry(Settings(nova_conf=str(file)))


def test_a_metrics_weigher_that_would_fail_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"^Nova's MetricsWeigher cannot run .*: set required = false"):
        load(tmp_path, METRICS, nova_weighers=(METRICS_WEIGHER,), nova_filters=(METRICS_FILTER,))
    load(tmp_path, METRICS + "required = false\n", nova_weighers=(METRICS_WEIGHER,))
    load(tmp_path, "", nova_weighers=(METRICS_WEIGHER,))


def test_a_compute_filter_that_asks_another_service_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"^Nova's ComputeFilter cannot run here with servicegroup_driver = mc"):
        load(tmp_path, "[DEFAULT]\nservicegroup_driver = mc\n", nova_filters=(COMPUTE_FILTER,))
    load(tmp_path, "", nova_filters=(COMPUTE_FILTER,))
