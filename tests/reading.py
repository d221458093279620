"""What the tests of scenarios read off a run: its lines by type, and where one stands."""

from landed.testing.scenario import Ran


def texts(ran: Ran, type: str) -> list[str]:
    """Return what the lines of a type say, in order."""
    return [line.text for line in ran.timeline.lines if line.type == type]


def at(ran: Ran, type: str, words: str = "") -> int:
    """Return the number of the first line of a type with these words in it."""
    return next(line.n for line in ran.timeline.lines if line.type == type and words in line.text)


def when(ran: Ran, type: str, words: str = "") -> float:
    """Return the time of that line, in seconds since the run began."""
    return ran.timeline.lines[at(ran, type, words) - 1].at_s


def held(ran: Ran, service: str = "restaurant") -> tuple[str, ...]:
    """Return what a service holds in the end, in its own words."""
    return tuple(str(one["text"]) for one in ran.world[service])
