"""Plans that need a yes, are stopped, tried again, taken back: a seller's office, lap by lap."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from landed.core.approval import (
    Approval,
    Presented,
    Problem,
    Purpose,
    approval_id,
    token_digest,
)
from landed.core.arrival import Arrival, Checked, Offering, Planned, PlanTold, Presenting
from landed.core.canonical import Json
from landed.core.contract import Contract, Effect, Risk
from landed.core.key import ask_name
from landed.core.next import what_next
from landed.core.outcome import Acknowledged, SendOutcome
from landed.core.plan import At, Plan, PlanEvent, PlanState, Wanted
from landed.core.preview import Changed, Preview
from landed.core.rules import RULES
from landed.core.scope import Checking, Scope, Watching
from tests.core.build import events
from tests.core.conversation import Conversation, wanting

ANSWER_S = 300.0
SEND_S = 900.0

# What a seller's office can do. Two can be taken back, two are final; one read makes a reference.
FIND = Contract(effect=Effect.NONE, service="office", makes_type="client")
DRAFT = Contract(
    effect=Effect.REVERSIBLE,
    service="office",
    keyed="key",
    compares_payload=True,
    lookup=True,
    close=True,
    makes_type="draft",
    accepts={"client": "client"},
    undo="delete",
    undo_arguments={"id": "{result.id}"},
)
ISSUE = Contract(
    effect=Effect.IRREVERSIBLE,
    risk=Risk.CONFIRM,
    service="office",
    keyed="key",
    compares_payload=True,
    lookup=True,
    close=True,
    makes_type="invoice",
    accepts={"draft": "draft"},
)
MAIL = replace(ISSUE, service="mail", makes_type="", accepts={"invoice": "invoice"})
DELETE = replace(ISSUE, risk=Risk.SAFE, makes_type="", accepts={})
OFFICE: Mapping[str, Contract] = {
    "find": FIND,
    "draft": DRAFT,
    "note": replace(DRAFT, accepts={}, makes_type="note"),
    "issue": ISSUE,
    "mail": MAIL,
    "delete": DELETE,
}


def find(name: str = "Ada") -> Wanted:
    """Find a client."""
    return Wanted(tool="find", arguments={"name": name})


def draft(client: str = "C7", text: str = "logo") -> Wanted:
    """Draft an invoice for a client."""
    return Wanted(tool="draft", arguments={"client": client, "text": text})


def note(text: str = "call back") -> Wanted:
    """Keep a note."""
    return Wanted(tool="note", arguments={"text": text})


def issue(draft: str = "$1") -> Wanted:
    """Issue a draft: that is final."""
    return Wanted(tool="issue", arguments={"draft": draft})


def mail(invoice: str = "$2") -> Wanted:
    """Mail an invoice: that is final."""
    return Wanted(tool="mail", arguments={"invoice": invoice, "to": "ada@example.com"})


WHOLE = (draft(), issue("$1"), mail("$2"))


def shown(*calls: Wanted, **facts: Json) -> tuple[Preview, ...]:
    """The previews of these calls, each with the same facts for its basis."""
    return tuple(Preview(summary=f"{each.tool} it", basis=facts) for each in calls)


def approval(
    plan: Plan, purpose: Purpose = Purpose.CONFIRM, *, token: str = "", **fields: Any
) -> Approval:
    """An approval of a plan as the runtime's planner makes it; `token` is what is handed out."""
    made: dict[str, Any] = {
        "plan": plan.id,
        "purpose": purpose,
        "attempt": plan.attempt + (purpose is Purpose.RETRY),
        "tenant": plan.tenant,
        "session": plan.session,
        "principal": plan.principal,
        "hash": plan.hash,
        "made_at": plan.made_at,
        "answer_by": plan.made_at + ANSWER_S,
        "send_within_s": SEND_S,
        "token": token_digest(token) if token else "",
    }
    return Approval(**{**made, **fields})


@dataclass
class Office(Conversation):
    """A conversation with the office, in which plans wait for a yes."""

    tools: Mapping[str, Contract] = field(default_factory=lambda: dict(OFFICE))
    deployed: Mapping[str, str] = field(default_factory=dict)
    heard: list[str | None] = field(default_factory=list)

    def scope(self, *arrivals: Arrival) -> Scope:
        """What the next lap would look at; `deployed` tools promise something else by now."""
        seen = super().scope(*arrivals)
        return replace(seen, tools={**seen.tools, **self.deployed})

    def lap(self, *arrivals: Arrival, after_s: float = 0.0) -> list[str]:
        """Decide, write, start; `heard` is what was said to each who handed something in."""
        self.now += after_s
        self.last = what_next(self.scope(*arrivals), RULES, self.now)
        self.heard = [self.decided.answers.get(id(each)) for each in arrivals]
        self.write(self.decided.changes)
        for command in self.decided.commands:
            self._start(command)
        return events(self.decided)

    # A plan.

    def propose(self, *calls: Wanted, token: str = "tok", **fields: Any) -> list[str]:
        """These calls are shown to the person, who is asked for a yes."""
        bound = {name: fields.pop(name) for name in ("typed", "hash") if name in fields}
        question = fields.pop("question", "Shall I do it?")
        plan = wanting(
            calls,
            self.tools,
            turn=self._turn(),
            made_at=self.now,
            state=PlanState.PROPOSED,
            answer_by=self.now + ANSWER_S,
            **fields,
        )
        yes = approval(plan, token=token, **bound)
        asked = Planned(plan=plan, ask_name=ask_name(plan.ask), approval=yes, question=question)
        return self.lap(asked)

    def run(self, *calls: Wanted, **fields: Any) -> list[str]:
        """The same, and the person says yes at once."""
        self.propose(*calls, **fields)
        return self.answer(True, said="yes")

    def offer(self, purpose: Purpose, token: str, question: str = "") -> list[str]:
        """A yes for what may follow is handed out."""
        made = approval(self.plan, purpose, token=token, made_at=self.now)
        made = replace(made, answer_by=self.now + ANSWER_S)
        return self.lap(Offering(approval=made, question=question))

    def press(
        self,
        token: str = "tok",
        *,
        yes: bool = True,
        purpose: Purpose = Purpose.CONFIRM,
        of: str = "",
        **presented: str,
    ) -> list[str]:
        """A yes, or a no, comes by a button."""
        return self.lap(self.pressing(token, yes=yes, purpose=purpose, of=of, **presented))

    def pressing(
        self,
        token: str = "tok",
        *,
        yes: bool = True,
        purpose: Purpose = Purpose.CONFIRM,
        of: str = "",
        **presented: str,
    ) -> Presenting:
        """The arrival of that; `of` is the approval, else the latest plan's of that kind."""
        attempt = self.plan.attempt + (purpose is Purpose.RETRY)
        by: dict[str, Any] = {"principal": "ann", "tenant": "default", "session": "s1", **presented}
        said = Presented(purpose=purpose, token=token_digest(token) if token else "", **by)
        return Presenting(
            approval=of or approval_id(self.plan.id, purpose, attempt),
            presented=said,
            yes=yes,
            at=self.now,
        )

    @property
    def problem(self) -> Problem:
        """What was wrong with the last thing that was handed in."""
        return Problem(self.heard[0] or "")

    def tell(
        self, event: PlanEvent, *, by: str = "ann", plan: str = "", **fields: Any
    ) -> list[str]:
        """Somebody's word about the latest plan: stop, abandon, retry, undo."""
        made = {"send_by": self.now + SEND_S, **fields}
        return self.lap(
            PlanTold(plan=plan or self.plan.id, event=event, by=by, at=self.now, **made)
        )

    def stop(self, *, hard: bool = False, by: str = "ann") -> list[str]:
        return self.tell(PlanEvent.STOP_ASKED, by=by, hard=hard)

    def retry(self) -> list[str]:
        return self.tell(PlanEvent.RETRIED)

    def undo(self, by: str = "ann") -> list[str]:
        return self.tell(PlanEvent.UNDO_ASKED, by=by)

    # What comes back.

    def may(self, refused: str = "", changed: Sequence[Changed] = ()) -> list[str]:
        """The oldest check that is out comes back: it may, unless it is `refused` or `changed`."""
        out = next(each for each in self.waiting if isinstance(each, Checking))
        self.running.discard(out)
        came = Checked(
            subject=out.subject, index=out.index, refused=refused, changed=tuple(changed)
        )
        return self.lap(came)

    def finds(self, made: str = "C7") -> list[str]:
        """The oldest read that is out comes back with what it found."""
        return self.see(Acknowledged(result={"id": made}))

    @property
    def waiting(self) -> list[object]:
        """What is waited for, the oldest name first."""
        return sorted(self.running, key=lambda each: (len(str(each)), str(each)))

    def reads_out(self) -> list[int]:
        """The steps whose reads are waited for."""
        return sorted(each.index for each in self.running if isinstance(each, Watching))

    # How it stands.

    @property
    def at(self) -> list[str]:
        """Where the steps of the latest plan are."""
        return [place.at for place in self.plan.places]

    def carried_out(self, *outcomes: SendOutcome | str) -> None:
        """Each step's send comes back in turn: with an outcome, or with a yes for what it made."""
        for outcome in outcomes:
            place = next(each for each in self.plan.places if each.at is At.OUT)
            if isinstance(outcome, str):
                self.lands(place.record, outcome)
            else:
                self.reply(place.record, outcome)
