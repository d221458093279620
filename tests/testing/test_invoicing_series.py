"""No order of issuing, voiding, crashing and asking again uses a number twice or begins again."""

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from landed.testing.worlds.far_side import KeyedLedger
from landed.testing.worlds.invoicing import figures
from landed.testing.worlds.invoicing.figures import Figures, Line
from tests.testing.invoices import Invoices

MOMENTS = ("issue", "crash", "again", "void", "restart", "delete a draft", "new year")
YEAR_S = 366 * 86_400.0


@contextmanager
def crash_before_the_commit() -> Iterator[None]:
    """The effect is written, its key is not yet: the process is as good as dead."""
    with mock.patch.object(KeyedLedger, "bind", side_effect=OSError("killed")):
        yield


@dataclass
class Story:
    """What was asked under which key, and what the service said of it, in order."""

    path: str
    said: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    invoices: list[str] = field(default_factory=list)
    drafts: int = 0
    keys: int = 0
    later_s: float = 0.0

    async def tell(self, moments: list[str]) -> list[str]:
        """Live through the moments; returns the numbers that are in the books, in their order."""
        while moments:
            async with Invoices(path=self.path) as world:
                world.clock.at += self.later_s
                while moments and (moment := moments.pop(0)) != "restart":
                    await self._one(world, moment)
                kept = [one["id"] for one in (await world.books())["invoices"]]
        return kept

    async def _one(self, world: Invoices, moment: str) -> None:
        match moment:
            case "issue":
                await self._ask(world, await self._drafted(world))
            case "crash":
                path = await self._drafted(world)
                with crash_before_the_commit():
                    await self._ask(world, path, refused=500)
            case "again" if self.asked:
                await self._ask(world, *self.asked[len(self.said) % len(self.asked)])
            case "void" if self.invoices:
                # Also one that was voided already, or that voids another: those are refused.
                voided = self.invoices[len(self.asked) % len(self.invoices)]
                await self._ask(world, f"/invoices/{voided}/void")
            case "delete a draft":
                draft = (await self._drafted(world)).removesuffix("/issue")
                await world.act(f"{draft}/delete", f"{draft}/deleted")
            case "new year":
                self.later_s += YEAR_S
                world.clock.at += YEAR_S

    async def _drafted(self, world: Invoices) -> str:
        self.drafts += 1
        lines = [{"what": "logo", "unit_price": "500.00"}]
        made = await world.did("/drafts", f"d{self.drafts}", contact="C1", lines=lines)
        return f"/drafts/{made['id']}/issue"

    async def _ask(self, world: Invoices, path: str, key: str = "", *, refused: int = 422) -> None:
        self.keys += not key
        key = key or f"k{self.keys}"
        self.asked.append((path, key))
        answer = await world.act(path, key)
        if not answer.is_success:
            assert answer.status_code == refused, answer.text
            return
        number = answer.json()["id"]
        # The same key has the same number for ever, and another key another one.
        assert self.said.setdefault(key, number) == number
        assert len(set(self.said.values())) == len(self.said)
        if number not in self.invoices:
            self.invoices.append(number)


def by_series(numbers: list[str]) -> dict[str, list[int]]:
    series: dict[str, list[int]] = {}
    for number in numbers:
        name, _, last = number.rpartition("-")
        series.setdefault(name, []).append(int(last))
    return series


@settings(max_examples=60)
@given(st.lists(st.sampled_from(MOMENTS), min_size=1, max_size=14))
@example(["issue", "crash", "again", "issue", "void", "restart", "issue", "again"])
@example(["crash", "again", "void", "void", "restart", "again", "issue"])
@example(["issue", "new year", "issue", "void", "restart", "crash", "again"])
def test_a_number_is_used_once_and_a_series_only_goes_on(moments: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        story = Story(path=str(Path(folder) / "invoicing.db"))
        kept = asyncio.run(story.tell(list(moments)))
    assert kept == story.invoices
    for name, numbers in by_series(kept).items():
        assert numbers == list(range(1, len(numbers) + 1)), name


# The figures themselves.

HALVES = [
    ("1", "0.5", Figures(net_cents=1, vat_cents=0, total_cents=1)),
    ("1", "0.4999", Figures(net_cents=0, vat_cents=0, total_cents=0)),
    ("1", "50", Figures(net_cents=50, vat_cents=11, total_cents=61)),  # 10.5 goes up
    ("3", "33.33", Figures(net_cents=100, vat_cents=21, total_cents=121)),
    ("0.1", "10000000", Figures(net_cents=1_000_000, vat_cents=210_000, total_cents=1_210_000)),
]


@pytest.mark.parametrize(("quantity", "unit_cents", "expected"), HALVES)
def test_halves_of_a_cent_go_up(quantity: str, unit_cents: str, expected: Figures) -> None:
    line = Line(what="x", quantity=Decimal(quantity), unit_cents=Decimal(unit_cents))
    assert figures.totals([line]) == expected


prices = st.integers(1, 10**7).map(lambda cents: f"{cents // 100}.{cents % 100:02d}")
priced = st.fixed_dictionaries({"what": st.just("x"), "unit_price": prices})


@given(st.lists(priced, min_size=1, max_size=9))
def test_a_price_as_text_is_the_same_amount_as_in_cents_and_an_invoice_is_taken_back_whole(
    lines: list[dict[str, str]],
) -> None:
    cents: list[dict[str, Any]] = [
        {"what": "x", "unit_cents": int(one["unit_price"].replace(".", ""))} for one in lines
    ]
    what = figures.totals(figures.lines_of(lines))
    assert what == figures.totals(figures.lines_of(cents))
    assert what.net_cents + what.vat_cents == what.total_cents
    assert what.net_cents == sum(one["unit_cents"] for one in cents)
    back = figures.rectified(what)
    assert (back.net_cents, back.total_cents) == (-what.net_cents, -what.total_cents)


@pytest.mark.parametrize(
    ("cents", "en", "es"),
    [(60_500, "605.00", "605,00"), (-5, "-0.05", "-0,05"), (-60_550, "-605.50", "-605,50")],
)
def test_an_amount_is_written_with_its_cents_also_below_nothing(
    cents: int, en: str, es: str
) -> None:
    assert (figures.written(cents), figures.written(cents, "es")) == (en, es)
