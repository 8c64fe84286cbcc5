"""What an exported cell is asked on a private store that has it: replays of its claims or of a trace, and plans."""
