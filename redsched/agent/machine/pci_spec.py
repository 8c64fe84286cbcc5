"""The PCI devices to offer: the entries of REDSCHED_PCI_DEVICES, in the manner of Nova's [pci]device_spec.

{"vendor_id": "8086", "product_id": "1572", "address": "0000:3b:*", "resource_class": "CUSTOM_NIC_X", "traits": [...]}
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import Any

from redsched.agent.machine.pci import PciDevice
from redsched.errors import InvalidRequest
from redsched.model.validation import check_class, check_trait

_ID = re.compile(r"[0-9a-f]{4}\Z")
_ADDRESS = re.compile(r"[0-9a-f*?\[\]!:.-]{1,64}\Z")


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """One entry. Omitted fields match every device; the default class is CUSTOM_PCI_<vendor>_<product>, as in Nova."""

    vendor_id: str = "*"
    product_id: str = "*"
    address: str = "*"
    resource_class: str = ""
    traits: frozenset[str] = frozenset()

    def matches(self, device: PciDevice) -> bool:
        """Return whether the entry matches a device. A physical function's address matches its virtual ones too."""
        return (
            self.vendor_id in ("*", device.vendor)
            and self.product_id in ("*", device.product)
            and (fnmatchcase(device.address, self.address) or self.address == device.physical != "")
        )

    def class_of(self, device: PciDevice) -> str:
        """Return the resource class that counts the device."""
        return self.resource_class or f"CUSTOM_PCI_{device.vendor}_{device.product}".upper()


def read_specs(entries: Sequence[Mapping[str, Any]]) -> list[DeviceSpec]:
    """Parse the setting. Raises InvalidRequest with one line that names the entry."""
    specs = []
    for number, entry in enumerate(entries, 1):
        try:
            specs.append(_read(entry))
        except InvalidRequest as error:
            raise InvalidRequest(f"pci_devices, entry {number}: {error}") from error
    return specs


def _read(entry: Mapping[str, Any]) -> DeviceSpec:
    known = [field.name for field in fields(DeviceSpec)]
    unknown = sorted(entry.keys() - set(known))
    if unknown:
        raise InvalidRequest(f"unknown key {unknown[0]!r}: use {', '.join(known)}")
    if not entry.keys() & {"vendor_id", "product_id", "address"}:
        raise InvalidRequest("it would offer every device: give vendor_id, product_id or address")
    return DeviceSpec(
        vendor_id=_pci_id("vendor_id", entry),
        product_id=_pci_id("product_id", entry),
        address=_address(entry),
        resource_class=check_class(_text("resource_class", entry["resource_class"]))
        if "resource_class" in entry
        else "",
        traits=_traits(entry.get("traits", [])),
    )


def _pci_id(word: str, entry: Mapping[str, Any]) -> str:
    text = _text(word, entry.get(word, "*")).lower().removeprefix("0x")
    if text != "*" and not _ID.match(text):
        raise InvalidRequest(f"{word} {text[:20]!r} is not an id: use four hexadecimal digits, such as 8086")
    return text


def _address(entry: Mapping[str, Any]) -> str:
    text = _text("address", entry.get("address", "*")).lower()
    if not _ADDRESS.match(text):
        raise InvalidRequest(
            f"address {text[:40]!r} is not a PCI address: use one such as 0000:3b:00.0, with * as a wildcard"
        )
    return text


def _traits(value: object) -> frozenset[str]:
    if not isinstance(value, list):
        raise InvalidRequest(f"traits must be a list, not {value!r:.80}")
    return frozenset(check_trait(_text("a trait", trait)) for trait in value)


def _text(word: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(f"{word} must be text, not {value!r:.80}: put it in quotes")
    return value
