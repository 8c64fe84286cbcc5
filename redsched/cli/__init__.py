"""The command line `redsched`, for people and scripts.

    main.py          the entry point: errors become one line and an exit code
    commands.py      the table of commands; groups.py builds groups from it, and imports a command when it is called
    context.py       settings, store and event loop of one command       options.py   options that commands share
    tables.py        tables, or JSON with --json                         shutdown.py  shutdown of long-running commands
    request_options.py  the request of select and explain                bulk.py      many claims by filters
    replay_picture.py  the picture of replays                            files.py      files that commands write
    completion.py    names that shells complete
    selection.py claims.py claim_verbs.py hosts.py drain_progress.py declared.py quotas.py store.py api.py agent.py
    audit.py events.py archive.py replay.py
                     one function per command, by subject
    up/              everything on this machine, in one command

Commands call the Scheduler, as the API does, and show the same JSON.
"""

from redsched.cli.main import main

__all__ = ["main"]
