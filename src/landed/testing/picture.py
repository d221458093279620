"""Draws a timeline as SVG: a lane for the user, the agent and each service, and what was in doubt.

Time goes down, one row for each line. Bars beside the times stand for an operation whose outcome
nobody knew, and for an undo that was owed. What was written by others is shown as what it is.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from landed.core.visible import line as visible
from landed.testing.axis import Axis, axis_of
from landed.testing.spans import Open, Span, spans
from landed.testing.timeline import Line

ROW, TOP, TIME, BAR, TRACKS_MAX = 26, 64, 96, 9, 8
LETTER = 7.3  # a letter of the font is a little over seven units wide
USER, AGENT = "user", "agent"
ALARMS = frozenset({"crash", "tool.unknown", "tool.cancelled", "wrong", "fenced"})
LANES = {
    USER: "input approval compensate.ask plan.ask button shown yes no user ruling",
    AGENT: "model.read model.told tool.sent tool.result tool.cancelled tool.unknown interrupt"
    " resolve compensate release skip restart crash plan message erased case correction drain drift"
    " fenced pause process resume stopped store sweep wrong",
}
# Which lane a line's type belongs to; any other type is the name of a service.
LANE_OF = {type: lane for lane, types in LANES.items() for type in types.split()}
SAID: Mapping[str, str] = {Open.DOUBT: "in doubt", Open.OWED: "release owed"}
STYLE = """
text{font:12px ui-monospace,monospace;fill:#1f2328} .head{font-weight:bold}
.time{fill:#6e7781} .lane{stroke:#d0d7de} .pause{stroke:#8c959f;stroke-dasharray:2 4}
.doubt{fill:#d4a72c} .owed{fill:#8250df}
.user{fill:#ddf4ff} .agent{fill:#f6f8fa} .service{fill:#dafbe1} .alarm{fill:#ffebe9}
@media (prefers-color-scheme:dark){text{fill:#e6edf3} .time{fill:#8b949e} .lane{stroke:#30363d}
.user{fill:#0c2d6b} .agent{fill:#21262d} .service{fill:#033a16} .alarm{fill:#67060c}}
"""


def _said(name: str) -> str:
    return SAID.get(name, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How it is drawn: how wide a lane is, in units, and how many letters of a line are shown.

    `seen` makes visible what is not; `names` is how the lanes `user` and `agent` are called, and
    what is open: `doubt` and `owed`.
    """

    lane: int = 210
    letters: int = 62
    seen: Callable[[str], str] = visible
    names: Callable[[str], str] = _said


ALONE = Look()
BESIDE = Look(lane=120, letters=46)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One line as a row of a table: what the picture shows, for whoever cannot see it."""

    n: int
    at_s: float
    after: str
    lane: str
    type: str
    text: str
    alarm: bool
    in_doubt: tuple[str, ...]
    owed: tuple[str, ...]


def document(lines: Sequence[Line], *, title: str) -> str:
    """Return the picture of a timeline as an SVG document that stands by itself."""
    return _Drawing(lines, title=title).drawn(style=f"<style>{STYLE}</style>") + "\n"


def inline(
    lines: Sequence[Line],
    *,
    title: str,
    axis: Axis | None = None,
    beside: int = 0,
    look: Look = ALONE,
) -> str:
    """Return the picture as an element for a page whose style sheet knows its classes.

    There is no style in it, so that a policy may forbid styles in a page. With an `axis` of several
    timelines, `beside` says which of them this is.
    """
    drawing = _Drawing(lines, title=title, axis=axis, beside=beside, look=look)
    return drawing.drawn(style="")


def told(lines: Sequence[Line]) -> tuple[Told, ...]:
    """Return the lines as rows, as they are, each with what was in doubt and owed then."""
    found = spans(lines)

    def open_at(index: int, kind: Open) -> tuple[str, ...]:
        there = (span for span in found if span.first <= index <= span.last)
        return tuple(span.what for span in there if span.kind is kind)

    return tuple(
        Told(
            n=line.n,
            at_s=line.at_s,
            after=since(line.at_s).strip(),
            lane=lane_of(line),
            type=line.type,
            text=line.text,
            alarm=line.type in ALARMS,
            in_doubt=open_at(index, Open.DOUBT),
            owed=open_at(index, Open.OWED),
        )
        for index, line in enumerate(lines)
    )


def lane_of(line: Line) -> str:
    """Return whose lane a line stands in: `user`, `agent`, or the name of a service."""
    return LANE_OF.get(line.type, line.type)


def since(seconds: float) -> str:
    """Return how long after the beginning something was, as a column of times has it."""
    if seconds < 1000:
        return f"{seconds:7.2f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"{days} d {hours:02}:{minutes:02}" if days else f"{hours:02}:{minutes:02}:{rest:02}"


@dataclass(slots=True, eq=False)
class _Drawing:
    """A picture while it is drawn."""

    lines: Sequence[Line]
    title: str
    axis: Axis | None = None
    beside: int = 0
    look: Look = ALONE
    lanes: list[str] = field(init=False)
    rows: Sequence[int] = field(init=False)
    moments: Axis = field(init=False)
    tracks: list[tuple[Span, int]] = field(init=False)
    left: int = field(init=False)

    def __post_init__(self) -> None:
        self.lanes = list(dict.fromkeys([USER, AGENT, *map(lane_of, self.lines)]))
        self.moments = self.axis or axis_of(self.lines)
        self.rows = self.moments.rows[self.beside] if self.moments.rows else ()
        self.tracks = list(_tracks(spans(self.lines)))
        used = max((track for _, track in self.tracks), default=0) + 1
        self.left = TIME + (BAR + 2) * used + 14

    def drawn(self, *, style: str) -> str:
        width = max([self._lane_x(len(self.lanes)), *map(self._right, self.lines)]) + 16
        height = TOP + ROW * (len(self.moments.at_s) + 1) + 16
        title = self._text(self.title)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="picture" width="{width}"'
            f' height="{height}" viewBox="0 0 {width} {height}" role="img" aria-label="{title}">',
            style,
            f'<text class="head" x="12" y="22">{title}</text>',
            *self._heads(height),
            *self._pauses(width),
            *(self._bar(span, track) for span, track in self.tracks),
            *(part for n, line in enumerate(self.lines) for part in self._row(self.rows[n], line)),
            self._legend(height),
            "</svg>",
        ]
        return "\n".join(filter(None, parts))

    def _heads(self, height: int) -> Iterator[str]:
        for n, lane in enumerate(self.lanes):
            x = self._lane_x(n)
            name = self._text(self.look.names(lane) if lane in (USER, AGENT) else lane)
            yield f'<text class="head" x="{x}" y="{TOP - 14}">{name}</text>'
            x, ends = x - 8, height - 30
            yield f'<line class="lane" x1="{x}" x2="{x}" y1="{TOP - 8}" y2="{ends}"/>'

    def _pauses(self, width: int) -> Iterator[str]:
        """Draw a line where nothing happened for so long that the rows would hide it."""
        for row in range(len(self.moments.at_s)):
            if waited := self.moments.pause_s(row):
                y = TOP + ROW * row - 2
                yield (
                    f'<g><title>+ {since(waited).strip()}</title><line class="pause" x1="12"'
                    f' x2="{width - 12}" y1="{y}" y2="{y}"/></g>'
                )

    def _row(self, row: int, line: Line) -> Iterator[str]:
        lane = lane_of(line)
        x, y = self._lane_x(self.lanes.index(lane)), TOP + ROW * row
        kind = lane if lane in (USER, AGENT) else "service"
        look = "alarm" if line.type in ALARMS else kind
        yield f'<text class="time" x="12" y="{y + 16}">{since(line.at_s)}</text>'
        yield f"<g><title>{self._text(f'{line.type} {line.text}')}</title>"
        yield (
            f'<rect class="{look}" x="{x}" y="{y}" rx="4" width="{self._width(line)}"'
            f' height="{ROW - 4}"/>'
        )
        yield f'<text x="{x + 6}" y="{y + 15}">{escape(self._shown(line))}</text></g>'

    def _bar(self, span: Span, track: int) -> str:
        first, last = self.rows[span.first], self.rows[span.last]
        x, y = TIME + (BAR + 2) * track, TOP + ROW * first
        return (
            f"<g><title>{self._text(span.what)}: {escape(self.look.names(span.kind))}</title>"
            f'<rect class="{span.kind}" x="{x}" y="{y}" width="{BAR}"'
            f' height="{ROW * (last - first + 1) - 4}" rx="3"/></g>'
        )

    def _lane_x(self, number: int) -> int:
        return self.left + self.look.lane * number

    def _shown(self, line: Line) -> str:
        text, most = self.look.seen(line.text), self.look.letters
        return text if len(text) <= most else f"{text[: most - 1]}…"

    def _width(self, line: Line) -> int:
        return max(self.look.lane - 16, round(LETTER * len(self._shown(line))) + 14)

    def _right(self, line: Line) -> int:
        return self._lane_x(self.lanes.index(lane_of(line))) + self._width(line)

    def _text(self, text: str) -> str:
        return escape(self.look.seen(text))

    def _legend(self, height: int) -> str:
        y, doubt = height - 14, escape(self.look.names(Open.DOUBT))
        x = 48 + round(LETTER * len(doubt))
        return (
            f'<rect class="doubt" x="12" y="{y - 9}" width="10" height="10"/>'
            f'<text x="28" y="{y}">{doubt}</text>'
            f'<rect class="owed" x="{x}" y="{y - 9}" width="10" height="10"/>'
            f'<text x="{x + 16}" y="{y}">{escape(self.look.names(Open.OWED))}</text>'
        )


def _tracks(found: Sequence[Span]) -> Iterator[tuple[Span, int]]:
    """Yield each span with a track of its own for as long as it lasts; they begin in order."""
    free_after: list[int] = []
    for span in found:
        free = (n for n, last in enumerate(free_after) if last < span.first)
        track = next(free, len(free_after))
        if track < len(free_after):
            free_after[track] = span.last
        else:
            free_after.append(span.last)
        yield span, min(track, TRACKS_MAX - 1)
