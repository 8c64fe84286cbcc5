"""Random fleets, changes and requests over a small vocabulary, so that they often match.

Hypothesis draws sizes and seeds, and the values come from a seeded Random. Drawn one by one, nearly all values would
be the simplest, and hardly a host would pass the first rules.
"""

from random import Random

from hypothesis import strategies as st

from redsched.model import Request
from redsched.model.validation import MAX_AMOUNT

CLASSES = ("CUSTOM_A", "MEMORY_MB", "VCPU")
TRAITS = ("CUSTOM_T1", "CUSTOM_T2", "CUSTOM_T3")
ZONES = ("az1", "az2", "az3")
NAMES = tuple(f"h{number}" for number in range(60))

seeds = st.integers(0, 2**32 - 1)


def random_fields(rng: Random) -> dict[str, str]:
    """Return every possible field of a host; '' if it is absent. Most hosts pass the rules about their state."""
    fields = {
        "version": str(rng.randrange(9)),
        "epoch": rng.choices(("1-a", "2-b", ""), (48, 1, 1))[0],
        "status": rng.choices(("enabled", "disabled", "draining", "nonsense", ""), (46, 1, 1, 1, 1))[0],
        "alive": rng.choices(("1", "0", ""), (48, 1, 1))[0],
        "zone": rng.choice((*ZONES, "")),
        "label.rack": rng.choice(("r1", "r2", "")),
        "label.row": rng.choice(("r1", "")),
        "metric.load": rng.choice(("0.5", "12", "")),
        "total.VCPU": "99",
    }
    fields |= {f"trait.{trait}": rng.choice(("1", "")) for trait in TRAITS}
    for slot in CLASSES:
        fields |= random_slot(slot, rng)
    return fields


def random_slot(slot: str, rng: Random) -> dict[str, str]:
    """Return one slot's fields: usually small and half free, sometimes at the extremes of amounts."""
    if rng.random() < 0.05:
        large = [str(rng.randint(MAX_AMOUNT - 3, MAX_AMOUNT)) for _ in range(3)]
        return dict(zip((f"capacity.{slot}", f"claimed.{slot}", f"external.{slot}"), large, strict=True))
    return {
        f"capacity.{slot}": rng.choices((str(rng.randint(0, 24)), str(MAX_AMOUNT), ""), (18, 1, 1))[0],
        f"claimed.{slot}": rng.choice((str(rng.randint(0, 12)), "0", "")),
        f"external.{slot}": rng.choice((str(rng.randint(0, 4)), "0", "")),
        f"min.{slot}": rng.choice((str(rng.randint(0, 3)), "1", "", "")),
        f"max.{slot}": rng.choice((str(rng.randint(1, 24)), str(MAX_AMOUNT), "")),
        f"step.{slot}": rng.choice((str(rng.randint(1, 3)), "1", "")),
    }


def random_host(seed: int) -> dict[str, str]:
    """Return a host's present fields."""
    return {name: value for name, value in random_fields(Random(seed)).items() if value}


def random_patch(seed: int) -> dict[str, str]:
    """Return a few changed fields; '' deletes one."""
    rng = Random(seed)
    fields = random_fields(rng)
    return {name: fields[name] for name in rng.sample(sorted(fields), rng.randint(1, 4))}


def random_fleet(size: int, seed: int) -> dict[str, dict[str, str]]:
    """Return hosts by name."""
    rng = Random(seed)
    return {name: random_host(rng.getrandbits(32)) for name in rng.sample(NAMES, size)}


def random_request(seed: int, count: int, alternates: int) -> Request:
    """Return a request that uses each kind of condition at times."""
    rng = Random(seed)

    def some(values: tuple[str, ...], most: int, chance: float = 0.2) -> frozenset[str]:
        return frozenset(rng.sample(values, rng.randint(1, most)) if rng.random() < chance else ())

    return Request(
        resources={slot: rng.randint(1, 4) for slot in rng.sample(CLASSES, rng.choice((1, 1, 2, 3)))}
        | ({"VCPU": MAX_AMOUNT} if rng.random() < 0.05 else {}),
        required=some(TRAITS, 2),
        forbidden=some(TRAITS, 2),
        any_of=tuple(one for one in (some(TRAITS, 3), some(TRAITS, 3, 0.1)) if one),
        zones=some((*ZONES, "nowhere"), 3),
        hosts=some((*NAMES, "unknown"), 50),
        exclude_hosts=some((*NAMES, "unknown"), 5),
        labels={key: rng.choice(("r1", "r2", "")) for key in some(("rack", "row", "unknown"), 1)},
        policy=rng.choice(("", "spread", "pack")),
        count=count,
        alternates=alternates,
    )


def requests(count: int = 1, alternates: int = 0) -> st.SearchStrategy[Request]:
    """Return requests with every field that a decision reads."""
    return st.builds(random_request, seeds, st.just(count), st.just(alternates))


hosts = seeds.map(random_host)
patches = seeds.map(random_patch)
fleets = st.builds(random_fleet, st.integers(0, len(NAMES)), seeds)
