"""What the tests of plans at the runtime share: an office whose tools count at the far side."""

from typing import Any

from landed.core.approval import Purpose
from landed.core.changes import Changes, Kind, Record
from landed.core.plan import Wanted
from landed.core.tool import Call
from landed.core.value import PlanValue
from landed.runtime.permissions import Permit
from landed.runtime.runtime import Runtime
from landed.tools.function import FunctionTool, tool
from tests.runtime.rig import DEADLINE_S, FarSide, Rig
from tests.runtime.stores import Wrapped

ANA = "ana"


def act(far: FarSide, name: str, **promises: Any) -> FunctionTool[Any, Any]:
    """A tool of any name that does one thing to `what`, at a service that keeps keys."""
    kept: dict[str, Any] = {
        "name": name,
        "effect": "irreversible",
        "keyed": "key",
        "compares_payload": True,
        "lookup": far.lookup,
        "close": far.close,
        "deadline_s": DEADLINE_S,
        **promises,
    }

    @tool(**kept)
    async def doing(what: str, key: str, call: Call) -> object:
        """Do it."""
        assert key == call.key
        return await far.take(call, f"{name} {what}")

    return doing


def office(far: FarSide, **promises: Any) -> tuple[FunctionTool[Any, Any], ...]:
    """Draft, issue, mail and remind, each taking what the one before made, and no yes."""
    return (
        act(far, "draft", makes_type="draft", **promises),
        act(far, "issue", accepts={"what": "draft"}, makes_type="invoice", **promises),
        act(far, "mail", accepts={"what": "invoice"}, makes_type="letter", **promises),
        act(far, "remind", accepts={"what": "invoice"}, **promises),
    )


def shelf(far: FarSide, **promises: Any) -> tuple[FunctionTool[Any, Any], ...]:
    """Put on the shelf and take off it again: what one does, the other undoes."""
    back: dict[str, Any] = {"undo": "take_off", "undo_arguments": {"what": "{result.id}"}}
    put = act(far, "put", **{"effect": "reversible", "makes_type": "box", **back, **promises})
    return put, act(far, "take_off")


INVOICE = (
    Wanted(tool="draft", arguments={"what": "logo"}),
    Wanted(tool="issue", arguments={"what": "$1"}),
    Wanted(tool="mail", arguments={"what": "$2"}),
    Wanted(tool="remind", arguments={"what": "$2"}),
)


def calls(name: str, *whats: str) -> tuple[Wanted, ...]:
    """The same tool for each of these."""
    return tuple(Wanted(tool=name, arguments={"what": what}) for what in whats)


async def propose(
    rt: Runtime,
    wanted: tuple[Wanted, ...] = INVOICE,
    *,
    text: str = "invoice the logo",
    call_id: str = "act",
    session: str = "main",
    **asked: Any,
) -> PlanValue:
    """Hear a request of Ana's, once however often it is delivered, and propose a plan for it."""
    heard = await rt.receive(text, principal=ANA, session=session, delivery=f"{session}/{text}")
    return await rt.propose(wanted, ask=heard.ask(call_id), **asked)


async def only_plan(rt: Runtime) -> str:
    """The plan of the session, as code of any process finds it: by what the store holds."""
    held = await rt.driver.store.session_records(tenant="default", session="main")
    return next(record.id for record in held if record.kind is Kind.PLAN)


async def journal(rt: Runtime) -> list[str]:
    """Every event so far."""
    return [entry.event for entry in await rt.driver.store.journal()]


async def undo_token(rt: Runtime, plan: str) -> str:
    """Hand out the button that takes a plan back."""
    offer = await rt.offer(plan, Purpose.UNDO)
    assert offer is not None
    return offer.token


def landed_in_order(rig: Rig) -> list[object]:
    """What took effect at the far side, in order."""
    return list(rig.far.arguments.values())


class Rights:
    """Who may what: everybody everything, but for what is `revoked`; `chiefs` administer."""

    def __init__(self, *revoked: str, chiefs: tuple[str, ...] = ()) -> None:
        self.revoked = set(revoked)
        self.chiefs = chiefs

    async def allows(self, permit: Permit) -> bool:
        return permit.permission not in self.revoked

    async def administers(self, principal: str, *, tenant: str) -> bool:
        return principal in self.chiefs


def give(rt: Runtime, rights: Rights) -> Rights:
    """Have a runtime of a rig ask these."""
    rt.planner.foreseer.permissions = rights
    return rights


class UnitsCounted(Wrapped):
    """Keeps the events of each unit that became durable."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.units: list[list[str]] = []

    async def commit(self, changes: Changes) -> tuple[Record, ...]:
        stored = await self.inner.commit(changes)
        self.units.append([move.event.name for move in changes.moves])
        return stored


def at_of(value: PlanValue) -> list[str]:
    """How far each step of a plan has come."""
    return [str(step.at) for step in value.steps]
