"""Comparing epochs as the store writes them: `<ms>-<first 8 of the replication id>`; they only grow."""


def is_newer(epoch: str, than: str) -> bool:
    """Whether `epoch` was minted after `than`; every epoch is newer than none ('')."""
    return _key(epoch) > _key(than)


def _key(epoch: str) -> tuple[int, str]:
    ms, _, replica = epoch.partition("-")
    return (int(ms) if ms.isdecimal() else 0, replica)
