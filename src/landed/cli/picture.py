"""Draws a timeline as SVG: a lane for the user, the agent and each service, and what was in doubt.

Time goes down, one row for each line. A bar beside the agent's lane stands for an operation whose
outcome nobody knew; one beside that for a release that was owed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from landed.testing.timeline import Line

ROW, TOP, LANE, LEFT, BAR, WIDE = 26, 64, 210, 96, 7, 62

# Which lane a line's type belongs to; any other type is the name of a service.
LANES = {
    "input": "user",
    "approval": "user",
    "compensate.ask": "user",
    "model.read": "agent",
    "tool.sent": "agent",
    "tool.result": "agent",
    "tool.cancelled": "agent",
    "tool.unknown": "agent",
    "interrupt": "agent",
    "resolve": "agent",
    "compensate": "agent",
    "release": "agent",
    "skip": "agent",
    "restart": "agent",
    "crash": "agent",
}
DOUBT_BEGINS, DOUBT_ENDS = {"tool.unknown"}, {"resolve", "tool.result"}
STYLE = """
text{font:12px ui-monospace,monospace;fill:#1f2328} .head{font-weight:bold}
.time{fill:#6e7781} .lane{stroke:#d0d7de} .doubt{fill:#d4a72c} .owed{fill:#8250df}
.user{fill:#ddf4ff} .agent{fill:#f6f8fa} .service{fill:#dafbe1} .alarm{fill:#ffebe9}
@media (prefers-color-scheme:dark){text{fill:#e6edf3} .time{fill:#8b949e} .lane{stroke:#30363d}
.user{fill:#0c2d6b} .agent{fill:#21262d} .service{fill:#033a16} .alarm{fill:#67060c}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Rows from `first` to `last` in which something was in doubt, or owed."""

    first: int
    last: int
    kind: str
    what: str


def svg(lines: Sequence[Line], *, title: str) -> str:
    """Return the picture of a timeline as an SVG document that stands by itself."""
    lanes = _lanes(lines)
    width = max((_right(line, lanes) for line in lines), default=LEFT + LANE) + 16
    height = TOP + ROW * (len(lines) + 1) + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}">',
        f"<style>{STYLE}</style>",
        f'<text class="head" x="12" y="22">{escape(title)}</text>',
        *_heads(lanes, height),
        *(_bar(span, lanes.index("agent")) for span in spans(lines) if "agent" in lanes),
        *(part for row, line in enumerate(lines) for part in _row(row, line, lanes)),
        _legend(height),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def spans(lines: Sequence[Line]) -> list[Span]:
    """Return what was in doubt and what was owed, from row to row; open ends reach the last row."""
    found: list[Span] = []
    doubts: dict[str, int] = {}
    owed: dict[str, int] = {}
    for row, line in enumerate(lines):
        if line.type in DOUBT_BEGINS:
            doubts.setdefault(line.operation, row)
        elif line.type in DOUBT_ENDS and line.operation in doubts and _settles(line):
            found.append(_span(doubts.pop(line.operation), row, "doubt", line.operation))
        elif line.type == "release":
            _owe(owed, row, line, found)
    end = len(lines) - 1
    found += [_span(first, end, "doubt", what) for what, first in doubts.items()]
    found += [_span(first, end, "owed", what) for what, first in owed.items()]
    return found


def _settles(line: Line) -> bool:
    """Whether a line ends a doubt: a look that came back with nothing does not."""
    open_ends = ("nothing has landed", "sent again with the same key")
    return not line.text.endswith(open_ends)


def _owe(owed: dict[str, int], row: int, line: Line, found: list[Span]) -> None:
    what = line.subject or line.operation
    if "owed" in line.text:
        owed.setdefault(what, row)
    elif what in owed:
        found.append(_span(owed.pop(what), row, "owed", what))


def _span(first: int, last: int, kind: str, what: str) -> Span:
    return Span(first=first, last=last, kind=kind, what=what)


def _lanes(lines: Sequence[Line]) -> list[str]:
    named = [LANES.get(line.type, line.type) for line in lines]
    return list(dict.fromkeys(["user", "agent", *named]))


def _heads(lanes: Sequence[str], height: int) -> Iterator[str]:
    for n, lane in enumerate(lanes):
        x = LEFT + LANE * n
        yield f'<text class="head" x="{x}" y="{TOP - 14}">{escape(lane)}</text>'
        yield f'<line class="lane" x1="{x - 8}" x2="{x - 8}" y1="{TOP - 8}" y2="{height - 30}"/>'


def _row(row: int, line: Line, lanes: Sequence[str]) -> Iterator[str]:
    lane = LANES.get(line.type, line.type)
    x, y = LEFT + LANE * lanes.index(lane), TOP + ROW * row
    look = "alarm" if line.type in ("crash", "tool.unknown", "tool.cancelled") else lane
    look = look if look in ("user", "agent", "alarm") else "service"
    full = f"{line.type} {line.text}"
    shown = _shown(line)
    yield f'<text class="time" x="12" y="{y + 16}">{line.at_s:7.2f} s</text>'
    width = _width(line)
    yield f"<g><title>{escape(full)}</title>"
    yield f'<rect class="{look}" x="{x}" y="{y}" rx="4" width="{width}" height="{ROW - 4}"/>'
    yield f'<text x="{x + 6}" y="{y + 15}">{escape(shown)}</text></g>'


def _shown(line: Line) -> str:
    return line.text if len(line.text) <= WIDE else f"{line.text[: WIDE - 1]}…"


def _width(line: Line) -> int:
    """Return how wide a line is drawn; a letter of the font is a little over seven units."""
    return max(LANE - 16, round(7.3 * len(_shown(line))) + 14)


def _right(line: Line, lanes: Sequence[str]) -> int:
    lane = LANES.get(line.type, line.type)
    return LEFT + LANE * lanes.index(lane) + _width(line)


def _bar(span: Span, agent: int) -> str:
    x = LEFT + LANE * agent - 8 - BAR * (1 if span.kind == "doubt" else 2) - 2
    y, height = TOP + ROW * span.first, ROW * (span.last - span.first + 1) - 4
    said = "in doubt" if span.kind == "doubt" else "owed"
    return (
        f'<g><title>{escape(span.what)}: {said}</title><rect class="{span.kind}" x="{x}" y="{y}"'
        f' width="{BAR}" height="{height}" rx="3"/></g>'
    )


def _legend(height: int) -> str:
    y = height - 14
    return (
        f'<rect class="doubt" x="12" y="{y - 9}" width="10" height="10"/>'
        f'<text x="28" y="{y}">in doubt</text>'
        f'<rect class="owed" x="104" y="{y - 9}" width="10" height="10"/>'
        f'<text x="120" y="{y}">release owed</text>'
    )
