"""`python -m landed.testing.chaos`: a chaos run with a report; exits with 1 where it is not clean.

python -m landed.testing.chaos --store postgres --operations 10000 --seconds 300 --seed 7
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict

from landed.testing.chaos.designs import DESIGNS
from landed.testing.chaos.places import POSTGRES
from landed.testing.chaos.run import Chaos, run

_HELP = {
    "store": f"a URL; {POSTGRES!r} for a server of its own, nothing for a SQLite file",
    "operations": "what the load comes to",
    "workers": "how many processes",
    "lanes": "how many scripts each process carries out at once",
    "seed": "the same load for the same seed; the schedule is another one each time",
    "seconds": "how long the hand acts at most",
    "calm_s": "how long nothing may get any further after that",
    "every_s": "how often the hand acts; 0 for never",
    "lease_s": "how long claims stand unrenewed",
    "share": "the share of requests to the services that something happens to",
    "acts": "what the hand does: some of kill, pause, restart",
    "design": f"ours, or a wrong one: {', '.join(sorted(DESIGNS))}",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line describes, and print what it came to."""
    parser = argparse.ArgumentParser(prog="python -m landed.testing.chaos")
    defaults: dict[str, str | int | float] = asdict(Chaos())
    for name, default in defaults.items():
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=type(default), default=default, help=_HELP[name])
    report = run(Chaos(**vars(parser.parse_args(arguments))))
    for line in report.lines():
        sys.stdout.write(f"{line}\n")
    return 0 if report.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
