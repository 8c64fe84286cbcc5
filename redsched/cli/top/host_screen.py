"""The screen of one host in `redsched top`: its slots, and what is on it."""

from collections.abc import Callable
from functools import partial
from typing import ClassVar

from rich.console import Group
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Static

from redsched.cli.fleet import Fleet
from redsched.cli.top import pictures
from redsched.cli.top.reading import HostState, read_host, repeat
from redsched.errors import RedschedError


class HostScreen(Screen[None]):
    """One host, read again at each interval. `end` is called with an error that nobody expected."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "dismiss", "Back")]

    def __init__(self, fleet: Fleet, host: str, every_s: float, end: Callable[[Exception], None]) -> None:
        super().__init__()
        self._fleet, self._host, self._every_s, self._end = fleet, host, every_s, end
        self._found: HostState | None = None

    def compose(self) -> ComposeResult:
        """Return the widgets."""
        with VerticalScroll():
            yield Static(f"reading {self._host} ...", id="host", markup=False)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Read the host from now on."""
        read = partial(read_host, self._fleet, self._host)
        self.run_worker(repeat(read, self._show, self._fail, self._end, self._every_s))

    def on_resize(self) -> None:
        """Draw it again."""
        if self._found is not None:
            self._show(self._found)

    def _show(self, found: HostState) -> None:
        self._found = found
        self.query_one("#host", Static).update(Group(*pictures.host_text(found, self.size.width)))

    def _fail(self, error: RedschedError) -> None:
        self.query_one("#host", Static).update(Text(f"{self._host} cannot be read: {error}", "red"))
