"""The main screen of `redsched top`: what is wrong, the capacity, the hosts, and the latest events."""

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import ClassVar, TypeVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.widgets import DataTable, Footer, Input, Static

from redsched.cli.fleet import Fleet
from redsched.cli.output.formats import natural
from redsched.cli.top import pictures
from redsched.cli.top.host_screen import HostScreen
from redsched.cli.top.reading import State, read_hosts, read_state, repeat
from redsched.errors import RedschedError
from redsched.model.records.hosts import HostView
from redsched.wording import counted

T = TypeVar("T")

MAX_ROWS = 500
"""The most hosts that are listed. The others are found with a filter, or by another order."""
TALL = 32
"""A terminal with so many lines has room for events."""
EVENT_LINES = 5
CLOCK_S = 1.0
HELP = """\
arrows  move; Page Up and Page Down too
Enter   the host: its slots and claims. Esc: back
s       sort by the next of {orders}
/       filter by parts of name, zone and state: az1 down. Esc: all hosts
q       quit, as Ctrl-C
?       close this help

USED: by claims and external usage. AWAY: free on hosts that take none.
FULLEST: the slot of a host of which the most is used."""


class HostTable(DataTable[Text | str]):
    """The table of hosts, which shows its key."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select_cursor", "Host")]


class TopApp(App[None]):
    """The application. `source`: how the fleet is reached. `failed` has what has ended it, if anything did."""

    CSS = """
    Static { height: auto; }
    #headline { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    #problems, #help, #filter, #events { display: none; }
    #problems { max-height: 5; }
    #capacity, #title { margin-top: 1; }
    #title { text-style: bold; }
    #hosts { height: 1fr; background: transparent; }
    #filter { border: none; height: 1; padding: 0; }
    #help { border: solid; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "sort", "Sort"),
        Binding("slash", "filter", "Filter", key_display="/", priority=True),  # before the next key is read
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", show=False, priority=True),
        Binding("escape", "all", show=False),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, fleet: Fleet, source: str, every_s: float) -> None:
        super().__init__(ansi_color=True)
        self._fleet, self._source, self._every_s = fleet, source, every_s
        self._state: State | None = None
        self._hosts: Sequence[HostView] | None = None
        self._read_s = 0.0
        self._order = next(iter(pictures.ORDERS))
        self._found = 0
        """How many hosts match the filter."""
        self.failed: Exception | None = None

    def compose(self) -> ComposeResult:
        """Return the widgets, from the top."""
        yield Static(f"{self._source}  reading ...", id="headline", markup=False)
        yield Static(id="problems", markup=False)
        yield Static(id="capacity", markup=False)
        yield Static(id="title", markup=False)
        yield HostTable(id="hosts", cursor_type="row")
        yield Static(id="events", markup=False)
        yield Static(HELP.format(orders=", ".join(pictures.ORDERS)), id="help", markup=False)
        yield Input(id="filter", placeholder="filter: parts of name, zone and state; Esc: all hosts", compact=True)
        yield Footer()

    def on_mount(self) -> None:
        """Read from now on."""
        self._table.add_columns(*pictures.HOST_HEADS)
        self._table.focus()
        self.set_interval(CLOCK_S, self._show_title)
        self.run_worker(self._follow(partial(read_state, self._fleet), self._show_state))
        self.run_worker(self._follow(partial(read_hosts, self._fleet), self._show_hosts))

    def on_resize(self, _: Resize) -> None:
        """Draw everything again, for the new size."""
        self._draw()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - textual's
        """Return whether a key has its meaning on the screen that is shown."""
        return len(self.screen_stack) == 1 or action not in ("sort", "filter", "help", "all")

    def action_sort(self) -> None:
        """Sort by the next order."""
        orders = list(pictures.ORDERS)
        self._order = orders[(orders.index(self._order) + 1) % len(orders)]
        self._draw_hosts()

    def action_filter(self) -> None:
        """Ask for a filter."""
        self._filter.display = True
        self.screen.set_focus(self._filter)

    def action_all(self) -> None:
        """Close the help and the filter, and show all hosts."""
        self._filter.clear()
        self._filter.display = self.query_one("#help").display = False
        self._table.focus()

    def action_help(self) -> None:
        """Show or hide the help."""
        found = self.query_one("#help")
        found.display = not found.display

    def on_input_changed(self) -> None:
        """Filter while it is typed."""
        self._draw_hosts()

    def on_input_submitted(self) -> None:
        """Keep the filter, and go back to the hosts."""
        self._table.focus()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Show the host."""
        if event.row_key.value is not None:
            self.push_screen(HostScreen(self._fleet, event.row_key.value, self._every_s, self._end))

    @property
    def _table(self) -> HostTable:
        return self.query_one("#hosts", HostTable)

    @property
    def _filter(self) -> Input:
        return self.query_one("#filter", Input)

    async def _follow(self, read: Callable[[], Awaitable[T]], show: Callable[[T], None]) -> None:
        await repeat(read, show, self._fail, self._end, self._every_s)

    def _end(self, error: Exception) -> None:
        self.failed = error  # the command raises it: a screen that no longer follows would look like a quiet fleet
        self.exit()

    def _show_state(self, state: State) -> None:
        self._state = state
        self._draw_state()

    def _show_hosts(self, hosts: Sequence[HostView]) -> None:
        self._hosts, self._read_s = hosts, time.monotonic()
        self._draw_hosts()

    def _fail(self, error: RedschedError) -> None:
        """Say what is wrong above what was read before."""
        self.query_one("#headline", Static).update(Text(f"trying again: {error}  ({self._source})", "bold red"))

    def _draw(self) -> None:
        self._draw_state()
        self._draw_hosts()

    def _draw_state(self) -> None:
        state, width = self._state, self.size.width
        if state is None:
            return
        self.query_one("#headline", Static).update(pictures.headline(self._source, state))
        shown = self.query_one("#problems", Static)
        shown.display = not state.report.healthy
        shown.update(pictures.problems(state))
        self.query_one("#capacity", Static).update(pictures.capacity(state.capacity, width))
        events = self.query_one("#events", Static)
        events.display = self.size.height >= TALL and bool(state.events)
        events.update(pictures.events(state.events, EVENT_LINES))

    def _draw_hosts(self) -> None:
        """Fill the table again, and keep the cursor on its host."""
        if self._hosts is None:
            return
        table, width = self._table, self.size.width
        found = self._chosen()
        self._found = len(found)
        before = self._at_cursor()
        table.clear()
        for one in found[:MAX_ROWS]:
            table.add_row(*pictures.host_row(one, width), key=one.name)
        if before in table.rows:
            table.move_cursor(row=table.get_row_index(before), animate=False)
        self._show_title()

    def _at_cursor(self) -> str:
        table = self._table
        if not table.row_count:
            return ""
        return table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value or ""

    def _chosen(self) -> list[HostView]:
        by = pictures.ORDERS[self._order]
        found = [one for one in self._hosts or () if pictures.matches(one, self._filter.value)]
        return sorted(found, key=lambda one: (by(one), natural(one.name)))

    def _show_title(self) -> None:
        if self._hosts is None:
            return
        found, shown = self._found, self._table.row_count
        hosts = counted(len(self._hosts), "host")
        number = f"{found} of {hosts}" if self._filter.value else hosts
        first = f", the first {shown}" if shown < found else ""
        age = round(time.monotonic() - self._read_s)
        self.query_one("#title", Static).update(f"{number} by {self._order}{first}, read {age} s ago")
