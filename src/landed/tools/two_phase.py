"""Makes any service that speaks dry run and commit a tool: the agent's half of a two-phase write.

The dry run is the preview: a service's plan with its figures, its fingerprint and its token. What a
person agrees to is that plan, by its id. It is kept verbatim with our plan, and the commit sends
its token and fingerprint and nothing else that matters. So what runs is what was shown, or nothing:

- past the plan's time no commit is sent; a new dry run is shown instead;
- a write to the plan's target, by this runtime, makes it stale before anything is sent;
- a conflict is an answer that names what changed, and never a reason to try again;
- a lost answer is found out: the plan is read by its id, and the same key sent again.

The token never reaches a model: it is no argument, and in no sentence, evidence or repr.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Unpack

from landed.core.canonical import Json, canonical, parse
from landed.core.contract import Contract, Effect, check
from landed.core.declared import from_values
from landed.core.errors import ContractError, ProposalError, RefusedError
from landed.core.outcome import (
    Absent,
    Acknowledged,
    AnswerLost,
    Found,
    Listed,
    LookOutcome,
    NoAnswer,
    NotSent,
    NotYet,
    Prepared,
    Refused,
    SendOutcome,
)
from landed.core.preview import Preview, Previewing
from landed.core.tool import Call
from landed.tools.arguments import Arguments
from landed.tools.blocking import fields_of
from landed.tools.classify import Unanswered, bounded, described, of_status
from landed.tools.dry_run import (
    DryRun,
    Layout,
    Meaning,
    NoPlanError,
    actions_text,
    changed_in,
    commit_schema,
    held_plan,
    instant,
    meant,
    moved_text,
    planned,
)
from landed.tools.exchange import Exchange, Reply
from landed.tools.foresight import foresight
from landed.tools.promises import Promises
from landed.tools.reading import ACCEPTED, NotSaidError, body_of
from landed.tools.routes import Missing, Route, at, route

if TYPE_CHECKING:
    import httpx2

COMMIT_WITHIN_S = 30.0
FREEZE = (
    "Between its preview and its commit what it touches is frozen: read it freely; a write to it"
    " makes the plan stale, and it is planned and shown anew."
)
PLAN_ID = "plan_id"

Shows = Callable[[DryRun, Previewing], Preview]


class TwoPhaseTool:
    """A dry run and its commit, as one `landed.core.tool.Tool`. Needs the extra `landed[http]`.

    dry_run    where it plans, as `[METHOD ]https://…`; POST unless said. It needs no key and must
               have no effect. The arguments that the URL does not name are its JSON body
    commit     where it commits, as `https://…/plans/{plan_id}/commit`; POST unless said
    plan       where a plan is read by its id; GET unless said
    abandon    where one is given up, "" where the service has no such thing: then what nobody wants
               any more is waited for until it has expired
    arguments  per argument its type, or (type, default); `plan_id` is the runtime's
    layout     what the service calls things
    shows      the `Preview` of a plan, of which the basis is filled in here; its actions unless
               said
    headers    sent with every request
    transport  as of `HttpTool`

    The other promises are the fields of `landed.core.contract.Contract`; a send is waited for 30
    seconds unless `deadline_s` says otherwise, and its key goes into the header `Idempotency-Key`
    unless `keyed` names another. `target` is what is frozen from the dry run on.

    Raises `ContractError` where the promises contradict each other. Close it with `aclose`.
    """

    interruptible = True

    def __init__(
        self,
        *,
        name: str,
        effect: Literal["reversible", "irreversible"],
        dry_run: str,
        commit: str,
        plan: str,
        arguments: Mapping[str, object],
        abandon: str = "",
        layout: Layout | None = None,
        shows: Shows | None = None,
        headers: Mapping[str, str] | None = None,
        description: str = "",
        transport: "httpx2.AsyncBaseTransport | None" = None,
        **promises: Unpack[Promises],
    ) -> None:
        if PLAN_ID in arguments or "preview" in promises:
            raise ContractError(f"contract of {name}: plan_id and preview are the tool's own")
        keyed = promises.get("keyed", "Idempotency-Key")
        exact = {"prepare": True, "keyed": keyed, "compares_payload": True, "lookup": True}
        own = {"close": True, "preview": self._preview, "effect": Effect(effect)}
        given = {"deadline_s": COMMIT_WITHIN_S, **promises, **exact, **own}
        self.foresight, plain = foresight(name, given)
        self.name = name
        self.contract = check(from_values(plain, tool=name), tool=name)
        self._layout, self._shows = layout or Layout(), shows or _shown
        fields, told = fields_of(arguments), f"{description} {FREEZE}".strip()
        self._arguments = Arguments(name, lambda: fields, own={keyed}, description=told)
        routes = {"dry_run": dry_run, "commit": commit, "plan": plan, "abandon": abandon}
        self._routes = _routes(routes, set(arguments), tool=name)
        sent = dict(headers or {})
        self._exchange = Exchange(
            self.contract, headers=lambda call: sent, sent_at_header="", transport=transport
        )

    @property
    def schema(self) -> Mapping[str, Json]:
        """The JSON Schema of its arguments; none of them is a token or a fingerprint."""
        return self._arguments.schema

    @property
    def commit_schema(self) -> Mapping[str, Json]:
        """The JSON Schema of the body it commits with; no model is shown it, for it has a token."""
        return commit_schema(self._layout)

    def check(self, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the arguments as stored; `ProposalError` also for what no request can carry."""
        stored = self._arguments.check(arguments)
        for each in self._routes.values():
            each.fits(stored)
        return stored

    async def _preview(self, asked: Previewing) -> Preview:
        """Plan it, or show again what was planned: the very plan that a person agreed to.

        One whose time is over is not planned anew here: that is shown as a fact that changed.
        """
        plan = held_plan(dict(asked.held), self._layout)
        if plan is None:
            dry = await self._dry_run(_asking(self.contract, asked))
            if isinstance(dry, Refused):
                raise RefusedError(dry.reason)
            if isinstance(dry, NoAnswer):
                raise RuntimeError(dry.reason)
            plan = dry
        over = f"{plan.id}, expired at {instant(plan.expires_at)}"
        basis: dict[str, Json] = {
            "plan": over if plan.expired(asked.now) else plan.id,
            "fingerprint": plan.fingerprint,
        }
        shown = self._shows(plan, asked)
        summary = str(plan.told(shown.summary))
        return replace(shown, summary=summary, basis={**shown.basis, **basis}, held=plan.held)

    async def prepare(self, call: Call) -> Prepared | NoAnswer:
        """Plan what was never previewed: a lone call, or a step that is tried once more."""
        plan = await self._dry_run(call)
        if isinstance(plan, DryRun):
            return Prepared(value=plan.held)
        return NoAnswer(reason=plan.reason)

    async def send(self, call: Call) -> SendOutcome:
        """Commit the plan, once, under the operation's key; nothing where it has expired."""
        plan = self._held(call)
        if plan is None:
            return NotSent(reason=_NO_PLAN)
        if plan.inputs != self._inputs(call):
            other = f"{plan.id} was made for other inputs"
            return Refused(reason=meant(Meaning.REFUSED, other))
        if plan.expired(call.sent_at):
            over = f"{plan.id} expired at {instant(plan.expires_at)}"
            return NotSent(reason=meant(Meaning.EXPIRED, over))
        says = {"plan_id": plan.id, "token": plan.token, "fingerprint": plan.fingerprint}
        body = {name: says[what] for name, what in self._layout.sends.items()}
        key = {self.contract.keyed: call.key}
        reply = await self._carry("commit", call, plan, body=body, more=key)
        return self._committed(reply, plan) if isinstance(reply, Reply) else reply

    async def lookup(self, call: Call) -> LookOutcome:
        """Read the plan by its id: was it applied?"""
        plan = self._held(call)
        return NoAnswer(reason=_NO_PLAN) if plan is None else await self._state(call, plan)

    async def close(self, call: Call) -> LookOutcome:
        """Abandon the plan, and believe only what reading it says then."""
        plan = self._held(call)
        if plan is None:
            return NoAnswer(reason=_NO_PLAN)
        if "abandon" in self._routes:
            says: dict[str, Json] = {"reason": "no longer wanted"}
            await self._carry("abandon", call, plan, body=says)
        return await self._state(call, plan, closing=True)

    async def list_effects(self, since: float) -> Listed | NoAnswer:
        """Say that it has no list of what the service holds."""
        return NoAnswer(reason=f"{self.name} has no list of effects")

    async def read_back(self, call: Call, result: Json) -> LookOutcome:
        """Say that what a commit answered is there."""
        return NoAnswer(reason=f"{self.name} has no read_back")

    async def aclose(self) -> None:
        """Close the connections; the next call makes new ones."""
        await self._exchange.aclose()

    async def _dry_run(self, call: Call) -> DryRun | Refused | NoAnswer:
        """Plan it. It needs no key, and has no effect."""
        inputs = self._inputs(call)
        reply = await self._carry("dry_run", call, None, body=parse(inputs))
        if isinstance(reply, Refused):
            return reply
        if not isinstance(reply, Reply):
            return NoAnswer(reason=reply.reason)
        if reply.status not in (200, 201):
            said = of_status(reply.status, self.contract, says=reply.says)
            return said if isinstance(said, Refused) else NoAnswer(reason=said.reason)
        try:
            plan = planned(body_of(reply), self._layout, inputs=inputs)
        except (NotSaidError, NoPlanError) as error:  # Not its words: a token may be among them.
            return NoAnswer(reason=f"{reply.status}, and it is no plan: {error}")
        echo = at(plan.said, self._layout.inputs) if self._layout.inputs else parse(inputs)
        if isinstance(echo, Missing) or canonical(echo) != canonical(parse(inputs)):
            return NoAnswer(reason=f"a bug: {plan.id} is for other inputs than it was asked for")
        return plan

    def _committed(self, reply: Reply, plan: DryRun) -> SendOutcome:
        """Return what the answer to a commit means."""
        meaning = self._layout.means.get(reply.status, Meaning.UNKNOWN)
        says = bounded(f"{reply.status} {reply.says}")
        try:
            body = body_of(reply, may_be_empty=True)
        except NotSaidError as error:
            if meaning is Meaning.OK:
                return AnswerLost(reason=bounded(f"{reply.status} but {error}: {reply.says}"))
            body = None
        match meaning:
            case Meaning.OK:
                accepted = reply.status == ACCEPTED
                return Acknowledged(result=plan.told(body), accepted=accepted)
            case Meaning.CONFLICT | Meaning.STALE:
                return self._conflict(plan.told(body), meaning, says)
            case Meaning.EXPIRED | Meaning.REFUSED:
                return Refused(reason=meant(meaning, says))
            case Meaning.NOT_NOW:
                return of_status(429, _PLAIN, says=reply.says, wait_s=reply.wait_s)
            case Meaning.UNKNOWN:
                return AnswerLost(reason=says)

    def _conflict(self, body: Json, meaning: Meaning, says: str) -> SendOutcome:
        """Say what has changed; a conflict that names nothing leaves doubt."""
        facts = changed_in(body, self._layout)
        if not facts:
            return AnswerLost(reason=bounded(f"{says}, and it names nothing that changed"))
        moved = moved_text(facts, at(body, self._layout.planned_at))
        return Refused(reason=meant(meaning, moved), changed=facts)

    async def _state(self, call: Call, plan: DryRun, *, closing: bool = False) -> LookOutcome:
        """Read a plan. Where it may still be committed, nothing is said to be closed."""
        reply = await self._carry("plan", call, plan, body=None)
        if not isinstance(reply, Reply):
            return NoAnswer(reason=reply.reason)
        try:
            body = plan.told(body_of(reply)) if reply.status == 200 else None
        except NotSaidError as error:
            return NoAnswer(reason=bounded(f"{reply.status} but {error}: {reply.says}"))
        state, result = at(body, self._layout.state), at(body, self._layout.result)
        if state in self._layout.applied and not isinstance(result, Missing):
            return Found(result=result)
        if state in self._layout.ended:
            return Absent()
        if state in self._layout.open:
            wait = f"{plan.id} may still be committed until {instant(plan.expires_at)}"
            return NotYet(reason=wait) if closing else Absent()
        return NoAnswer(reason=bounded(f"{reply.status} {reply.says}"))

    async def _carry(
        self,
        where: str,
        call: Call,
        plan: DryRun | None,
        *,
        body: Json,
        more: Mapping[str, str] | None = None,
    ) -> Reply | Unanswered:
        way, names = self._routes[where], dict(call.arguments)
        try:
            url = way.url({**names, PLAN_ID: plan.id} if plan else names)
        except ProposalError as error:
            return NotSent(reason=described(error))
        return await self._exchange.carry(
            call,
            method=way.method,
            url=url,
            body=None if body is None else canonical(body),
            effect=where == "commit",
            more=more or {},
            hidden=frozenset({plan.token}) if plan else frozenset(),
        )

    def _held(self, call: Call) -> DryRun | None:
        return held_plan(call.prepared, self._layout)

    def _inputs(self, call: Call) -> str:
        """Return what is planned, in the one form of JSON; what the address says is not in it."""
        in_url = self._routes["dry_run"].parameters
        beside = {name: value for name, value in call.arguments.items() if name not in in_url}
        return canonical(beside).decode()


_NO_PLAN = "there is no plan of the service to commit"
_PLAIN = Contract(effect=Effect.IRREVERSIBLE, refusals=())
_METHODS = {"dry_run": "POST", "commit": "POST", "plan": "GET", "abandon": "POST"}


def _routes(specs: Mapping[str, str], arguments: set[str], *, tool: str) -> Mapping[str, Route]:
    return {
        where: route(
            spec,
            method=_METHODS[where],
            allowed=arguments if where == "dry_run" else arguments | {PLAN_ID},
            tool=tool,
        )
        for where, spec in specs.items()
        if spec
    }


def _asking(contract: Contract, asked: Previewing) -> Call:
    """Return the call that a preview plans for: it is no operation yet."""
    return Call(
        operation="",
        tool=asked.tool,
        key="",
        arguments=asked.arguments,
        ask=asked.ask,
        epoch=0,
        attempt=1,
        sent_at=asked.now,
        deadline_at=asked.now + contract.deadline_s,
    )


def _shown(plan: DryRun, asked: Previewing) -> Preview:
    return Preview(summary=f"{actions_text(plan)} (plan {plan.id})")
