"""The command line `redsched`, for people and scripts.

    main.py          the entry point: errors become one line and an exit code
    commands.py      the table of commands; groups.py builds groups from it, and imports a command when it is called
    fleet.py         which fleet a command is about, and opening it     contexts.py  the file of named fleets
    running.py       event loop and signals of one command              options.py   options that commands share
    request_options.py  the request of `select`, `explain` and `run`    files.py     files that commands write
    completion.py    names that shells complete
    verbs/           one function per command, by subject               output/      what commands print
    job/ top/        `redsched run` and `logs`; `redsched top`
    up/              everything on this machine, in one command

Commands call the Scheduler, as the API does, or the client of the API, which has the same methods; `--json` is the JSON
of the API.
"""

from redsched.cli.main import main

__all__ = ["main"]
