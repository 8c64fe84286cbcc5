"""Map the kernel's CPU flags to traits of os-traits.

Most flags map by spelling (`avx2` -> HW_CPU_X86_AVX2); the table has the exceptions. Flags without a trait are omitted,
because reports with traits that os-traits does not have are rejected.
"""

from collections.abc import Iterable
from pathlib import Path

from redsched.model.validation import STANDARD_TRAITS

CPUINFO = Path("/proc/cpuinfo")
SMT_ACTIVE = Path("/sys/devices/system/cpu/smt/active")

# The kernel's names are those of arch/x86/include/asm/cpufeatures.h; os-traits follows libvirt's and the vendors'.
_X86_SPELLINGS: dict[str, tuple[str, ...]] = {
    "aes": ("AESNI",),
    "amx_bf16": ("AMXBF16",),
    "amx_int8": ("AMXINT8",),
    "amx_tile": ("AMXTILE",),
    "avx512_bitalg": ("AVX512BITALG",),
    "avx512_vbmi2": ("AVX512VBMI2",),
    "avx512_vnni": ("AVX512VNNI",),
    "avx512_vpopcntdq": ("AVX512VPOPCNTDQ",),
    "avx512vbmi": ("AVX512VBMI",),
    "bmi1": ("BMI",),
    "fma": ("FMA3",),
    "ibpb": ("AMD_IBPB",),
    "md_clear": ("INTEL_MD_CLEAR",),
    "pcid": ("INTEL_PCID",),
    "pclmulqdq": ("CLMUL",),
    "pni": ("SSE3",),
    "rtm": ("TSX",),
    "sev": ("AMD_SEV",),
    "sev_es": ("AMD_SEV_ES",),
    "sev_snp": ("AMD_SEV_SNP",),
    "sha_ni": ("SHA",),
    "sse4_1": ("SSE41",),
    "sse4_2": ("SSE42",),
    "svm": ("SVM", "AMD_SVM"),
    "virt_ssbd": ("AMD_VIRT_SSBD",),
    "vmx": ("VMX", "INTEL_VMX"),
}
# These traits mean the AVX-512 forms: on a CPU without AVX-512, VAES and the like are different instructions.
_WITH_AVX512 = {"gfni": "AVX512GFNI", "vaes": "AVX512VAES", "vpclmulqdq": "AVX512VPCLMULQDQ"}
_ARCHITECTURES = {"x86_64": "X86_64", "aarch64": "AARCH64", "ppc64le": "PPC64LE", "s390x": "S390X", "i686": "I686"}


def traits_of(machine: str, flags: Iterable[str]) -> frozenset[str]:
    """Return the traits of a CPU: `machine` as uname gives it, `flags` as /proc/cpuinfo lists them."""
    spelled = set(flags)
    traits = {f"HW_ARCH_{_ARCHITECTURES.get(machine, machine.upper())}"}
    if machine in ("x86_64", "i686"):
        traits |= {f"HW_CPU_X86_{name}" for name in _x86_names(spelled)}
    elif machine == "aarch64":
        traits |= {f"HW_CPU_AARCH64_{flag.upper()}" for flag in spelled}
    return frozenset(traits & STANDARD_TRAITS)


def _x86_names(flags: set[str]) -> set[str]:
    names = {name for flag in flags for name in _X86_SPELLINGS.get(flag, (flag.upper(),))}
    if "avx512f" in flags:
        names |= {name for flag, name in _WITH_AVX512.items() if flag in flags}
    return names


def read_flags(cpuinfo: Path = CPUINFO) -> frozenset[str]:
    """Return the flags that all CPUs of this machine have; empty if the kernel does not list them."""
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        return frozenset()
    lists = [line.partition(":")[2].split() for line in lines if line.startswith(("flags", "Features"))]
    return frozenset(lists[0]).intersection(*lists[1:]) if lists else frozenset()


def has_hyperthreading(active: Path = SMT_ACTIVE) -> bool:
    """Return whether the kernel runs two threads on a core (SMT)."""
    try:
        return active.read_text().strip() == "1"
    except OSError:
        return False
