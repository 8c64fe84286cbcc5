"""The kernel's CPU flags are mapped to the traits of os-traits."""

from pathlib import Path

import pytest

from redsched.agent.machine import cpu_traits
from redsched.agent.machine.cpu_traits import has_hyperthreading, read_flags, traits_of
from redsched.model.validation import STANDARD_TRAITS


@pytest.mark.parametrize(
    ("machine", "flags", "expected"),
    [
        ("x86_64", "avx2", {"HW_CPU_X86_AVX2"}),
        ("x86_64", "pni sse4_1 sse4_2", {"HW_CPU_X86_SSE3", "HW_CPU_X86_SSE41", "HW_CPU_X86_SSE42"}),
        ("x86_64", "vmx", {"HW_CPU_X86_VMX", "HW_CPU_X86_INTEL_VMX"}),
        ("x86_64", "vaes avx512f", {"HW_CPU_X86_AVX512F", "HW_CPU_X86_AVX512VAES"}),
        ("x86_64", "vaes", set()),
        ("x86_64", "fpu lm nx no_such_flag", set()),
        ("aarch64", "asimd sha512", {"HW_CPU_AARCH64_ASIMD", "HW_CPU_AARCH64_SHA512"}),
        ("riscv64", "avx2", set()),
    ],
)
def test_flags_become_traits(machine: str, flags: str, expected: set[str]) -> None:
    assert {trait for trait in traits_of(machine, flags.split()) if trait.startswith("HW_CPU")} == expected


def test_the_architecture_is_a_trait() -> None:
    assert traits_of("x86_64", []) == {"HW_ARCH_X86_64"}
    assert traits_of("made_up", []) == frozenset()


def test_every_spelling_in_the_table_is_a_trait_of_os_traits() -> None:
    names = {name for spellings in cpu_traits._X86_SPELLINGS.values() for name in spellings}
    names |= set(cpu_traits._WITH_AVX512.values())
    assert {f"HW_CPU_X86_{name}" for name in names} <= STANDARD_TRAITS


def test_only_flags_that_every_cpu_has_count(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor : 0\nflags : avx avx2\n\nprocessor : 1\nflags : avx\n")
    assert read_flags(cpuinfo) == {"avx"}


def test_no_cpuinfo_means_no_flags(tmp_path: Path) -> None:
    assert read_flags(tmp_path / "absent") == frozenset()
    assert not has_hyperthreading(tmp_path / "absent")
