"""Sources of hosts' reports: fleet files, the local file, components of a machine."""
