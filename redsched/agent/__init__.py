"""The agent: reports hosts to the store and runs their claims. `run` is the entry point."""

from redsched.agent.collectors.base import Collector, Named, Observation, StaticCollector, Work, load_collector
from redsched.agent.collectors.fleet import fleet, parse_fleet, read_fleet, simulated
from redsched.agent.journal.file import JournalBroken
from redsched.agent.machine.collector import MachineCollector
from redsched.agent.run import default_journal, run

__all__ = [
    "Collector",
    "JournalBroken",
    "MachineCollector",
    "Named",
    "Observation",
    "StaticCollector",
    "Work",
    "default_journal",
    "fleet",
    "load_collector",
    "parse_fleet",
    "read_fleet",
    "run",
    "simulated",
]
