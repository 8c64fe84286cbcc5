"""Nova's own classes, by name: those that cannot run are refused at start, and the documentation has them all."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from redsched.decide.plugins.nova.catalogue import (
    FILTER_PACKAGE,
    FILTERS,
    WEIGHER_PACKAGE,
    WEIGHERS,
    NovaClass,
    path_of,
)
from redsched.decide.plugins.registry import plugin_registry
from redsched.decide.scoring import weighers
from redsched.errors import InvalidRequest
from redsched.model import Request
from redsched.settings import Settings
from tests.support.fleets import novas

PAGE = Path(__file__).parents[3] / "docs/howto/nova-code.md"
SETTINGS = {FILTER_PACKAGE: "nova_filters", WEIGHER_PACKAGE: "nova_weighers"}
CLASSES = {FILTER_PACKAGE: FILTERS, WEIGHER_PACKAGE: WEIGHERS}
EVERY = [(package, name, one) for package, classes in CLASSES.items() for name, one in classes.items()]


@pytest.mark.parametrize(("package", "name", "one"), [one for one in EVERY if one[2].refused])
def test_a_class_that_cannot_run_is_refused_with_what_to_use_instead(package: str, name: str, one: NovaClass) -> None:
    with pytest.raises(InvalidRequest) as caught:
        plugin_registry(Settings.model_validate({SETTINGS[package]: (path_of(package, name),)}))
    assert str(caught.value) == (
        f"{SETTINGS[package]} names Nova's {name}, which cannot run here, because {one.refused}: "
        f"remove it, use {one.native}"
    )


JSON_FILTER = type("JsonFilter", (), {"__module__": f"{FILTER_PACKAGE}.json_filter", "host_passes": lambda *_: True})


@pytest.mark.parametrize("alias", [JSON_FILTER, type("Heir", (JSON_FILTER,), {})])
def test_a_class_is_refused_by_whatever_path_and_heir_it_is_named(alias: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(novas, "Alias", alias, raising=False)
    with pytest.raises(InvalidRequest, match="nova_filters names Nova's JsonFilter, which cannot run here"):
        plugin_registry(Settings(nova_filters=("tests.support.fleets.novas.Alias",)))


def test_a_class_that_derives_from_a_refused_one_and_decides_itself_is_not_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heir = type("Heir", (JSON_FILTER,), {"host_passes": lambda *_: False})
    monkeypatch.setattr(novas, "Alias", heir, raising=False)
    assert plugin_registry(Settings(nova_filters=("tests.support.fleets.novas.Alias",))).reads_projects


@pytest.mark.parametrize(("package", "name", "one"), [one for one in EVERY if not one[2].refused])
def test_without_nova_its_classes_are_refused_because_it_is_missing(package: str, name: str, one: NovaClass) -> None:
    if _has_nova():
        pytest.skip("Nova is installed")
    message = f"^{SETTINGS[package]} names '{path_of(package, name)}', but Nova is not installed here: pip install nova"
    with pytest.raises(InvalidRequest, match=message):
        plugin_registry(Settings.model_validate({SETTINGS[package]: (path_of(package, name),)}))


def test_without_nova_its_configuration_is_refused(tmp_path: Path) -> None:
    if _has_nova():
        pytest.skip("Nova is installed")
    file = tmp_path / "nova.conf"
    file.touch()
    with pytest.raises(
        InvalidRequest, match=r"^REDSCHED_NOVA_CONF is '.*', but Nova is not installed here: pip install"
    ):
        plugin_registry(Settings(nova_conf=str(file)))


def test_what_is_named_instead_exists() -> None:
    fields = Request.__dataclass_fields__
    known = {*weighers(Settings()), *fields, "nothing", "metadata"}
    for _, _, one in EVERY:
        first = one.native.replace(":", " ").partition(" ")[0].partition(".")[0]
        setting = first.removeprefix("REDSCHED_").lower()
        assert first in known or setting in Settings.model_fields, one


@pytest.mark.parametrize(("heading", "classes"), [("filter", FILTERS), ("weigher", WEIGHERS)])
def test_the_page_has_the_classes_that_the_code_knows(heading: str, classes: Mapping[str, NovaClass]) -> None:
    found = [[cell.strip().replace("`", "") for cell in row.strip("|").split("|")] for row in _table(heading)]
    assert found == [
        [name, f"refused: {one.refused}" if one.refused else "runs", one.native] for name, one in classes.items()
    ]


def _table(heading: str) -> list[str]:
    """Return the rows of the table with this first heading."""
    lines = PAGE.read_text().splitlines()
    start = lines.index(f"| {heading} of Nova | here | of redsched |") + 2
    return lines[start : lines.index("", start)]


def _has_nova() -> bool:
    try:
        import nova  # type: ignore[import-not-found]  # noqa: F401
    except ModuleNotFoundError:
        return False
    return True
