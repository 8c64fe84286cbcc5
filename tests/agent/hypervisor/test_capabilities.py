"""What is read of libvirt's XML, and the error where its binding is missing."""

import sys

import pytest

from redsched.agent.hypervisor.capabilities import Capabilities, expanded_features
from redsched.agent.hypervisor.connection import load_libvirt
from redsched.errors import InvalidRequest

HOST = """
<capabilities>
  <host>
    <uuid>0f9a</uuid>
    <cpu>
      <arch>x86_64</arch><model>Skylake-Server-IBRS</model><vendor>Intel</vendor>
      <topology sockets='1' dies='1' cores='16' threads='2'/>
      <feature name='vmx'/><feature name='avx512vnni'/>
    </cpu>
    <topology><cells num='2'><cell id='0'/><cell id='1'/></cells></topology>
  </host>
</capabilities>"""


def test_capabilities_of_a_real_host_are_read() -> None:
    found = Capabilities.from_xml(HOST)
    assert (found.arch, found.model, found.numa_nodes) == ("x86_64", "Skylake-Server-IBRS", 2)
    assert found.features == {"vmx", "avx512vnni"}
    assert found.cpu.startswith("<cpu>")


def test_missing_parts_are_empty() -> None:
    assert Capabilities.from_xml("<capabilities><host/></capabilities>") == Capabilities("", "", frozenset(), 0, "")


def test_disabled_features_are_not_features() -> None:
    cpu = "<cpu><feature policy='require' name='avx2'/><feature policy='disable' name='hle'/></cpu>"
    assert expanded_features(cpu) == {"avx2"}


def test_without_the_binding_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "libvirt", None)
    with pytest.raises(InvalidRequest, match=r"redsched\[libvirt\]"):
        load_libvirt()
