"""Compare epochs and tokens in the store's format; both only grow.

An epoch is `<ms>-<first 8 of the replication id>`, a token `<epoch>.<seq>`.
"""


def is_newer(epoch: str, than: str) -> bool:
    """Return whether `epoch` was issued after `than`; every epoch is newer than none ('')."""
    return _key(epoch) > _key(than)


def is_newer_token(token: str, than: str) -> bool:
    """Return whether `token` was issued after `than`: by epoch, then by seq. Every token is newer than none ('')."""
    return _token_key(token) > _token_key(than)


def _token_key(token: str) -> tuple[tuple[int, str], int]:
    epoch, _, seq = token.rpartition(".")
    return _key(epoch), int(seq) if seq.isdecimal() else 0


def _key(epoch: str) -> tuple[int, str]:
    ms, _, replica = epoch.partition("-")
    return (int(ms) if ms.isdecimal() else 0, replica)
