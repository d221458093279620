"""Try it: every combination of its switches comes to what is tabulated, beside the naive agent."""

import asyncio
import builtins
from collections.abc import Awaitable, Callable

import pytest

from landed.console.pages.trying import CHOICES, switches_of
from landed.console.trials import WAITING_MAX, CrowdedError, Trial, Trials
from landed.testing.picture import told
from landed.testing.playing import known, played
from landed.testing.scenarios import BY_NAME
from landed.testing.switches import COMBINATIONS, Switches
from tests.console.visiting import SVG, Element, Page, Visitors, visited


def visit(then: Callable[[Visitors], Awaitable[None]], **options: str) -> None:
    async def play() -> None:
        async with visited(**options) as there:
            await then(there)

    asyncio.run(play())


def query_of(switches: Switches) -> dict[str, str]:
    """Return what the form of the page sends for these switches."""
    process = "lives" if not switches.kill else "lost" if switches.lose_ops else "kept"
    return {
        "request": "delayed" if switches.delayed else "arrives",
        "key": "close" if switches.fencing else "lookup",
        "order": switches.order,
        "saturday": "full" if switches.full else "free",
        "process": process,
    }


def column(page: Page, run: str) -> Element:
    return page.one("section", data_run=run)


def held(section: Element, service: str) -> tuple[str, ...]:
    """Return what a page says that a service holds."""
    listed = section.all("ul", data_holds=service)
    if not listed:
        (nothing,) = section.all("span", data_holds=service)
        assert nothing.words == "nothing"
        return ()
    return tuple(each.words for each in listed[0].all("li"))


@pytest.mark.req("S0-67")
@pytest.mark.parametrize("number", range(len(COMBINATIONS)))
def test_each_of_the_fourteen_ends_on_the_page_as_tabulated(number: int) -> None:
    switches, end = COMBINATIONS[number]
    run = "landed" if switches.reconcile else "naive"

    async def see(there: Visitors) -> None:
        page = await there.page("/try", **query_of(switches))
        section = column(page, run)
        assert held(section, "restaurant") == end.holds
        assert held(section, "texts") == end.texts
        (agrees,) = section.all("dd", data_reconciled="yes" if end.reconciled else "no")
        assert agrees.words == ("agree" if end.reconciled else "do not agree")
        (said,) = section.all("dd", data_says="")
        assert all(words in said.words for words in end.says)
        assert section.all("dd", data_tabulated="yes")

    visit(see)


@pytest.mark.req("S0-67")
def test_the_fourteen_are_what_the_form_can_ask_for() -> None:
    for switches, _ in COMBINATIONS:
        query = query_of(switches)
        assert all(query[name] in choices for name, choices in CHOICES.items())
        assert switches_of(query) == Switches(
            **{name: getattr(switches, name) for name in switches.touched - {"reconcile"}}
        )


def test_both_timelines_stand_beside_each_other_on_one_axis() -> None:
    async def see(there: Visitors) -> None:
        page = await there.page("/try")
        naive, right = page.pictures
        assert naive.get("height") == right.get("height")
        titles = [[t.text for t in each.iter(f"{SVG}title")] for each in (naive, right)]
        assert "op-a2: undo owed" in titles[1]
        assert "op-a2: in doubt" in titles[1]
        assert not [text for text in titles[0] if text and text.endswith(": in doubt")]
        assert [each.words for each in page.all("h1")] == ["Try it"]

    visit(see)


def test_what_is_drawn_can_be_read_as_a_table() -> None:
    lines = played(BY_NAME["crash-after-commit"]).timeline.lines

    async def see(there: Visitors) -> None:
        page = await there.page("/try", scenario="crash-after-commit")
        (table,) = page.all("table")
        rows = [[cell.words for cell in row.all("td")] for row in table.all("tr")[1:]]
        assert [row[2] for row in rows] == [f"{line.type} {line.text}" for line in lines]
        doubtful = [row[3] != "" for row in rows]
        assert doubtful == [bool(row.in_doubt) for row in told(lines)]
        assert any(doubtful)

    visit(see)


def test_any_scenario_can_be_drawn_with_its_naive_one_beside_it() -> None:
    async def see(there: Visitors) -> None:
        page = await there.page("/try", scenario="reply-lost")
        assert held(column(page, "naive"), "restaurant") == BY_NAME["reply-lost-naive"].holds
        assert held(column(page, "landed"), "restaurant") == BY_NAME["reply-lost"].holds
        offered = {each.attributes["value"] for each in page.all("option")}
        assert offered == set(known())

    visit(see)


@pytest.mark.parametrize("name", ["changed-amount", "invoice", "deploy-zombie", "refund-conflict"])
def test_scenarios_of_every_family_are_played(name: str) -> None:
    async def see(there: Visitors) -> None:
        page = await there.page("/try", scenario=name)
        assert page.all("dd", data_tabulated="yes")

    visit(see)


@pytest.mark.parametrize(
    ("query", "status"),
    [({"scenario": "story"}, 404), ({"scenario": "<b>"}, 404), ({"key": "none"}, 422)],
)
def test_what_there_is_not_is_not_played(query: dict[str, str], status: int) -> None:
    async def see(there: Visitors) -> None:
        answer = await there.get("/try", **query)
        assert answer.status_code == status
        assert "<b>" not in answer.text

    visit(see)


def test_nothing_of_it_reaches_the_runtime_that_is_served() -> None:
    async def see(there: Visitors) -> None:
        before = await there.rt.driver.store.journal()
        await there.page("/try", process="kept")
        assert await there.rt.driver.store.journal() == before

    visit(see)


def test_the_loop_goes_on_while_a_scenario_is_played() -> None:
    async def see(there: Visitors) -> None:
        laps = 0

        async def count() -> None:
            nonlocal laps
            while True:
                await asyncio.sleep(0)
                laps += 1

        counting = asyncio.ensure_future(count())
        await there.page("/try", request="delayed", key="lookup")
        counting.cancel()
        assert laps > 100

    visit(see)


def test_it_is_played_once_and_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    playing, most, times = 0, 0, 0

    async def slowly(act: object, *given: object) -> object:
        nonlocal playing, most, times
        playing, times = playing + 1, times + 1
        most = max(most, playing)
        await opened.wait()
        playing -= 1
        return given

    async def play() -> None:
        trials = Trials()
        asked = [ask(trials, n % 2) for n in range(WAITING_MAX)]
        await asyncio.sleep(0)
        with pytest.raises(CrowdedError):
            await ask(trials, "one more")
        opened.set()
        await asyncio.gather(*asked)
        assert (most, times, trials.waiting) == (1, 2, 0)

    def ask(trials: Trials, key: object) -> "asyncio.Future[Trial]":
        return asyncio.ensure_future(trials.of(key, lambda: BY_NAME["refused"]))

    opened = asyncio.Event()
    monkeypatch.setattr(asyncio, "to_thread", slowly)
    asyncio.run(play())


def test_too_many_at_once_are_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    async def see(there: Visitors) -> None:
        async def crowded(*_: object) -> None:
            raise CrowdedError

        monkeypatch.setattr(Trials, "of", crowded)
        answer = await there.get("/try")
        assert answer.status_code == 503
        assert "Press Play again in a moment." in answer.text

    visit(see)


def test_it_is_all_said_in_spanish_too() -> None:
    async def see(there: Visitors) -> None:
        page = await there.page("/try")
        assert page.one("h1").words == "Probar"
        assert "en duda" in {text.text for text in page.pictures[1].iter(f"{SVG}text")}

    visit(see, language="es")


def test_without_the_packages_of_the_demos_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def see(there: Visitors) -> None:
        monkeypatch.setattr(builtins, "__import__", without_httpx)
        answer = await there.get("/try")
        assert answer.status_code == 503
        assert "pip install" in answer.text

    real = builtins.__import__

    def without_httpx(name: str, *rest: object) -> object:
        if name == "landed.testing.playing":
            raise ModuleNotFoundError("No module named 'httpx2'", name="httpx2")
        return real(name, *rest)  # type: ignore[arg-type]

    visit(see)
