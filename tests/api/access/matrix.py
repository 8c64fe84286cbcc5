"""Write the table of routes and roles into docs/security.md: python -m tests.api.access.matrix."""

import re
from pathlib import Path

from redsched.api.access.scopes import SCOPES
from redsched.model.role import Role

PAGE = Path("docs/security.md")
BEGIN, END = "<!-- matrix: begin -->", "<!-- matrix: end -->"
ROLES = (Role.TENANT, Role.AGENT, Role.READER, Role.OPERATOR)


def matrix() -> str:
    """Return the table in Markdown."""
    lines = [f"| route | {' | '.join(ROLES)} |", "|---|---|---|---|---|"]
    for (method, path), policy in SCOPES.items():
        cells = ["open"] * len(ROLES) if policy.is_open else [str(policy.access(role)) for role in ROLES]
        lines.append(f"| `{method} {path}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    text = PAGE.read_text()
    PAGE.write_text(re.sub(f"({re.escape(BEGIN)}\n).*?({re.escape(END)})", rf"\g<1>{matrix()}\g<2>", text, flags=re.S))
