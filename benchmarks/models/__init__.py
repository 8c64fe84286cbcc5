"""Scheduling models compared: the same fleet and requests, with 1 to 8 scheduler processes. See docs/benchmarks.md.

work        the fleet, the requests and the options of a run
hosts       the host process: the books of every host, which find over-commitments
views       the state of hosts as schedulers see it, and the filtering and weighing that most models share
filter_scheduler, caching_scheduler, shared_state, placement_service, redsched_model    one model each
registry    the list of models: a new one is a module with a `MODEL`, and a line there
processes   one run: the store, the host process, services and schedulers
checks      what a run shows: over-commitments, wrong refusals, lost and repeated placements
figures, report    the rows, the table and the plots
"""
