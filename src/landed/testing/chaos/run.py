"""Joins a chaos run: store, services, workers and the hand; then calm, and the audit."""

import asyncio
import random
import re
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from landed.core.operation import State
from landed.stores.urls import open_store
from landed.testing.chaos.auditor import Complaint, audit
from landed.testing.chaos.books import Books, read_books
from landed.testing.chaos.crew import STOP_MAX_S, Worker
from landed.testing.chaos.hand import Hand
from landed.testing.chaos.ledgers import Effect, effects
from landed.testing.chaos.load import PAID_CENTS, Script, order_names, scripts
from landed.testing.chaos.notes import Noted, Notes
from landed.testing.chaos.places import Place, place_of
from landed.testing.chaos.report import Report, adoption
from landed.testing.chaos.tools import RESTAURANT, payments
from landed.testing.worlds.serve import ServedWorld, start
from landed.testing.worlds.weather import PATH, Weather

LOOK_S = 0.5
CALM_MAX_S = 1_800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Chaos:
    """What a run is to be.

    `store` is as `places.place_of` has it, `operations` how many the load comes to, `seconds` how
    long the hand acts at most. After that it is calm until all is at its end, or for `calm_s`
    seconds nothing got any further. The hand does one of its `acts` about every `every_s` seconds;
    with 0 it does nothing. `share` is the share of requests that something happens to. `design`
    names one of `chaos.designs`.
    """

    store: str = ""
    operations: int = 1000
    workers: int = 3
    lanes: int = 8
    seed: int = 0
    seconds: float = 300.0
    calm_s: float = 120.0
    every_s: float = 1.0
    lease_s: float = 4.0
    share: float = 0.1
    design: str = "ours"
    acts: str = "kill,pause,restart"


def run(chaos: Chaos) -> Report:
    """Let it happen, and return what it came to. Takes minutes, and every processor there is."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="landed-chaos-"))
        place = stack.enter_context(place_of(chaos.store, Path(folder)))
        served = {
            "restaurant": stack.enter_context(_restaurant(chaos, Path(folder))),
            "payments": stack.enter_context(_payments(chaos, Path(folder))),
        }
        running = _Run(chaos=chaos, folder=Path(folder), place=place, served=served)
        return asyncio.run(running.play())


def _restaurant(chaos: Chaos, folder: Path) -> ServedWorld:
    weather = Weather(share=chaos.share, seed=chaos.seed)
    return start(
        "restaurant", db=str(folder / "restaurant.db"), settings=RESTAURANT, weather=weather
    )


def _payments(chaos: Chaos, folder: Path) -> ServedWorld:
    weather = Weather(share=chaos.share, seed=chaos.seed + 1)
    paid = payments(order_names(chaos.operations), PAID_CENTS)
    return start("payments", db=str(folder / "payments.db"), settings=paid, weather=weather)


@dataclass(slots=True, eq=False)
class _Run:
    chaos: Chaos
    folder: Path
    place: Place
    served: dict[str, ServedWorld]
    scripts: tuple[Script, ...] = field(init=False)
    stuck: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.scripts = scripts(seed=self.chaos.seed, operations=self.chaos.operations)

    async def play(self) -> Report:
        began = time.monotonic()
        # The schema is there before three processes want to make it.
        await (await open_store(self.place.url)).close()
        workers = [self._worker(number) for number in range(self.chaos.workers)]
        crew = asyncio.gather(*(worker.keep() for worker in workers))
        hand = Hand(
            chance=random.Random(self.chaos.seed),
            workers=workers,
            place=self.place,
            every_s=self.chaos.every_s,
            lease_s=self.chaos.lease_s,
            acts=frozenset(self.chaos.acts.split(",")),
        )
        try:
            await self._under_load(hand)
            weather = await self._calm()
            await self._at_rest()
        finally:
            for worker in workers:
                worker.stop()
            done, _ = await asyncio.wait((asyncio.ensure_future(crew),), timeout=STOP_MAX_S)
            if not done:
                for worker in workers:
                    worker.signal(signal.SIGKILL)
        return await self._reported(hand, weather, time.monotonic() - began)

    def _worker(self, number: int) -> Worker:
        chaos, notes = self.chaos, Notes(self.folder / f"worker-{number}.notes")
        given = {
            "store": self.place.url,
            "notes": notes.path,
            "number": number,
            "workers": chaos.workers,
            "operations": chaos.operations,
            "seed": chaos.seed,
            "lanes": chaos.lanes,
            "lease-s": chaos.lease_s,
            "design": chaos.design,
            **{name: world.url for name, world in self.served.items()},
        }
        words = [word for name, value in given.items() for word in (f"--{name}", str(value))]
        command = ("-m", "landed.testing.chaos.process", *words)
        return Worker(number=number, command=command, notes=notes)

    async def _under_load(self, hand: Hand) -> None:
        """Wait until every script is done, or the time is over, while the hand acts."""
        over = asyncio.Event()
        playing = asyncio.ensure_future(hand.play(over) if hand.every_s else over.wait())
        until = time.monotonic() + self.chaos.seconds
        while self._unfinished() and time.monotonic() < until and not playing.done():
            await asyncio.wait((playing,), timeout=LOOK_S)
        over.set()
        await playing

    async def _calm(self) -> Counter[str]:
        """Call the weather off at both services, and return what it did."""
        happened: Counter[str] = Counter()
        async with httpx2.AsyncClient() as client:
            for world in self.served.values():
                answer = await client.post(f"{world.url}{PATH}", json={"share": 0})
                happened.update(answer.raise_for_status().json()["happened"])
        return happened

    async def _at_rest(self) -> None:
        """Wait until every script is done and nothing is open, as long as anything gets further."""
        began = moved = time.monotonic()
        stood: object = None
        while (now := time.monotonic()) < min(moved + self.chaos.calm_s, began + CALM_MAX_S):
            left = len(self._unfinished()), await asyncio.to_thread(self.place.open)
            if left == (0, {}):
                return
            moved, stood = (moved if left == stood else now), left
            await asyncio.sleep(LOOK_S)
        # While the workers still live: who holds it is what one wants to know then.
        held = await asyncio.to_thread(self.place.left)
        waits = (f"script {s.number} ({s.do}) in {s.session}" for s in self._unfinished())
        self.stuck = (*held, *waits)

    def _notes(self) -> list[dict[str, Any]]:
        paths = (self.folder / f"worker-{number}.notes" for number in range(self.chaos.workers))
        return [line for path in paths for line in Notes(path).lines()]

    def _unfinished(self) -> list[Script]:
        done = {line["script"] for line in self._notes() if line["noted"] == Noted.DONE}
        return [script for script in self.scripts if script.number not in done]

    async def _reported(self, hand: Hand, weather: Counter[str], seconds: float) -> Report:
        chaos, notes, unfinished = self.chaos, self._notes(), self._unfinished()
        left_open = await asyncio.to_thread(self.place.open)
        store = await open_store(self.place.url)
        try:
            books = await read_books(store)
        finally:
            await store.close()
        landed = effects(
            restaurant=self.folder / "restaurant.db", payments=self.folder / "payments.db"
        )
        claims = [len(line["ids"]) for line in notes if line["noted"] == Noted.CLAIMED]
        ends: Counter[str] = Counter()
        for worker in hand.workers:
            ends.update(worker.ends)
        return Report(
            seed=chaos.seed,
            seconds=seconds,
            scripts=len(self.scripts),
            unfinished=len(unfinished),
            operations=_states(books),
            failed=_reasons(books),
            refused=Counter(_plain(n["says"]) for n in notes if n["noted"] == Noted.REFUSED),
            effects=Counter(effect.tool for effect in landed),
            did=hand.did,
            ends=ends,
            noted=Counter(line["noted"] for line in notes),
            weather=weather,
            resends=books.resends,
            events=books.events,
            takeovers=sum(claims),
            adoption=adoption(hand.orphans, notes, hand.restarts, lease_s=chaos.lease_s),
            left_open=left_open,
            stuck=self.stuck,
            unexpected=tuple(says for worker in hand.workers for says in worker.unexpected),
            complaints=_audited(books, landed, self.scripts, unfinished),
        )


def _states(books: Books) -> Counter[str]:
    return Counter(str(operation.state) for operation in books.operations)


def _reasons(books: Books) -> Counter[str]:
    failed = [each for each in books.operations if each.state is State.FAILED]
    return Counter(f"{o.tool}: {_plain(o.evidence[-1].says)}" for o in failed if o.evidence)


_NAME = re.compile(r"\b(?:[a-z]+-)?[0-9][0-9a-z.:]*\b")


def _plain(text: str) -> str:
    """Return a text without the ids and numbers that make it one of its kind."""
    return _NAME.sub("…", text)


def _audited(
    books: Books,
    landed: Sequence[Effect],
    every: Sequence[Script],
    unfinished: Sequence[Script],
) -> tuple[Complaint, ...]:
    still = {script.number for script in unfinished}
    return audit(books, landed, [script for script in every if script.number not in still])
