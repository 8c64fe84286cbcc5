"""The fault suite: schedulers and agents run in processes of their own, while everything beneath them breaks.

    plan      what is played, as a pure function of a seed          faults/   what can break, a class each
    traffic   the requests of schedulers                            world     all processes, started and ended
    sites     the set-ups of the store, a file each                 fleet     the hosts and their cells
    scheduler_process, agent_process   the processes                rounds    one round: break, heal, measure, check
    child     a process as the suite sees it                        ledger    the answers that each owner got
    nursery   forks the processes
    works     the machines: what really runs on each host           losses    what a round has lost
    placings  where requests were placed, and when                  view      the store, read raw at one instant
    rules     what must hold at every instant                       ends      what must hold once all is quiet
    watcher   checks the rules continuously                         tables    the results

How to run it and read its output: docs/faults.md. Nothing here is checked by redsched's own checks alone.
"""
