"""One time axis for several timelines: what happened at one moment stands in one row.

So two runs can be laid beside each other, and are the same as far down as they went the same way.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from landed.testing.timeline import Line

GAP_S = 1.0  # from one row to the next; from here on a pause is drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """The moment of each row, in seconds, and for each timeline the row of each of its lines."""

    at_s: tuple[float, ...]
    rows: tuple[tuple[int, ...], ...]

    def pause_s(self, row: int) -> float:
        """Return how long nothing happened before a row; 0.0 where that is not worth telling."""
        waited = self.at_s[row] - self.at_s[row - 1] if row else 0.0
        return waited if waited >= GAP_S else 0.0


def axis_of(*timelines: Sequence[Line]) -> Axis:
    """Return the axis of these timelines; a line that is older than the one above stays below it.

    Of several lines of one moment, the first of each timeline share a row, then the second, …
    """
    ahead = [_in_order(lines) for lines in timelines]
    rows: list[list[int]] = [[] for _ in timelines]
    moments: list[float] = []
    while waiting := [n for n, times in enumerate(ahead) if len(rows[n]) < len(times)]:
        now = min(ahead[n][len(rows[n])] for n in waiting)
        for n in waiting:
            if ahead[n][len(rows[n])] == now:
                rows[n].append(len(moments))
        moments.append(now)
    return Axis(at_s=tuple(moments), rows=tuple(map(tuple, rows)))


def _in_order(lines: Sequence[Line]) -> list[float]:
    times: list[float] = []
    for line in lines:
        times.append(max(line.at_s, times[-1] if times else line.at_s))
    return times
