"""What can go wrong at a mail server: faults as plain values, and when their turn has come."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

MailKind = Literal[
    "drop_connection",
    "busy",
    "refuse",
    "greylist",
    "drop_text",
    "refuse_text",
    "later_text",
    "lose_reply",
    "delay_reply",
]


class At(Enum):
    """Where in the dialogue a fault happens."""

    CONNECT = "connect"
    RECIPIENT = "recipient"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class MailFault:
    """One thing that goes wrong.

    - `drop_connection`: the connection ends before the server has said a word.
    - `busy`: the greeting is a 421.
    - `refuse`: the recipient is refused with a 550.
    - `greylist`: the recipient is refused with a 450, for now.
    - `drop_text`: the connection ends after the text; the mail was not taken.
    - `refuse_text`, `later_text`: the text is answered with a 554 or a 452; it was not taken.
    - `lose_reply`: the mail was taken; the connection ends before the server has said so.
    - `delay_reply`: the mail was taken; the server says so after `seconds`.

    `to` is the recipient, or `*` for any; connections have none yet. `nth` counts, from 1, what
    matches this place and `to` since the server started, and `times` is how many in a row it
    strikes (a greylist that wants two more tries: nth=1, times=2); nth=None means each of them.
    Raises ValueError for an unknown kind, numbers below 1 or negative `seconds`.
    """

    kind: MailKind
    to: str = "*"
    nth: int | None = 1
    times: int = 1
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown fault {self.kind!r}; choose one of {', '.join(KINDS)}")
        if (self.nth is not None and self.nth < 1) or self.times < 1:
            raise ValueError(f"nth and times count from 1, not {self.nth} and {self.times}")
        if not self.seconds >= 0:
            raise ValueError(f"seconds must be 0 or more, not {self.seconds}")

    @property
    def at(self) -> At:
        """Where it happens."""
        return KINDS[self.kind][0]

    @property
    def reply(self) -> str:
        """What the server says; "" where it says nothing, or says yes late."""
        return KINDS[self.kind][1]

    @property
    def keeps(self) -> bool:
        """Whether the mail is taken all the same."""
        return self.kind in ("lose_reply", "delay_reply")

    def strikes(self, count: int) -> bool:
        """Whether it is this one's turn, of what matches it."""
        return self.nth is None or self.nth <= count < self.nth + self.times


# kind ▸ where it happens, and what the server says
KINDS: dict[str, tuple[At, str]] = {
    "drop_connection": (At.CONNECT, ""),
    "busy": (At.CONNECT, "421 4.3.2 too busy, come back later"),
    "refuse": (At.RECIPIENT, "550 5.1.1 there is no such mailbox here"),
    "greylist": (At.RECIPIENT, "450 4.2.0 greylisted, come back later"),
    "drop_text": (At.TEXT, ""),
    "refuse_text": (At.TEXT, "554 5.7.1 such texts are not taken here"),
    "later_text": (At.TEXT, "452 4.3.1 no room at the moment, come back later"),
    "lose_reply": (At.TEXT, ""),
    "delay_reply": (At.TEXT, ""),
}


class MailFaults:
    """The faults of one server. The counts live in memory: a restarted one counts from 1 again."""

    def __init__(self, rules: Sequence[MailFault]) -> None:
        self._rules = tuple(rules)
        self._seen: Counter[tuple[At, str]] = Counter()

    def due(self, at: At, to: str = "*") -> MailFault | None:
        """Count what happens at this place, and return the first fault whose turn it is."""
        named = [rule for rule in self._rules if rule.at is at and rule.to in ("*", to)]
        for name in {rule.to for rule in named}:
            self._seen[at, name] += 1
        return next((rule for rule in named if rule.strikes(self._seen[at, rule.to])), None)
