"""Statements: effect and key in one transaction, so that whatever is lost, the row says it."""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from landed.core.canonical import Json
from landed.core.errors import ContractError, ProposalError
from landed.core.key import Ask
from landed.core.operation import State
from landed.core.outcome import (
    Absent,
    Acknowledged,
    AnswerLost,
    Found,
    Listed,
    NoAnswer,
    NotSent,
    NotYet,
    Refused,
)
from landed.core.tool import Call
from landed.core.value import Accepted, Confirmed, Failed, Undecided
from landed.runtime.runtime import Runtime
from landed.testing.check_tool import Verdict, check_tool
from landed.testing.faults import FaultyTool, Point, Points
from landed.testing.sim import World, current_process
from landed.tools.sql import KEY, SqlTool, outbox
from tests.runtime.rig import Rig
from tests.tools.calls import call_of, run

PAY = (
    "UPDATE account SET cents = cents - :cents WHERE name = :name",
    "INSERT INTO payment (name, cents, ref) VALUES (:name, :cents, :landed_key)",
)
ANA: dict[str, Json] = {"name": "ana", "cents": 30}
DONE: Json = {"rows": 1}
WAIT_MAX_S = 20.0


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    """A database of somebody else's, with two accounts."""
    path = tmp_path / "bank.db"
    with sqlite3.connect(path) as sql:
        sql.executescript(
            "CREATE TABLE account (name TEXT PRIMARY KEY, cents INTEGER CHECK (cents >= 0));"
            "CREATE TABLE payment (n INTEGER PRIMARY KEY, name TEXT, cents INTEGER, ref TEXT);"
            "CREATE TABLE outbox (id TEXT PRIMARY KEY, recipient TEXT, text TEXT, done INTEGER);"
            "INSERT INTO account VALUES ('ana', 100), ('bob', 0);"
        )
    sql.close()
    return path


class Wire:
    """A connection that breaks at its commit, before or after it is done; else a plain one."""

    def __init__(self, sql: Any, breaks: list[str]) -> None:
        self._sql, self._breaks = sql, breaks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sql, name)

    def commit(self) -> None:
        how = self._breaks.pop(0) if self._breaks else ""
        if how == "before":
            raise ConnectionResetError("the connection was lost")
        self._sql.commit()
        if how == "after":
            raise ConnectionResetError("the connection was lost")


def connecting(bank: Path, *breaks: str, **how: Any) -> Callable[[], Any]:
    left = list(breaks)
    return lambda: Wire(sqlite3.connect(bank, **how), left)


def paying(connect: Callable[[], Any], **given: Any) -> SqlTool:
    told: dict[str, Any] = {
        "name": "pay",
        "effect": "irreversible",
        "statements": PAY,
        "arguments": {"name": str, "cents": int},
        "rows": 1,
    }
    tool = SqlTool(connect=connect, **(told | given))
    tool.set_up()
    return tool


def paying_at(bank: Path, *breaks: str, **given: Any) -> SqlTool:
    paying(connecting(bank))
    tool = paying(connecting(bank), **given)
    tool._connect = connecting(bank, *breaks)
    return tool


def call(tool: Any, arguments: Any = ANA, key: str = "op-1") -> Call:
    return call_of(tool.check(arguments), key=key)


def send(tool: Any, arguments: Any = ANA, key: str = "op-1") -> Any:
    return run(tool.send(call(tool, arguments, key)))


def look(tool: Any, arguments: Any = ANA, key: str = "op-1") -> Any:
    return run(tool.lookup(call(tool, arguments, key)))


def close(tool: Any, arguments: Any = ANA, key: str = "op-1") -> Any:
    return run(tool.close(call(tool, arguments, key)))


def rows(bank: Path, query: str = "SELECT name, cents, ref FROM payment") -> list[Any]:
    with sqlite3.connect(bank) as sql:
        found = sql.execute(query).fetchall()
    sql.close()
    return found


def cents(bank: Path) -> int:
    return int(rows(bank, "SELECT cents FROM account WHERE name = 'ana'")[0][0])


# One transaction.


def test_the_statements_and_the_key_are_one_transaction(
    bank: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = paying_at(bank)
    assert send(tool) == Acknowledged(result=DONE)
    assert (cents(bank), rows(bank)) == (70, [("ana", 30, "op-1")])
    assert look(tool) == Found(result=DONE, position=1)
    listed = run(tool.list_effects(0.0))
    assert isinstance(listed, Listed)
    assert [(one.key, one.result) for one in listed.effects] == [("op-1", DONE)]
    assert run(tool.list_effects(9e9)) == Listed(effects=())
    send(tool, key="op-2")
    monkeypatch.setattr("landed.tools.sql.LISTED_MAX", 1)
    assert isinstance(run(tool.list_effects(0.0)), NoAnswer)


@pytest.mark.req("S4-03")
def test_the_same_key_again_is_the_same_payment(bank: Path) -> None:
    tool = paying_at(bank)
    assert {repr(send(tool)) for _ in range(3)} == {repr(Acknowledged(result=DONE))}
    assert (cents(bank), len(rows(bank))) == (70, 1)


def test_one_key_never_stands_for_two_payments(bank: Path) -> None:
    tool = paying_at(bank)
    send(tool)
    assert isinstance(send(tool, {**ANA, "cents": 31}), Refused)
    assert cents(bank) == 70


@pytest.mark.parametrize(
    "wanted", [{"name": "ana", "cents": 101}, {"name": "nobody", "cents": 1}], ids=["check", "rows"]
)
def test_what_the_database_refuses_leaves_nothing(bank: Path, wanted: dict[str, Json]) -> None:
    tool = paying_at(bank, statements=PAY[::-1])
    assert isinstance(send(tool, wanted), Refused)
    assert (cents(bank), rows(bank)) == (100, [])
    assert look(tool, wanted) == Absent()


def test_each_statement_may_have_a_number_of_its_own(bank: Path) -> None:
    nobody: dict[str, Json] = {"name": "nobody", "cents": 1}
    assert isinstance(send(paying_at(bank, rows=[1, None]), nobody), Refused)
    assert send(paying_at(bank, rows=[None, 1]), nobody) == Acknowledged(result=DONE)


def test_what_is_returned_is_the_result_and_stays_it(bank: Path) -> None:
    tool = paying_at(bank, statements=[*PAY[:1], f"{PAY[1]} RETURNING n, ref"])
    result: Json = {"rows": 1, "returned": [{"n": 1, "ref": "op-1"}]}
    assert send(tool) == Acknowledged(result=result)
    assert send(tool) == Acknowledged(result=result)
    assert look(tool) == Found(result=result, position=1)


def test_more_rows_than_a_result_holds_are_refused(bank: Path) -> None:
    with sqlite3.connect(bank) as sql:
        sql.executemany("INSERT INTO payment (cents) VALUES (?)", [(n,) for n in range(101)])
    sql.close()
    tool = paying_at(bank, statements="UPDATE payment SET cents = 0 RETURNING n", rows=None)
    assert isinstance(send(tool), Refused)
    assert max(rows(bank, "SELECT cents FROM payment"))[0] == 100


@pytest.mark.parametrize("mode", [{"isolation_level": None}, {"isolation_level": "DEFERRED"}])
def test_a_driver_that_commits_by_itself_is_kept_from_it(bank: Path, mode: dict[str, Any]) -> None:
    tool = paying(connecting(bank, **mode), statements=PAY[::-1])
    assert isinstance(send(tool, {"name": "ana", "cents": 101}), Refused)
    assert rows(bank) == []
    assert look(tool) == Absent()
    assert isinstance(send(tool), Acknowledged)
    assert close(tool, key="op-2") == Absent()
    assert isinstance(send(tool, key="op-2"), Refused)


class Psycopg(Wire):
    """As a driver that has an `autocommit` of its own, and another form of parameters."""

    autocommit = True

    def cursor(self) -> Any:
        real = self._sql.cursor()

        class Cursor:
            description = property(lambda self: real.description)
            rowcount = property(lambda self: real.rowcount)
            fetchmany = staticmethod(real.fetchmany)

            @staticmethod
            def execute(statement: str, values: dict[str, object]) -> None:
                assert ":name" not in statement
                plain = {name: f":{name}" for name in values}
                real.execute(statement % plain, values)

        return Cursor()


def test_another_drivers_parameters_and_transactions_are_its_own(bank: Path) -> None:
    opened: list[Psycopg] = []

    def connect() -> Psycopg:
        opened.append(Psycopg(sqlite3.connect(bank), []))
        return opened[-1]

    like = "UPDATE account SET cents = cents - :cents WHERE name = :name AND name LIKE '%a%'"
    tool = paying(connect, form="%(name)s", statements=[PAY[1], like])
    assert send(tool) == Acknowledged(result=DONE)
    assert opened[-1].autocommit is False
    assert (cents(bank), rows(bank)) == (70, [("ana", 30, "op-1")])


# What is lost on the way.


@pytest.mark.req("S4-01", "S4-30")
@pytest.mark.parametrize(("breaks", "landed"), [("after", True), ("before", False)])
def test_a_connection_that_is_lost_at_the_commit_leaves_doubt_and_the_row_ends_it(
    bank: Path, breaks: str, landed: bool
) -> None:
    tool = paying_at(bank, breaks)
    assert isinstance(send(tool), AnswerLost)
    assert look(tool) == (Found(result=DONE, position=1) if landed else Absent())
    assert cents(bank) == (70 if landed else 100)
    assert send(tool) == Acknowledged(result=DONE)
    assert cents(bank) == 70


@pytest.mark.req("S4-01")
def test_a_database_that_is_locked_or_gone_was_never_reached(bank: Path) -> None:
    tool = paying_at(bank)
    tool._connect = connecting(bank, timeout=0.0)
    writer = sqlite3.connect(bank, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    assert isinstance(send(tool), NotSent)
    assert isinstance(close(tool), NoAnswer)
    writer.execute("ROLLBACK")
    writer.close()
    tool._connect = connecting(bank / "no" / "such.db")
    assert isinstance(send(tool), NotSent)
    assert isinstance(look(tool), NoAnswer)
    assert cents(bank) == 100


def test_without_its_table_of_keys_nothing_is_done(bank: Path) -> None:
    tool = paying_at(bank)
    with sqlite3.connect(bank) as sql:
        sql.execute("DROP TABLE landed_operation")
    sql.close()
    assert isinstance(send(tool), NotSent)
    assert isinstance(look(tool), NoAnswer)
    assert (cents(bank), rows(bank)) == (100, [])


# Closing.


def test_a_closed_key_is_refused_for_ever(bank: Path) -> None:
    tool = paying_at(bank)
    assert (close(tool), close(tool), look(tool)) == (Absent(), Absent(), Absent())
    assert isinstance(send(tool), Refused)
    assert cents(bank) == 100


def test_a_close_waits_for_a_payment_that_is_under_way(bank: Path) -> None:
    committing, go_on = threading.Event(), threading.Event()

    class Slow(Wire):
        def commit(self) -> None:
            committing.set()
            assert go_on.wait(WAIT_MAX_S)
            self._sql.commit()

    tool, other = paying_at(bank), paying_at(bank)

    def connect() -> Any:
        return Slow(sqlite3.connect(bank), [])

    tool._connect = connect
    came: dict[str, Any] = {}
    payer = threading.Thread(target=lambda: came.update(sent=send(tool)))
    closer = threading.Thread(target=lambda: came.update(closed=close(other)))
    payer.start()
    assert committing.wait(WAIT_MAX_S)
    closer.start()
    closer.join(0.1)
    assert closer.is_alive()
    go_on.set()
    payer.join(WAIT_MAX_S)
    closer.join(WAIT_MAX_S)
    assert came == {"sent": Acknowledged(result=DONE), "closed": Found(result=DONE, position=1)}


def test_keys_are_forgotten_when_it_is_told_to(bank: Path) -> None:
    tool = paying_at(bank)
    send(tool)
    tool.forget(before=1.0)
    assert isinstance(look(tool), Found)
    tool.forget(before=9e9)
    assert look(tool) == Absent()


# Its promises.


def test_it_keeps_its_promises(bank: Path) -> None:
    async def holds() -> Json:
        return [list(row) for row in rows(bank)]

    found = run(
        check_tool(
            paying_at(bank),
            {"name": "ana", "cents": 1},
            changed={"name": "ana", "cents": 2},
            refused={"name": "ana", "cents": 1_000},
            holds=holds,
        )
    )
    assert found.ok, found
    assert found.of(Verdict.SKIPPED) == frozenset()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"statements": "DELETE FROM payment WHERE n = :number"}, ":number is no argument"),
        ({"statements": ()}, "give the statement"),
        ({"statements": ""}, "give the statement"),
        ({"outcome": "SELECT :what"}, ":what is no argument"),
        ({"table": "keys; DROP TABLE account"}, "no plain SQL name"),
        ({"rows": [1]}, "one number for each"),
        ({"effect": "none"}, "promises no effect"),
    ],
)
def test_what_does_not_fit_is_refused_at_once(bank: Path, given: Any, says: str) -> None:
    with pytest.raises(ContractError, match=says):
        paying(connecting(bank), **given)


@pytest.mark.req("S4-04")
@pytest.mark.parametrize("wanted", [{**ANA, KEY: "mine"}, {**ANA, "name": ["ana"]}])
def test_a_key_and_a_list_are_no_arguments(bank: Path, wanted: Any) -> None:
    tool = paying(connecting(bank), arguments={"name": Any, "cents": int})
    with pytest.raises(ProposalError):
        tool.check(wanted)


def test_arguments_never_become_part_of_a_statement(bank: Path) -> None:
    tool = paying_at(bank)
    wanted = {**ANA, "name": "ana'; DROP TABLE account; --"}
    assert send(tool, wanted) == Refused(reason="0 rows would change, not 1")
    assert (cents(bank), rows(bank)) == (100, [])


# An outbox that is there already.


OUTCOME = "SELECT done FROM outbox WHERE id = :landed_key"
LETTER: dict[str, Json] = {"to": "ana", "text": "hello"}


def mailing(bank: Path, *breaks: str) -> SqlTool:
    tool = outbox(
        name="mail",
        connect=connecting(bank),
        arguments={"to": str, "text": str},
        columns={"to": "recipient"},
        outcome=OUTCOME,
        settlement_lag_s=60.0,
    )
    tool.set_up()
    tool._connect = connecting(bank, *breaks)
    return tool


@pytest.mark.req("S4-13")
def test_a_row_of_an_outbox_and_its_key_are_one_transaction(bank: Path) -> None:
    tool = mailing(bank, "after")
    assert isinstance(send(tool, LETTER), AnswerLost)
    assert look(tool, LETTER) == Found(result=DONE, position=1)
    assert send(tool, LETTER) == Acknowledged(result=DONE, position=1)
    assert rows(bank, "SELECT * FROM outbox") == [("op-1", "ana", "hello", None)]


@pytest.mark.req("S4-13")
@pytest.mark.parametrize(
    ("done", "expected"),
    [(None, NotYet), (1, Found(result=DONE, position=1)), (0, Absent(position=1))],
)
def test_what_became_of_a_row_is_for_the_outbox_to_say(
    bank: Path, done: int | None, expected: Any
) -> None:
    tool = mailing(bank)
    send(tool, LETTER)
    emptied(bank, done)
    seen = run(tool.read_back(call(tool, LETTER), DONE))
    assert seen == expected or isinstance(seen, NotYet) is (done is None)


def emptied(bank: Path, done: int | None) -> None:
    """As the outbox's own executor does it, which knows nothing of this."""
    with sqlite3.connect(bank) as sql:
        sql.execute("UPDATE outbox SET done = ?", (done,))
    sql.close()


@pytest.mark.parametrize("given", [{"into": "outbox; --"}, {"key": "i d"}, {"columns": {"to": ""}}])
def test_a_name_that_is_no_plain_name_is_refused(bank: Path, given: Any) -> None:
    with pytest.raises(ContractError, match="no plain SQL name"):
        outbox(name="mail", connect=connecting(bank), arguments={"to": str}, **given)


# Through the runtime.


@pytest.fixture
def rig() -> Any:
    with World() as world:
        yield Rig(world)


async def pay(rt: Runtime) -> Any:
    ask = Ask(input="in-1", call_id="1")
    return await rt.perform("pay", ANA, ask=ask, patience_s=3_600.0)


@pytest.mark.req("S4-40", "S4-30")
@pytest.mark.parametrize(
    ("breaks", "events"),
    [
        ("after", ["made", "sent", "answer_lost", "found"]),
        ("before", ["made", "sent", "answer_lost", "looked", "resent", "acknowledged"]),
    ],
)
def test_a_connection_that_is_lost_is_found_out_and_paid_once(
    rig: Rig, bank: Path, breaks: str, events: list[str]
) -> None:
    value = rig.run(pay, paying_at(bank, breaks))
    assert isinstance(value, Confirmed)
    assert rig.events("op-a1") == events
    assert (cents(bank), len(rows(bank))) == (70, 1)


def test_what_the_database_refuses_is_failed(rig: Rig, bank: Path) -> None:
    async def too_much(rt: Runtime) -> Any:
        return await rt.perform("pay", {"name": "ana", "cents": 101})

    value = rig.run(too_much, paying_at(bank))
    assert isinstance(value, Failed)
    assert "CHECK constraint" in value.reason


BOUNDARIES = [
    *(Point(side=side, name=name) for side in ("before", "after") for name in ("made", "sent")),
    *(Point(side=side, name="send") for side in ("before", "after")),
    *(Point(side=side, name="acknowledged") for side in ("before", "after")),
]


@pytest.mark.req("S4-30", "S4-40")
@pytest.mark.parametrize("point", BOUNDARIES, ids=str)
def test_store_and_database_are_two_and_the_gap_between_them_is_accounted_for(
    rig: Rig, bank: Path, point: Point
) -> None:
    """Killed at each boundary between our record and their row; then the same call comes again."""
    points = Points(die=lambda at: current_process().crash(at), kill=point)
    rig.kill_at = point
    first = rig.start(pay, FaultyTool(paying_at(bank), points))
    rig.world.wait(first)
    assert first.ended().crashed_at == str(point)
    rig.kill(first)
    rig.kill_at = None
    assert isinstance(rig.run(pay, paying_at(bank)), Confirmed)
    assert (cents(bank), len(rows(bank))) == (70, 1)
    assert rig.states() == [State.CONFIRMED]


@pytest.mark.req("S4-13")
@pytest.mark.parametrize(("done", "end"), [(1, Confirmed), (0, Failed), (None, Undecided)])
def test_an_outbox_that_is_there_already_is_the_executor(
    rig: Rig, bank: Path, done: int | None, end: type
) -> None:
    async def asked(rt: Runtime) -> Any:
        ask = Ask(input="in-1", call_id="1")
        assert isinstance(await rt.perform("mail", LETTER, ask=ask), Accepted)
        emptied(bank, done)
        return await rt.perform("mail", LETTER, ask=ask, patience_s=9_000.0)

    value = rig.run(asked, mailing(bank))
    assert isinstance(value, end), value
    assert len(rows(bank, "SELECT * FROM outbox")) == 1
