"""How a scenario of a stop went: the lines of its timeline, and its end in full."""

from collections.abc import Iterator
from dataclasses import dataclass, fields

from landed.core.canonical import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a run ended; a scenario says it in full, and both must be equal.

    `records` are the shapes that the record came to, each once, in order; there are several where
    several conversations were had. `log` is what is on the disk, None where nothing is kept there.
    `calls` is how often the model was asked, `request` what became of the last time. `running` is
    what still runs, `endings` how each stop ended, `files` what is left in the workspace (None
    where nobody looks), `words` what the assistant said last. `shown` is the request that the next
    prompt makes, with its errors, and `refused` why a provider refuses it. `broken` is what has to
    be so of every run, and is not.
    """

    records: tuple[str, ...]
    shown: str
    words: str
    calls: int = 1
    request: str = "answered"
    running: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    log: str | None = None
    files: tuple[str, ...] | None = None
    refused: str = ""
    broken: tuple[str, ...] = ()

    def told(self) -> Iterator[tuple[str, str]]:
        """Yield what there is to say of it, by its name."""
        yield "record", " | ".join(self.records)
        if self.log is not None:
            yield "log", self.log
        yield "model calls", f"{self.calls} (the last one: {self.request})"
        if self.endings:
            yield "ended", _listed(self.endings)
        yield "still running", _listed(self.running)
        if self.files is not None:
            yield "workspace holds", _listed(self.files)
        yield "shown next", self.shown
        if self.refused:
            yield "refused by the provider", self.refused
        if self.broken:
            yield "broken", _listed(self.broken)
        yield "last words", self.words or "(none)"

    def plain(self) -> dict[str, Json]:
        """Return it as `landed demo --json` prints it."""
        return {each.name: _plain(getattr(self, each.name)) for each in fields(self)}


def _plain(value: tuple[str, ...] | str | int | None) -> Json:
    return list(value) if isinstance(value, tuple) else value


def _listed(values: tuple[str, ...]) -> str:
    return ", ".join(values) or "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLine:
    """One line of a timeline: its number from 1, the turn of the event loop, its kind, its text."""

    n: int
    turn: int
    type: str
    text: str

    def __str__(self) -> str:
        return f"{self.n:3}  turn {self.turn:3}  {self.type:<14} {self.text}".rstrip()

    def plain(self) -> dict[str, Json]:
        """Return it as `landed demo --json` prints it."""
        return {"n": self.n, "turn": self.turn, "type": self.type, "text": self.text}
