"""The table of operations: a scheduler, the models of the API and the methods of clients agree on their arguments."""

import inspect
from typing import Any

import pytest
from pydantic import BaseModel

from redsched.api import app, operations
from redsched.api.operations import model_of
from redsched.operations.claims import Claims
from redsched.operations.declared import Aggregates, Quotas, ServerGroups, SharedPools
from redsched.operations.events import Events
from redsched.operations.fleet import Fleet, RestFleet
from redsched.operations.operation import IF_MATCH, BaseOperation
from redsched.operations.plans import Plans
from redsched.operations.table import ALL, BY_ROUTE
from redsched.scheduler import Scheduler
from tests.support.builders.cells import usual_settings

OF_REST = {"idempotency_key", "fields"}
"""What only clients have: a scheduler takes a Request, with claim ids."""
WHOLE = {"wanted", "request", "reports"}
"""Arguments that are several parameters of a route, or a body as a whole."""
BODIES_OF_THEIR_OWN = (Plans.with_hosts, Fleet.select, Fleet.explain)
"""Operations whose body is not made of their arguments."""


async def test_a_scheduler_has_each_operation_with_its_parameters(clean_store: str) -> None:
    """In their order, with the same defaults."""
    async with Scheduler.connect(clean_store, usual_settings(), on_demand=True) as scheduler:
        for operation in ALL:
            if operation is RestFleet.about:
                continue
            own = inspect.signature(operation.on(scheduler)).parameters
            wanted = {name: one for name, one in operation.signature.parameters.items() if name not in OF_REST}
            assert [name for name in own if name in wanted] == list(wanted), operation.name
            assert all(own[name].kind is not inspect.Parameter.POSITIONAL_ONLY for name in wanted), operation.name
            different = {name: own[name].default for name, one in wanted.items() if own[name].default != one.default}
            assert not different, operation.name


@pytest.mark.parametrize("operation", BY_ROUTE.values(), ids=lambda one: one.name)
def test_a_route_reads_what_its_operation_takes(operation: BaseOperation[Any, Any]) -> None:
    """Each parameter is in the path, in the query or in the body; with the default that it has in Python."""
    route, parameters = operation.route, dict(operation.signature.parameters)
    if operation in (Aggregates.put, ServerGroups.put, SharedPools.put, Quotas.put, *BODIES_OF_THEIR_OWN):
        assert route.body
        return
    of_models = [model_of(name).model_fields for name in (route.query, route.body) if name]
    fields = {name: one for model in of_models for name, one in model.items()}
    in_path = {name for name in parameters if f"{{{name}}}" in route.path}
    is_filtered = "wanted" in parameters or operation is Events.list
    assert parameters.keys() - in_path - {IF_MATCH} - WHOLE <= fields.keys()
    assert is_filtered or fields.keys() <= parameters.keys()
    assert (IF_MATCH in parameters) == bool(route.conditions)
    for name, one in fields.items():
        if name in parameters and not one.is_required() and name not in ("limit", *WHOLE):
            default = parameters[name].default
            assert (one.get_default(call_default_factory=True) or None) == (default or None) or name == "by", name


def test_every_model_of_a_route_is_one() -> None:
    names = {name for one in BY_ROUTE.values() for name in (one.route.query, one.route.body) if name}
    assert all(isinstance(model_of(name), type) for name in names)
    assert issubclass(model_of("ClaimsQuery"), BaseModel)


def test_a_route_with_a_restricted_role_needs_a_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it would answer with what everybody's claims are."""
    assert app.HANDLERS  # they are registered as the application is imported
    monkeypatch.delitem(operations._HANDLERS, Claims.list.route.key)
    with pytest.raises(LookupError, match=r"claims\.list .*register a handler"):
        operations.router(lambda _: True)
