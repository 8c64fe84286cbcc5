"""The commands of `redsched`, by the noun that they are about. `redsched.cli.commands` is their table."""
