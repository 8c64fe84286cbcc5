"""Where hosts' reports come from: fleet files, the local file, parts of a machine."""
