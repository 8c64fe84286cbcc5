"""How long decisions may take, and the process that makes those that take longer."""
