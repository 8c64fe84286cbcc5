"""Claims of a running OpenStack Placement, beside redsched's over REST on a fleet of the same size.

    python -m benchmarks.placement --url http://controller/placement --token TOKEN [--providers 100] [--seconds 5]

Each client claims one unit of a random candidate and releases it again, for some time. Then all clients claim the last
places of one provider until they are refused: as many must be granted as there are places, and no more. Only providers
and resource classes of this run are used, and they are deleted at the end. Ends with exit code 1 after an over-claim,
or if places were left.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from http.client import HTTPException

from benchmarks.placement.cycles import Row, Service, ServiceError, measure
from benchmarks.placement.openstack import PlacementService
from benchmarks.placement.redsched_rest import RedschedService
from benchmarks.running import end_in_order


def print_table(rows: Sequence[Row]) -> None:
    """Print the table."""
    names = ("cycles", "per s", "p50 ms", "p99 ms", "conflicts", "refused", "granted", "conflicts", "over-claims")
    print(f"{rows[0].providers} providers; the last three columns are of a provider with {rows[0].places} places")
    print(f"{'service':<10}" + "".join(f" {name:>11}" for name in names))
    for row in rows:
        times = f"{row.per_second:.0f}", f"{row.claim_p50_ms:.2f}", f"{row.claim_p99_ms:.2f}"
        full = f"{row.granted} of {row.places}", row.full_conflicts, row.over_claims
        cells = (row.cycles, *times, row.conflicts, row.refused, *full)
        print(f"{row.service:<10}" + "".join(f" {cell!s:>11}" for cell in cells))


def wrong(rows: Sequence[Row]) -> list[str]:
    """Return what must not happen."""
    over = [
        f"{row.service}: {row.over_claims} of {row.places} places were given twice" for row in rows if row.over_claims
    ]
    left = [
        f"{row.service}: {row.granted} of {row.places} places were granted" for row in rows if row.granted < row.places
    ]
    return over + left


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    about = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser("python -m benchmarks.placement", description=about)
    parser.add_argument("--url", required=True, help="of Placement, as in the service catalog")
    parser.add_argument("--token", default=os.environ.get("OS_TOKEN", ""), help="of an admin (default: $OS_TOKEN)")
    parser.add_argument("--providers", type=int, default=100, help="size of both fleets")
    parser.add_argument("--places", type=int, default=50, help="of the nearly full provider")
    parser.add_argument("--clients", type=int, default=4, help="concurrent clients, a connection each")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each service is measured")
    parser.add_argument("--limit", type=int, default=100, help="allocation candidates per request (Nova: 1000)")
    parser.add_argument("--workers", type=int, default=2, help="redsched's API processes")
    parser.add_argument("--json", action="store_true", help="for programs")
    return parser.parse_args()


def main() -> int:
    """Run the command line."""
    given = arguments()
    end_in_order()
    services: list[Service] = [
        PlacementService(given.url, given.token, given.limit),
        RedschedService(given.workers),
    ]
    try:
        rows = [measure(one, given.providers, given.places, given.clients, given.seconds) for one in services]
    except (ServiceError, OSError, HTTPException) as error:
        print(f"not measured: {error}", file=sys.stderr)
        return 2
    print(json.dumps([asdict(row) for row in rows])) if given.json else print_table(rows)
    problems = wrong(rows)
    print("\n".join(["BROKEN", *problems] if problems else ["no place was given twice"]), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
