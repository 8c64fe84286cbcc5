"""A private Redis or Valkey server for one process: its binary, its process, its socket."""
