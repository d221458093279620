"""A service that misbehaves in every way its contract leaves open, and programs that meet it.

What is drawn is a contract, a service for which that contract is true and which does no more than
that, what happens to each request, and what callers and processes do. The service counts effects,
and remembers what the runtime must never do: send on a maybe, or what its record does not say yet.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from landed.core.errors import NotSentError, RefusedError
from landed.core.outcome import Absent, Acknowledged, Found, LookOutcome, NoAnswer, NotSent, NotYet
from landed.core.tool import Call, Tool
from landed.testing.sim import World
from landed.tools.function import tool

DEADLINE_S = 5.0
ESCALATE_S = 600.0
ASSUME_S = 200.0
ABOVE = 1_000.0
DELAYS_S = (0.4, 3.0, 8.0, 27.0, 40.0)
HANGS_S = 10 * DEADLINE_S
SLOW_S = 4.0  # What a question takes that is answered in time, of how it was when it was put.


@dataclass(frozen=True, slots=True, kw_only=True)
class Mishap:
    """What happens to one request, by name; `seconds` is how long where something takes its time.

    `then` is what a delayed one comes to.
    """

    kind: str
    seconds: float = 0.0


# Whatever the contract: what is lost, late or refused on the way, and what answers mean little.
ANYWHERE = (
    *("fine", "lost", "dropped", "delayed", "late_reply", "hang", "garbage", "reset"),
    *("broken_before", "broken_after", "refused", "unsent", "not_now", "receipt_never"),
)
QUESTIONS = ("fine", "fine", "lagging", "slow", "no_answer", "hang", "garbage", "not_yet")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """One drawn world: the promises, what the wire does, and what is done."""

    seed: int
    promises: Mapping[str, Any]
    wire: Sequence[Mishap]
    questions: Sequence[str]
    lives: "Sequence[Life]"
    positions: bool

    @property
    def keyed(self) -> bool:
        """Whether the service looks at keys."""
        return bool(self.promises.get("keyed"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One thing that a caller does: `perform`, `plan`, `cancel`, `stop`, `resolve` or `pass`."""

    what: str
    call: int = 0
    nth: int = 0
    cents: int = 10
    hard: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One process: what is done in it, and after how many steps it is killed (None: it drains).

    Nobody is there for `away_s` after it.
    """

    acts: Sequence[Act]
    killed_after_steps: int | None
    seen_to_die: bool
    away_s: float


def drawn(seed: int, focus: str = "") -> Drawn:
    """Draw a world, anywhere or where a `focus` of FOCI has it; the same for the same seed."""
    dice = random.Random(f"{focus}{seed}")
    return _anywhere(dice, seed) if not focus else FOCI[focus](dice, _anywhere(dice, seed))


def _anywhere(dice: random.Random, seed: int) -> Drawn:
    promises = _promises(dice)
    kinds = [*ANYWHERE]
    kinds += ["copied"] if promises.get("keyed") else []
    kinds += ["receipt_later"] if promises["settlement_lag_s"] else []
    kinds += ["silent"] if promises["read_back"] else []
    wire = [
        Mishap(kind=dice.choice(kinds), seconds=dice.choice(DELAYS_S))
        for _ in range(dice.randint(1, 8))
    ]
    return Drawn(
        seed=seed,
        promises=promises,
        wire=wire,
        questions=[dice.choice(QUESTIONS) for _ in range(dice.randint(0, 10))],
        lives=[_life(dice) for _ in range(dice.randint(1, 3))],
        positions=dice.random() < 0.6,
    )


def _promises(dice: random.Random) -> dict[str, Any]:
    keyed = dice.random() < 0.7
    asks = {name: dice.random() < 0.5 for name in ("lookup", "close", "read_back")}
    promises: dict[str, Any] = {
        "effect": dice.choice(("reversible", "irreversible")),
        "deadline_s": DEADLINE_S,
        "escalate_after_s": ESCALATE_S,
        "when_unknown": dice.choice(("reconcile", "reconcile", "reconcile", "escalate", "block")),
        "settlement_lag_s": dice.choice((0.0, 0.0, 20.0)),
        "refuses_after_s": dice.choice((None, None, 30.0, 120.0)),
        "max_tries": dice.choice((1, 2, 5)),
        "lookup": asks["lookup"],
        "close": asks["close"] and keyed,
        "read_back": asks["read_back"],
        "target": dice.choice(((), ("account/{to}",))),
    }
    if keyed:
        promises["keyed"] = "key"
        promises["compares_payload"] = dice.random() < 0.6
        promises["retention_s"] = dice.choice((None, None, 300.0, 86_400.0))
    if dice.random() < 0.3:
        promises |= {"amount": "cents", "escalate_above": ABOVE}
    if promises["effect"] == "irreversible" and not any(
        promises[name] for name in ("lookup", "close", "read_back")
    ):
        promises["assume_after_s"] = dice.choice((None, ASSUME_S))
    interrupt = dice.choice(("finish", "wait", "stop_and_resolve"))
    promises["on_interrupt"] = interrupt
    promises["wait_s"] = 2.0 if interrupt == "wait" else 0.0
    return promises


def _life(dice: random.Random) -> Life:
    what = ("perform", "perform", "perform", "plan", "cancel", "stop", "resolve", "pass")
    acts = [
        Act(
            what=dice.choice(what) if n else "perform",
            call=dice.randint(0, 3),
            nth=dice.randint(0, 5),
            cents=dice.choice((10, 10, 10_000)),
            hard=dice.random() < 0.5,
            seconds=dice.choice((0.0, 0.3, 2.0, 6.0, 30.0)),
        )
        for n in range(dice.randint(1, 7))
    ]
    return Life(
        acts=acts,
        killed_after_steps=dice.choice((None, dice.randint(1, 200))),
        seen_to_die=dice.random() < 0.7,
        away_s=dice.choice((0.0, 0.0, 20.0, 400.0)),
    )


def _at_the_deadline(dice: random.Random, some: Drawn) -> Drawn:
    """Requests that arrive shortly before they would be refused, and looks made around that."""
    promises = {
        **_PLAINLY,
        "refuses_after_s": 30.0,
        "settlement_lag_s": dice.choice((0.0, 20.0)),
        "lookup": True,
        "max_tries": 2,
    }
    looks = [
        Act(what=what, seconds=dice.uniform(0.0, 16.0)) for _ in range(6) for what in _WAIT_AND_LOOK
    ]
    return replace(
        some,
        promises=promises,
        wire=[Mishap(kind="delayed", seconds=dice.uniform(20.0, 30.5))],
        questions=[dice.choice(("slow", "lagging", "fine")) for _ in range(14)],
        lives=[_alone(looks)],
    )


def _past_the_retention(dice: random.Random, some: Drawn) -> Drawn:
    """Nobody is there until about the time at which the key is forgotten."""
    promises = {
        **_PLAINLY,
        "keyed": "key",
        "compares_payload": True,
        "retention_s": 300.0,
        "lookup": dice.random() < 0.5,
        "close": dice.random() < 0.5,
    }
    return replace(
        some,
        promises=promises,
        wire=[Mishap(kind=dice.choice(("lost", "hang"))), *[Mishap(kind="dropped")] * 4],
        questions=["no_answer"] * 7,
        lives=[replace(_alone([]), away_s=dice.uniform(200.0, 420.0))],
    )


def _while_closing(dice: random.Random, some: Drawn) -> Drawn:
    """Nobody waits any more for what is still on its way, and its key is to be closed."""
    kinds = ("delayed", "delayed", "lost", "hang", "dropped", "copied")
    acts = [Act(what="pass", seconds=2.0), Act(what="cancel"), Act(what="pass", seconds=30.0)]
    return replace(
        some,
        promises={
            **_PLAINLY,
            "keyed": "key",
            "compares_payload": dice.random() < 0.5,
            "lookup": dice.random() < 0.5,
            "close": True,
        },
        wire=[Mishap(kind=dice.choice(kinds), seconds=dice.choice(DELAYS_S))],
        questions=[dice.choice(QUESTIONS) for _ in range(dice.randint(1, 6))],
        lives=[replace(_alone(acts), killed_after_steps=dice.choice((None, 150, 300)))],
    )


def _alone(acts: Sequence[Act]) -> Life:
    first = Act(what="perform")
    return Life(acts=[first, *acts], killed_after_steps=None, seen_to_die=True, away_s=0.0)


_WAIT_AND_LOOK = ("pass", "resolve")
_PLAINLY: Mapping[str, Any] = {
    "effect": "reversible",
    "deadline_s": DEADLINE_S,
    "escalate_after_s": ESCALATE_S,
    "settlement_lag_s": 0.0,
    "refuses_after_s": None,
    "lookup": False,
    "close": False,
    "read_back": False,
}

# Corners that drawing at random seldom gets into.
FOCI: Mapping[str, Callable[[random.Random, Drawn], Drawn]] = {
    "deadline": _at_the_deadline,
    "retention": _past_the_retention,
    "closing": _while_closing,
}


@dataclass(slots=True, eq=False)
class _Known:
    """What the service knows of one call: when it took it, and when that lands and shows."""

    first_at: float
    what: object
    result: dict[str, Any]
    lands_at: float


@dataclass(slots=True, eq=False)
class Service:
    """The far side. Its contract is true, and it keeps to nothing else.

    `wrongs` is what the runtime did that it must never do; `seen` the mishaps that happened.
    """

    world: World
    drawn: Drawn
    wire: list[Mishap] = field(default_factory=list[Mishap])
    questions: list[str] = field(default_factory=list[str])
    effects: Counter[str] = field(default_factory=Counter[str])
    wrongs: list[str] = field(default_factory=list[str])
    seen: set[str] = field(default_factory=set[str])
    see: Callable[[Call], Any] | None = None
    _keys: dict[str, _Known] = field(default_factory=dict[str, _Known])
    _closed: dict[str, float] = field(default_factory=dict[str, float])
    _landing: dict[str, list[_Known]] = field(default_factory=dict[str, list[_Known]])
    _entries: list[float] = field(default_factory=list[float])
    _left: dict[str, float] = field(default_factory=dict[str, float])
    _no: set[str] = field(default_factory=set[str])
    _asked_to_close: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self.wire.extend(self.drawn.wire)
        self.questions.extend(self.drawn.questions)

    @property
    def now(self) -> float:
        """The time, UTC in seconds."""
        return self.world.clock.now()

    @property
    def taken_up(self) -> list[str]:
        """The operations that may have arrived, oldest first."""
        return list(self._left)

    def tool(self) -> Tool:
        """Return the way to reach it, under its contract."""
        promises = {**self.drawn.promises}
        for name, ask in (
            ("lookup", self.lookup),
            ("close", self.close),
            ("read_back", self.read_back),
        ):
            promises[name] = ask if promises[name] else None
        register = tool(name="pay", **promises)
        if not self.drawn.keyed:

            async def pay(to: str, cents: int, call: Call) -> object:
                """Pay somebody."""
                return await self.send(call, (to, cents))

            return register(pay)

        async def pay_keyed(to: str, cents: int, key: str, call: Call) -> object:
            """Pay somebody, once for each key."""
            assert key == call.key
            return await self.send(call, (to, cents))

        return register(pay_keyed)

    # Sends.

    async def send(self, call: Call, what: object) -> object:
        """One send, as the tool makes it."""
        if self.see is not None:
            await self.see(call)
        self._judge(call)
        mishap = self.wire.pop(0) if self.wire else Mishap(kind="fine")
        self.seen.add(mishap.kind)
        if mishap.kind == "unsent":
            raise NotSentError("connection refused")
        if mishap.kind == "not_now":
            return NotSent(reason="429 not now", wait_s=mishap.seconds)
        self._left.setdefault(call.operation, call.sent_at)
        self._no.discard(call.operation)
        if mishap.kind == "dropped":
            return await _never()
        return await self.world.spawn(self._serve(call, what, mishap))

    def _judge(self, call: Call) -> None:
        """Whether this send may leave: the first, or again where all says that it is harmless."""
        id, promises = call.operation, self.drawn.promises
        first_at = self._left.get(id)
        if id in self._asked_to_close:
            self.wrongs.append(f"{id} sent after its key was to be closed")
        if first_at is None:
            return
        if not promises.get("compares_payload"):
            self.wrongs.append(f"{id} sent again where nobody compares")
        if promises["lookup"] and id not in self._no:
            self.wrongs.append(f"{id} sent again on a maybe")
        retention_s = promises.get("retention_s")
        if retention_s is not None and self.now > first_at + retention_s:
            self.wrongs.append(f"{id} sent again under a key that was forgotten")

    async def _serve(self, call: Call, what: object, mishap: Mishap) -> object:
        kind = mishap.kind
        if kind == "delayed":
            await asyncio.sleep(mishap.seconds)  # virtual time
        if kind == "broken_before":
            raise ConnectionError("500 before anything")
        if kind == "refused":
            raise RefusedError("no")
        if kind == "silent":
            return Acknowledged(result={"id": "none"}, position=self._written(self.now))
        if kind == "receipt_never":
            return Acknowledged(result={"id": "none"}, accepted=True)
        later_s = self.drawn.promises["settlement_lag_s"] / 2 if kind == "receipt_later" else 0.0
        known = self._take(call, what, later_s)
        return await self._answer(call, what, known, mishap)

    async def _answer(self, call: Call, what: object, known: _Known, mishap: Mishap) -> object:
        match mishap.kind:
            case "lost" | "reset" | "garbage" | "broken_after":
                raise ConnectionError(mishap.kind)
            case "hang":
                await asyncio.sleep(HANGS_S)  # virtual time
            case "late_reply":
                await asyncio.sleep(mishap.seconds)  # virtual time
            case "copied":
                self.world.spawn(self._copy(call, what, mishap.seconds))
            case _:
                pass
        if known.lands_at > self.now:
            # A position is that of a write; of what is still to land there is none to tell.
            return Acknowledged(result=known.result, accepted=True)
        position = self._position_at(known.lands_at) if self.drawn.positions else None
        return Acknowledged(result=known.result, position=position)

    async def _copy(self, call: Call, what: object, seconds: float) -> None:
        await asyncio.sleep(seconds)  # virtual time
        try:
            self._take(call, what, 0.0)
        except RefusedError:
            return  # The copy of a request is refused like any other.

    def _take(self, call: Call, what: object, later_s: float) -> _Known:
        limit_s = self.drawn.promises["refuses_after_s"]
        if limit_s is not None and self.now - call.sent_at > limit_s:
            raise RefusedError("it was sent too long ago")
        if not self.drawn.keyed:
            return self._land(call, what, later_s)
        self._forget(call.key)
        if call.key in self._closed:
            raise RefusedError("the key is closed")
        known = self._keys.get(call.key)
        if known is None:
            known = self._keys[call.key] = self._land(call, what, later_s)
        elif known.what != what and self.drawn.promises["compares_payload"]:
            raise RefusedError("the key was used with other details")
        return known

    def _land(self, call: Call, what: object, later_s: float) -> _Known:
        self.effects[call.operation] += 1
        id = f"P{self.effects.total()}"
        known = _Known(
            first_at=self.now,
            what=what,
            result={"id": id},
            lands_at=self.now + later_s,
        )
        self._written(known.lands_at)
        self._landing.setdefault(call.operation, []).append(known)
        return known

    def _written(self, at: float) -> int:
        self._entries.append(at)
        return self._position_at(at)

    def _position_at(self, at: float) -> int:
        return sum(entry <= at for entry in self._entries)

    def _forget(self, key: str) -> None:
        kept_s = self.drawn.promises.get("retention_s")
        if kept_s is None:
            return
        if key in self._keys and self.now > self._keys[key].first_at + kept_s:
            del self._keys[key]
        if key in self._closed and self.now > self._closed[key] + kept_s:
            del self._closed[key]

    # Questions.

    async def lookup(self, call: Call) -> LookOutcome:
        """Did it land? A key that was forgotten shows nothing."""
        self._forget(call.key)
        answer = await self._asked(call)
        if isinstance(answer, Found) and self.drawn.keyed and call.key not in self._keys:
            answer = Absent()
        return self._said(call, answer)

    async def close(self, call: Call) -> LookOutcome:
        """The same, and what has not landed by now never will."""
        self._asked_to_close.add(call.operation)
        self._forget(call.key)
        mishap = self.questions.pop(0) if self.questions else "fine"
        self.seen.add(f"close {mishap}")
        if mishap in ("not_yet", "no_answer"):
            return NoAnswer(reason="503")
        self._closed.setdefault(call.key, self.now)
        known = self._keys.get(call.key)
        if known is not None and known.lands_at > self.now:
            self._landing[call.operation].remove(known)
            self.effects[call.operation] -= 1
            del self._keys[call.key]
            known = None
        if mishap in ("hang", "garbage"):
            return await _badly(mishap)
        await asyncio.sleep(SLOW_S if mishap == "slow" else 0.0)  # virtual time
        return Absent() if known is None else Found(result=known.result)

    async def read_back(self, call: Call, result: object) -> LookOutcome:
        """Is it visible where it matters? Read by what was made, and not by the key."""
        return self._said(call, await self._asked(call))

    def _said(self, call: Call, answer: LookOutcome) -> LookOutcome:
        """Remember whether the last word about a call was a no: only that may be followed."""
        if isinstance(answer, Absent):
            self._no.add(call.operation)
        else:
            self._no.discard(call.operation)
        return answer

    async def _asked(self, call: Call) -> LookOutcome:
        mishap = self.questions.pop(0) if self.questions else "fine"
        self.seen.add(f"asked {mishap}")
        if mishap in ("hang", "garbage"):
            return await _badly(mishap)
        if mishap == "no_answer":
            return NoAnswer(reason="503")
        if mishap == "not_yet":
            return NotYet(reason="busy")
        lag_s = self.drawn.promises["settlement_lag_s"] / 2 if mishap == "lagging" else 0.0
        answer = self._as_of(call, self.now - lag_s)
        await asyncio.sleep(SLOW_S if mishap == "slow" else 0.0)  # virtual time
        return answer

    def _as_of(self, call: Call, at: float) -> LookOutcome:
        position = None
        if self.drawn.positions:
            position = self._position_at(at)
        for known in self._landing.get(call.operation, ()):
            if known.lands_at <= at:
                return Found(result=known.result, position=position)
        return Absent(position=position)


async def _never() -> object:
    return await asyncio.get_running_loop().create_future()


async def _badly(mishap: str) -> LookOutcome:
    if mishap == "garbage":
        raise ValueError("<html>")
    await _never()
    return NoAnswer(reason="it hung")
