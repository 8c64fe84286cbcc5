"""Commands for people and scripts: `redsched ...`.

    main.py        the way in: errors become one line and an exit code     options.py  options that commands share
    with_store.py  settings, store and event loop of one command           tables.py   tables, or JSON with --json
    asked.py       what is asked for, of select and explain                ending.py  how a command that goes on ends
    claims.py verbs.py hosts.py declared.py quotas.py store.py service.py audit.py events.py archive.py
                   one command a function, by subject
    up.py          everything on this machine, in one command: everything.py what runs, awaiting.py, saying.py

A command calls the Scheduler, as the API does, and shows the same JSON.
"""

from redsched.cli.main import main

__all__ = ["main"]
