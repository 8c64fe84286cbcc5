"""Commands for people and scripts: `redsched ...`.

    main.py          the way in: errors become one line and an exit code
    commands.py      the table of commands; groups.py makes groups of it, and imports a command when it is called
    context.py       settings, store and event loop of one command       options.py   options that commands share
    tables.py        tables, or JSON with --json                         shutdown.py  how a command that goes on ends
    request_options.py  the request of select and explain                bulk.py      many claims by filters
    completion.py    names that shells complete
    selection.py claims.py claim_verbs.py hosts.py drain_progress.py declared.py quotas.py store.py service.py audit.py
    events.py archive.py
                     one command a function, by subject
    up/              everything on this machine, in one command

A command calls the Scheduler, as the API does, and shows the same JSON.
"""

from redsched.cli.main import main

__all__ = ["main"]
