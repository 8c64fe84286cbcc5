"""Export and import a cell; `redsched.offline` replays an export."""
