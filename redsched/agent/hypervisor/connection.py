"""A connection to libvirtd that is opened when it is needed, and again after it was lost."""

from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

from redsched import extras

T = TypeVar("T")

ABSENT = (
    "VIR_ERR_NO_DOMAIN",
    "VIR_ERR_NO_STORAGE_POOL",
    "VIR_ERR_NO_SUPPORT",
    "VIR_ERR_CONFIG_UNSUPPORTED",
    "VIR_ERR_OPERATION_UNSUPPORTED",
)
"""libvirt's errors for what does not exist, or what the hypervisor does not support."""


def load_libvirt() -> ModuleType:
    """Import the binding of libvirt, and keep it from printing errors. Raises InvalidRequest without it."""
    with extras.required():
        import libvirt
    libvirt.registerErrorHandler(lambda *_: None, None)  # by default it prints each error that it raises too
    module: ModuleType = libvirt
    return module


class Connection:
    """A connection to `uri`."""

    def __init__(self, uri: str, libvirt: ModuleType) -> None:
        self._uri, self._libvirt = uri, libvirt
        self._open: Any = None

    def read(self, what: Callable[[Any], T]) -> T:
        """Return what is read of the open connection. Raises OSError if that fails; the next call reopens it."""
        try:
            if self._open is None:
                self._open = self._libvirt.openReadOnly(self._uri)
            return what(self._open)
        except self._libvirt.libvirtError as error:
            self._open = None
            raise OSError(f"libvirt at {self._uri} (REDSCHED_LIBVIRT_URI) cannot be read: {error}") from error

    def or_none(self, what: Callable[[], T]) -> T | None:
        """Return what a function reads; None if libvirt has no such thing, or its hypervisor cannot tell.

        Other errors, such as a domain that is busy for too long, are raised: then it is not known what there is.
        """
        try:
            return what()
        except self._libvirt.libvirtError as error:
            if error.get_error_code() not in {getattr(self._libvirt, name) for name in ABSENT}:
                raise
            return None
