"""Whether what has changed in the columns may have made room for a request that was refused.

Without affinity and other dynamic rules, a request can only become possible through a host that has changed, and that
passes the rules for one of its places. Testing that for the changed hosts costs much less than deciding again.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.decide.rules import Rule
from redsched.decide.work_limit import check_work
from redsched.model import Request


class Gains:
    """The changes since a request was refused, or since the last of the checks. `kinds` are the rules of its places."""

    def __init__(self, columns: Columns, requests: Iterable[Request], kinds: Iterable[tuple[Rule, ...]]) -> None:
        self.columns = columns
        # Rules about room reject most hosts, and at once.
        self._kinds = [tuple(sorted(rules, key=lambda rule: not rule.room)) for rules in kinds]
        has_affinity = any(one.server_group or one.spread for one in requests)
        self._is_dynamic = has_affinity or any(rule.dynamic for rules in self._kinds for rule in rules)
        self._seen, self._revision = -1, -1

    def may_matter(self) -> bool:
        """Return whether to decide again, because of changes since the last call. The first call returns True."""
        columns = self.columns
        changed = columns.dirty.since(self._seen) if self._seen >= 0 else None
        is_declared = columns.declared.revision != self._revision or bool(columns.declared.pools)
        self._seen, self._revision = columns.dirty.now, columns.declared.revision
        if changed is None or is_declared or self._is_dynamic:
            return True
        rows = np.fromiter(changed, np.intp, len(changed))
        return any(self._takes(rules, rows) for rules in self._kinds) if len(rows) else False

    def _takes(self, rules: tuple[Rule, ...], rows: NDArray[np.intp]) -> bool:
        check_work("looking for room that has come free")
        rows = rows[self.columns.present[rows]]
        for rule in rules:
            if not len(rows):
                return False
            rows = rows[rule.passes(self.columns, rows)]
        return bool(len(rows))
