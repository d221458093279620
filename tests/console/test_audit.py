"""The audit: the tenant's entries, whether the journal holds together, and files to take along."""

import asyncio
import csv
import io
import json
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import landed
from landed.console.exported import cell
from landed.core.plan import Wanted
from landed.runtime import checking
from tests.console.visiting import Visitors, visited

Then = Callable[[Visitors, str], Awaitable[None]]
FORMULA = '=HYPERLINK("http://evil.example")'


@landed.tool(effect="reversible")
async def book(day: str) -> dict[str, str]:
    return {"id": day}


async def booked(there: Visitors, day: str, **asked: Any) -> str:
    whose: dict[str, Any] = {"session": "s1", "principal": "ana", "tenant": "acme", **asked}
    heard = await there.rt.receive(f"book {day}", **whose)
    return (await there.rt.perform(book, {"day": day}, ask=heard.ask("c1"))).operation


def see(then: Then, *, store: str = "sqlite://:memory:", **options: Any) -> None:
    async def play() -> None:
        async with visited([book], store=store, **options) as there:
            await booked(there, "theirs", tenant="other", session="theirs")
            await then(there, await booked(there, FORMULA, session=FORMULA))

    asyncio.run(play())


def test_the_entries_are_the_tenants_newest_first_and_hold_together() -> None:
    async def look(there: Visitors, id: str) -> None:
        page = await there.page("/audit", who="boss")
        assert [e.words for e in page.all("p", data_holds="yes")]
        rows = page.one("table").all("tr")[1:]
        positions = [int(row.all("td")[0].words) for row in rows]
        assert positions == sorted(positions, reverse=True)
        assert any(id in row.words for row in rows)
        entries = await there.rt.driver.store.journal()
        ids = {entry.id for entry in entries if entry.seq in positions}
        held = await there.rt.driver.store.load(*ids)
        assert {record.tenant for record in held} == {"acme"}
        assert not any("theirs" in row.words for row in rows)

    see(look)


@pytest.mark.parametrize(("who", "status"), [("boss", 200), ("ana", 403), ("eve", 200)])
def test_the_journal_is_for_administrators(who: str, status: int) -> None:
    async def look(there: Visitors, id: str) -> None:
        answer = await there.get("/audit", who=who)
        assert answer.status_code == status
        assert (id in answer.text) is (who == "boss")
        assert (await there.get("/audit.csv", who=who)).status_code == status
        said = await there.post("/audit/check", {}, who=who)
        assert said.status_code == status

    see(look)


def test_it_is_read_back_a_page_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "SPAN", 3)
    monkeypatch.setattr(checking, "SPANS_MAX", 2)
    monkeypatch.setattr(checking, "ROWS_MIN", 2)

    async def look(there: Visitors, id: str) -> None:
        seen: list[int] = []
        after = ""
        for _ in range(50):
            answer = await there.get(
                "/audit.json", who="boss", **({"after": after} if after else {})
            )
            told = json.loads(answer.text)
            seen += [entry["position"] for entry in told["entries"]]
            after = str(told["next"])
            if after == "0":
                break
        entries = await there.rt.driver.store.journal()
        held = {r.id for r in await there.rt.driver.store.load(*{e.id for e in entries})}
        assert held
        mine = [
            entry.seq
            for entry in entries
            if (await there.rt.driver.store.load(entry.id))[0].tenant == "acme"
        ]
        assert seen == mine[::-1]

    see(look)


def test_the_whole_journal_is_checked_and_it_is_said_how_far(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checking, "CHECKED_MAX", 4)
    monkeypatch.setattr(checking, "BITE", 4)

    async def look(there: Visitors, id: str) -> None:
        entries = await there.rt.driver.store.journal()
        form, words = dict[str, str](), ""
        for _ in range(20):
            answer = await there.post("/audit/check", form, who="boss")
            assert answer.status_code == 200
            words = answer.text
            assert 'data-holds="yes"' in words or "nothing to check" in words
            if "The journal ends there." in words:
                break
            form = {"after": words.split('name="after" value="')[1].split('"')[0]}
        assert "The journal ends there." in words
        assert int(form["after"]) >= entries[-1].seq - 4

    see(look)


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        ("UPDATE journal SET body = X'7B7D' WHERE seq = 4", "Entry 4 was edited"),
        ("DELETE FROM journal WHERE seq = 5", "Entry 6 does not follow the one before it"),
    ],
)
def test_an_edited_journal_is_told_where_it_was(tmp_path: Path, edit: str, told: str) -> None:
    file = tmp_path / "agent.db"

    async def look(there: Visitors, id: str) -> None:
        with sqlite3.connect(file) as outside:
            rows = outside.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
            for (name,) in rows.fetchall():
                outside.execute(f"DROP TRIGGER {name}")
            outside.execute(edit)
        outside.close()
        whole = await there.post("/audit/check", {}, who="boss")
        assert told in whole.text
        assert 'data-holds="no"' in whole.text
        page = await there.get("/audit", who="boss")
        assert page.status_code == 200
        assert told in page.text

    see(look, store=f"sqlite:///{file}")


def test_a_journal_with_a_secret_is_checked_with_it() -> None:
    async def look(there: Visitors, id: str) -> None:
        page = await there.get("/audit", who="boss")
        assert 'data-holds="yes"' in page.text

    see(look, secret=b"s3cret")


def test_only_one_check_runs_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, opened = asyncio.Event(), asyncio.Event()
    check = checking.Checker.check

    async def slowly(self: checking.Checker, **how: Any) -> Any:
        begun.set()
        await opened.wait()
        return await check(self, **how)

    monkeypatch.setattr(checking.Checker, "check", slowly)

    async def look(there: Visitors, id: str) -> None:
        first = asyncio.ensure_future(there.post("/audit/check", {}, who="boss"))
        await begun.wait()
        second = await there.post("/audit/check", {}, who="eve")
        assert second.status_code == 503
        assert "Press the button again" in second.text
        opened.set()
        assert (await first).status_code == 200

    see(look)


@pytest.mark.fault("X88")
def test_in_a_csv_file_nothing_is_a_formula() -> None:
    async def look(there: Visitors, id: str) -> None:
        answer = await there.get("/audit.csv", who="boss")
        assert answer.headers["content-type"].startswith("text/csv")
        assert answer.headers["content-disposition"] == 'attachment; filename="audit.csv"'
        rows = list(csv.DictReader(io.StringIO(answer.text)))
        assert f"'{FORMULA}" in {row["session"] for row in rows}
        assert not any(value.startswith("=") for row in rows for value in row.values())

    see(look)


@pytest.mark.fault("X88")
@pytest.mark.parametrize("value", ["=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\uff1d1"])
def test_what_a_spreadsheet_would_compute_is_quoted(value: str) -> None:
    assert cell(value) == f"'{value}"


@pytest.mark.parametrize(("value", "text"), [(-5, "-5"), (1.5, "1.5"), ("a=b", "a=b"), (None, "")])
def test_what_it_would_not_stays(value: object, text: str) -> None:
    assert cell(value) == text


def test_the_audit_of_a_plan_is_for_whoever_may_see_the_plan() -> None:
    async def look(there: Visitors, id: str) -> None:
        whose: dict[str, Any] = {"session": "s2", "principal": "ana", "tenant": "acme"}
        heard = await there.rt.receive("book Sat", **whose)
        calls = [Wanted(tool="book", arguments={"day": "Sat"})]
        plan = await there.rt.propose(calls, ask=heard.ask("c1"))
        path = f"/plans/{plan.plan}/audit"
        page = await there.page(path)
        assert plan.plan in page.words
        assert "book Sat" in page.words
        assert "proposed" in page.words
        told = json.loads((await there.get(f"{path}.json")).text)
        assert (told["plan"]["plan"], len(told["steps"])) == (plan.plan, 1)
        assert (await there.get(f"{path}.csv")).text.splitlines()[0].startswith("seq,at,event")
        statuses = [
            (await there.get(path + end, who=who)).status_code
            for who in ("boss", "bob", "eve")
            for end in ("", ".json", ".csv")
        ]
        assert statuses == [200] * 3 + [404] * 6
        shown = await there.page(f"/plans/{plan.plan}")
        assert f"/console{path}" in {a.attributes.get("href") for a in shown.all("a")}

    see(look)
