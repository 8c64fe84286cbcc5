"""Fencing tokens and epochs, which only grow, and how to compare them as the store writes them.

An epoch is `<ms>-<first 8 of the replication id>`, a token `<epoch>.<seq>`.
"""

from dataclasses import dataclass

from redsched.errors import InvalidRequest


@dataclass(frozen=True, slots=True, order=True)
class Token:
    """A fencing token: an epoch, then the seq of a placement or resize. Its order is that of the protocol."""

    epoch_ms: int
    epoch_id: str
    seq: int

    @property
    def epoch(self) -> str:
        """The epoch in the store's format: `<ms>-<first 8 of the replication id>`."""
        return f"{self.epoch_ms}-{self.epoch_id}"

    def __str__(self) -> str:
        return f"{self.epoch}.{self.seq}"

    @classmethod
    def parse(cls, text: str) -> "Token":
        """Parse a token such as `1790000000000-9f3a12cd.4711`. Raises InvalidRequest if it is malformed."""
        epoch, _, seq = text.rpartition(".")
        epoch_ms, _, epoch_id = epoch.partition("-")
        if not (epoch_ms.isdecimal() and seq.isdecimal() and epoch_id.isalnum() and text.isascii() and len(text) <= 64):
            raise InvalidRequest(f"token {text[:80]!r} is malformed: pass the token that the claim shows")
        return cls(int(epoch_ms), epoch_id, int(seq))


def began_ms(epoch: str) -> int:
    """Return when an epoch began: the first write after a start, failover or loss of the store (Unix, ms)."""
    return _key(epoch)[0]


def is_newer(epoch: str, than: str) -> bool:
    """Return whether `epoch` was issued after `than`; every epoch is newer than none ('')."""
    return epoch != than and _key(epoch) > _key(than)


def is_newer_token(token: str, than: str) -> bool:
    """Return whether `token` was issued after `than`: by epoch, then by seq. Every token is newer than none ('')."""
    (epoch, _, seq), (than_epoch, _, than_seq) = token.rpartition("."), than.rpartition(".")
    if epoch == than_epoch:  # as most are
        return _seq(seq) > _seq(than_seq)
    return (_key(epoch), _seq(seq)) > (_key(than_epoch), _seq(than_seq))


def _seq(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _key(epoch: str) -> tuple[int, str]:
    ms, _, replica = epoch.partition("-")
    return (int(ms) if ms.isdecimal() else 0, replica)
