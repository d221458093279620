"""What a chaos run came to, in counts: what was done to it, how it coped, and what is wrong."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from landed.testing.chaos.auditor import Complaint
from landed.testing.chaos.hand import Orphans
from landed.testing.chaos.notes import Noted

SHOWN_MAX = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """How soon what was left behind was taken over, once it might be: by the next heartbeat.

    `left` were open when their worker died or slept past its lease, `worst_s` is the longest that
    one of them lay there after that lease was over, whoever was there to see it. `passed_over` had
    somebody who looked, and left them: a claim began after that moment and did not take them.
    Records are left out that lay there while the server was away.
    """

    left: int
    worst_s: float
    passed_over: int
    beat_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a run came to. `did` is what the hand did, `weather` what happened to requests."""

    seed: int
    seconds: float
    scripts: int
    unfinished: int
    operations: Mapping[str, int]
    failed: Mapping[str, int]
    refused: Mapping[str, int]
    effects: Mapping[str, int]
    did: Mapping[str, int]
    ends: Mapping[str, int]
    noted: Mapping[str, int]
    weather: Mapping[str, int]
    resends: int
    events: int
    takeovers: int
    adoption: Adoption
    left_open: Mapping[str, int]
    stuck: tuple[str, ...]
    unexpected: tuple[str, ...]
    complaints: tuple[Complaint, ...]

    @property
    def is_clean(self) -> bool:
        """Whether everything got to its end and nothing is wrong."""
        return not (self.complaints or self.unexpected or self.unfinished or self.left_open)

    def lines(self) -> Iterator[str]:
        """Yield it for a person."""
        yield f"seed {self.seed}, {self.seconds:.0f} s, {self.scripts} scripts"
        yield f"operations   {sum(self.operations.values())}: {_counts(self.operations)}"
        yield f"effects      {sum(self.effects.values())}: {_counts(self.effects)}"
        yield f"journal      {self.events} events, {self.resends} resends"
        yield f"the hand     {_counts(self.did)}"
        yield f"workers      {_counts(self.ends)}; {self.takeovers} records taken over"
        yield f"the store    {_counts(self.noted)}"
        yield f"the weather  {_counts(self.weather)}"
        adopted = self.adoption
        yield (
            f"adoption     worst {adopted.worst_s:.1f} s of {adopted.left} records after their"
            f" lease (heartbeat {adopted.beat_s:g} s); {adopted.passed_over} passed over"
        )
        yield from (f"failed       {n} × {says}" for says, n in Counter(self.failed).most_common())
        yield from (f"refused      {n} × {says}" for says, n in Counter(self.refused).most_common())
        if self.unfinished:
            yield f"UNFINISHED   {self.unfinished} scripts"
        if self.left_open:
            yield f"LEFT OPEN    {_counts(self.left_open)}"
        yield from (f"STUCK        {each}" for each in self.stuck[:SHOWN_MAX])
        for says in self.unexpected[:SHOWN_MAX]:
            yield f"UNEXPECTED   {says}"
        for wrong, times in Counter(each.wrong for each in self.complaints).most_common():
            yield f"WRONG        {times} × {wrong}"
        for complaint in self.complaints[:SHOWN_MAX]:
            yield f"             {complaint}"
        yield "clean" if self.is_clean else "NOT CLEAN"


def adoption(
    orphans: Iterable[Orphans],
    notes: Sequence[Mapping[str, Any]],
    restarts: Sequence[tuple[float, float]],
    *,
    lease_s: float,
) -> Adoption:
    """Return how soon what was left behind was taken over, from the notes of all workers."""
    claims = sorted((n["at"], n["began"], n["ids"]) for n in notes if n["noted"] == Noted.CLAIMED)
    waits: list[float] = []
    passed_over = 0
    for left in orphans:
        for id in left.ids:
            taken = next((at for at, _, ids in claims if at > left.at and id in ids), None)
            if taken is None or any(left.at < ended and began < taken for began, ended in restarts):
                continue
            waits.append(max(0.0, taken - left.free_at))
            passed_over += any(left.free_at < began and at < taken for at, began, _ in claims)
    return Adoption(
        left=len(waits),
        worst_s=max(waits, default=0.0),
        passed_over=passed_over,
        beat_s=lease_s / 3,
    )


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in sorted(counts.items())) or "nothing"
