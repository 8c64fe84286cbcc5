"""The fault suite: schedulers and agents in processes of their own at work, while everything under them breaks.

    plan      what is played, as a pure function of a seed          faults/   what can break, a class each
    traffic   what schedulers ask for                               world     all that runs, started and ended
    sites     the set-ups of the store, a file each                 fleet     the hosts, and which cell each is of
    scheduler_process, agent_process   the processes                rounds    one round: break, heal, measure, look
    child     a process as the suite sees it                        ledger    what was answered to whom
    nursery   where processes are forked
    works     the machines: what really runs on each host           losses    what a round has cost
    placings  where requests were placed, and when                  view      the store, read raw at one instant
    rules     what must hold at every instant                       ends      what must hold once all is quiet
    watcher   holds instants to the rules while all goes on         tables    what it came to

How to run and read it: docs/faults.md. Nothing here checks redsched with redsched's own checks alone.
"""
