"""The schedulers of `tests/scheduler`, on which an operator's calls are tested."""

from tests.scheduler.conftest import efforts, scheduler, two_cells

__all__ = ["efforts", "scheduler", "two_cells"]
