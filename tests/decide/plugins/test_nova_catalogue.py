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
VARIABLES = {FILTER_PACKAGE: "REDSCHED_NOVA_FILTERS", WEIGHER_PACKAGE: "REDSCHED_NOVA_WEIGHERS"}
CLASSES = {FILTER_PACKAGE: FILTERS, WEIGHER_PACKAGE: WEIGHERS}
EVERY = [(package, name, one) for package, classes in CLASSES.items() for name, one in classes.items()]


@pytest.mark.parametrize(("package", "name", "one"), [one for one in EVERY if one[2].refused])
def test_a_class_that_cannot_run_is_refused_with_what_to_use_instead(package: str, name: str, one: NovaClass) -> None:
    with pytest.raises(InvalidRequest) as caught:
        plugin_registry(Settings.model_validate({SETTINGS[package]: (path_of(package, name),)}))
    assert str(caught.value) == (
        f"{VARIABLES[package]} names '{path_of(package, name)}', which decides by Nova's {name}; that cannot run here, "
        f"because {one.refused}: remove it, use {one.native}"
    )


JSON_FILTER = type(
    "JsonFilter",
    (novas.BaseFilter,),
    {"__module__": f"{FILTER_PACKAGE}.json_filter", "host_passes": lambda *_: True},
)
IMAGES = type(
    "ImagePropertiesWeigher",
    (novas.BaseWeigher,),
    {"__module__": f"{WEIGHER_PACKAGE}.image_props", "_weigh_object": lambda *_: 0.0},
)


@pytest.mark.parametrize("alias", [JSON_FILTER, type("Heir", (JSON_FILTER,), {})])
def test_a_class_is_refused_by_whatever_path_and_heir_it_is_named(alias: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(novas, "Alias", alias, raising=False)
    message = (
        "^REDSCHED_NOVA_FILTERS names 'tests.support.fleets.novas.Alias', which decides by Nova's JsonFilter; that"
    )
    with pytest.raises(InvalidRequest, match=message):
        plugin_registry(Settings(nova_filters=("tests.support.fleets.novas.Alias",)))


@pytest.mark.parametrize(
    ("package", "base", "method"),
    [
        (FILTER_PACKAGE, JSON_FILTER, "host_passes"),
        (FILTER_PACKAGE, JSON_FILTER, "_filter_one"),
        (FILTER_PACKAGE, JSON_FILTER, "filter_all"),
        (WEIGHER_PACKAGE, IMAGES, "_weigh_object"),
        (WEIGHER_PACKAGE, IMAGES, "weigh_objects"),
    ],
)
def test_a_class_that_derives_from_a_refused_one_and_decides_itself_is_not_refused(
    package: str, base: type, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(novas, "Alias", type("Heir", (base,), {method: lambda *_: []}), raising=False)
    settings = Settings.model_validate({SETTINGS[package]: ("tests.support.fleets.novas.Alias",)})
    assert plugin_registry(settings).reads_projects


@pytest.mark.parametrize(("package", "name", "one"), [one for one in EVERY if not one[2].refused])
def test_without_nova_its_classes_are_refused_because_it_is_missing(package: str, name: str, one: NovaClass) -> None:
    if _has_nova():
        pytest.skip("Nova is installed")
    message = (
        f"^{VARIABLES[package]} names '{path_of(package, name)}', but Nova is not installed here: pip install nova"
    )
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
