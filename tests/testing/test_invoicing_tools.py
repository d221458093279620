"""The invoicing tools promise what the service keeps, and need a yes for what must have one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from landed.core.canonical import Json
from landed.core.contract import Contract, Effect, Interrupt, filled
from landed.core.errors import ProposalError
from landed.core.outcome import Absent, Acknowledged, Found, Refused
from landed.core.value import Confirmed, Failed, Value
from landed.runtime.parts import assemble, register
from landed.stores.sqlite import open_sqlite
from landed.testing import sim
from landed.testing.check_tool import Verdict, check_tool
from landed.testing.invoicing import fill, invoicing_tools
from landed.testing.worlds import invoicing, serve
from landed.testing.worlds.faults import Fault
from landed.testing.worlds.invoicing import Invoicing
from landed.testing.worlds.transport import WorldTransport
from tests.testing.far_sides import WAIT_MAX_S
from tests.testing.invoices import LOGO, URL, Invoices

F1, F2 = "F-2026-0001", "F-2026-0002"
DRAFT: Mapping[str, Json] = {"contact": "C1", "lines": LOGO}

# What needs a person's yes, and what does not.
RISKS: list[tuple[str, Mapping[str, Json], str]] = [
    ("create_draft", DRAFT, "safe"),
    ("delete_draft", {"draft": "D1"}, "safe"),
    ("issue_invoice", {"draft": "D1"}, "confirm"),
    ("void_invoice", {"invoice": F1}, "confirm"),
    ("record_payment", {"invoice": F1}, "safe"),
    ("record_payment", {"invoice": F1, "notify_customer": True}, "confirm"),
    ("delete_payment", {"payment": "P1"}, "safe"),
    ("collect_bulk", {"invoices": [F1, F2]}, "confirm"),
    ("return_collection", {"collection": "B1"}, "confirm"),
    ("schedule_reminder", {"invoice": F1, "days_before": 5}, "confirm"),
    ("cancel_reminder", {"reminder": "M1"}, "safe"),
    ("create_expense", {"what": "ink", "cents": 100}, "safe"),
    ("delete_expenses", {"expenses": ["E1"]}, "safe"),
    ("delete_expenses", {"expenses": ["E1", "E2"]}, "confirm"),
    ("switch_auto_send", {"on": True}, "confirm"),
    ("switch_auto_send", {"on": False}, "safe"),
]


@pytest.mark.req("S1-09", "S1-10")
@pytest.mark.parametrize(("name", "arguments", "risk"), RISKS)
def test_a_call_needs_a_yes_exactly_where_the_catalogue_says(
    name: str, arguments: Mapping[str, Json], risk: str
) -> None:
    tools = {tool.name: tool for tool in invoicing_tools(URL)}
    assert tools[name].foresight.risk(tools[name].check(arguments), "user") == risk


def effects() -> dict[str, Contract]:
    tools = invoicing_tools(URL)
    return {each.name: each.contract for each in tools if each.contract.effect is not Effect.NONE}


def test_every_tool_with_an_effect_is_in_the_catalogue_of_risks() -> None:
    assert effects().keys() == {name for name, _, _ in RISKS}


@pytest.mark.req("S1-53", "S1-63")
def test_what_is_final_names_what_corrects_it_and_what_is_not_names_its_undo() -> None:
    for name, contract in effects().items():
        final = contract.effect is Effect.IRREVERSIBLE
        assert bool(contract.correct) == final, name
        assert bool(contract.undo) != final, name
        assert contract.on_interrupt is Interrupt.FINISH, name
        assert contract.permission, name
    assert effects()["issue_invoice"].correct == "void_invoice"


WITHOUT_A_RESULT = ("unknown", "undecided", "failed", "withdrawn", "blocked")


@pytest.mark.parametrize("language", ["en", "es"])
def test_what_is_said_without_a_result_needs_none(language: str) -> None:
    tools = register(invoicing_tools(URL))
    for name, contract in effects().items():
        taken: Any = tools[name].schema["properties"]
        known = {**dict.fromkeys(taken, "x"), "why": "y", "by": "z"}
        for state in WITHOUT_A_RESULT:
            said = contract.says[language][state].format_map(known)
            assert ("y" in said) or ("z" in said) or state == "undecided", name


def test_a_single_promise_can_be_replaced() -> None:
    replaced = {"create_draft": {"deadline_s": 0.5}}
    tools = {tool.name: tool for tool in invoicing_tools(URL, replaced=replaced)}
    assert tools["create_draft"].contract.deadline_s == 0.5
    assert tools["issue_invoice"].contract.deadline_s == 5.0


UNFIT: list[Any] = [
    {"what": "logo", "unit_price": 500.5},
    {"what": "logo", "unit_cents": 500.5},
    {"what": "logo", "unit_price": "500.00", "total": 999},
    {"what": "logo", "unit_price": "500.00", "quantity": 0.5},
]


@pytest.mark.parametrize("line", UNFIT)
def test_a_float_and_a_total_of_the_models_own_are_refused(line: Mapping[str, Json]) -> None:
    create = {tool.name: tool for tool in invoicing_tools(URL)}["create_draft"]
    with pytest.raises(ProposalError, match=r"create_draft: lines\.0"):
        create.check({"contact": "C1", "lines": [line]})


async def prepared(world: Invoices) -> None:
    """Give every tool something that it can do, and something else."""
    for _ in range(2):
        await world.invoice()
        await world.draft()
        await world.did("/expenses", what="ink", cents=1_250)
        await world.did(f"/invoices/{F1}/payments", cents=100)
        await world.did(f"/invoices/{F1}/reminders", days_before=5)
    for name in ("F-2026-0003", "F-2026-0004"):
        await world.invoice()
        await world.did("/collections", invoices=[name])
    await world.invoice()
    await world.invoice()


F5, F6 = "F-2026-0005", "F-2026-0006"
# Per tool: what it is tried with, other arguments, and ones that are refused.
TRIALS: list[tuple[str, Mapping[str, Json], Mapping[str, Json], Mapping[str, Json]]] = [
    ("create_draft", DRAFT, {**DRAFT, "contact": "C2"}, {**DRAFT, "contact": "C9"}),
    ("delete_draft", {"draft": "D2"}, {"draft": "D4"}, {"draft": "D1"}),
    ("issue_invoice", {"draft": "D2"}, {"draft": "D4"}, {"draft": "D1"}),
    ("void_invoice", {"invoice": F5}, {"invoice": F6}, {"invoice": F1}),
    (
        "record_payment",
        {"invoice": F1, "cents": 5},
        {"invoice": F1, "cents": 6},
        {"invoice": F1, "cents": 10**6},
    ),
    ("delete_payment", {"payment": "P1"}, {"payment": "P2"}, {"payment": "P9"}),
    ("collect_bulk", {"invoices": [F5]}, {"invoices": [F6]}, {"invoices": [F5, "F-2026-0003"]}),
    ("return_collection", {"collection": "B1"}, {"collection": "B2"}, {"collection": "B9"}),
    (
        "schedule_reminder",
        {"invoice": F1, "days_before": 5},
        {"invoice": F1, "days_before": 6},
        {"invoice": F1, "days_before": 31},
    ),
    ("cancel_reminder", {"reminder": "M1"}, {"reminder": "M2"}, {"reminder": "M9"}),
    (
        "create_expense",
        {"what": "ink", "cents": 5},
        {"what": "ink", "cents": 6},
        {"what": "ink", "cents": 0},
    ),
    ("delete_expenses", {"expenses": ["E1"]}, {"expenses": ["E2"]}, {"expenses": ["E1", "E9"]}),
    ("switch_auto_send", {"on": True}, {"on": False}, {}),
]


@pytest.mark.anyio
@pytest.mark.parametrize(("name", "arguments", "changed", "refused"), TRIALS)
async def test_the_service_keeps_every_promise_of_the_tools(
    name: str,
    arguments: Mapping[str, Json],
    changed: Mapping[str, Json],
    refused: Mapping[str, Json],
) -> None:
    async with Invoices() as before_late:
        await prepared(before_late)
        # Late requests are refused only now: what a person does by hand says not when it was sent.
        desk = before_late.app.state.desk
        late = Invoicing(refuses_after_s=60.0)
        desk.settings = late

        async def holds() -> Json:
            log = desk.ledger.log(after=0)
            return [one["text"] for one in log if one["kind"] == "committed"]

        tools = invoicing_tools(URL, late, transport=before_late.transport)
        tool = {each.name: each for each in tools}[name]
        findings = await check_tool(
            tool,
            arguments,
            changed=changed,
            refused=refused or None,
            holds=holds,
            clock=before_late.clock.now,
        )
        assert findings.ok, findings
        assert len(findings.of(Verdict.KEPT)) == (10 if refused else 9), findings


RESULT_SHAPE = {"id": str, "summary": str, "effects": list, "primary": dict, "cards": list}


@pytest.mark.anyio
@pytest.mark.req("S1-46")
@pytest.mark.parametrize(("name", "arguments"), [trial[:2] for trial in TRIALS])
async def test_a_result_says_what_was_done_to_what_and_how_it_is_undone_or_corrected(
    name: str, arguments: Mapping[str, Json]
) -> None:
    async with Invoices() as world:
        await prepared(world)
        result = await world.send(name, arguments)
        assert {part: type(result[part]) for part in RESULT_SHAPE} == RESULT_SHAPE
        assert result["primary"] == result["effects"][0]
        assert all(each.keys() == {"type", "id"} for each in result["effects"])
        assert [{"type": c["type"], "id": c["id"]} for c in result["cards"]] == result["effects"]
        contract = world.tools[name].contract
        if contract.makes_type:
            assert result["primary"] == {"type": contract.makes_type, "id": result["id"]}
        for words in contract.says.values():
            told = words["confirmed"].format_map(result)
            assert told != words["confirmed"]
            assert words["held"].format_map({**arguments, **result})
        # Whoever takes it back, or corrects it, takes the arguments that its contract names.
        back = contract.undo or contract.correct
        templates = contract.undo_arguments or contract.correct_arguments
        given = filled(templates, arguments=world.tools[name].check(arguments), result=result)
        assert templates
        undone = await world.send(back, given, key="s1:op-a2")
        assert undone["id"]


@pytest.mark.anyio
@pytest.mark.req("S1-47")
@pytest.mark.parametrize("tells", [False, True])
async def test_a_payment_can_be_undone_unless_the_customer_was_told(tells: bool) -> None:
    async with Invoices() as world:
        await world.invoice()
        contract = world.tools["record_payment"].contract
        result = await world.send("record_payment", {"invoice": F1, "notify_customer": tells})
        assert contract.undo_where == "undoable"
        assert result["undoable"] is not tells
        assert result["told"] == ("marta@example.com" if tells else None)
        undo = world.call("delete_payment", {"payment": result["id"]}, "s1:op-a2")
        outcome = await world.tools["delete_payment"].send(undo)
        assert isinstance(outcome, Refused if tells else Acknowledged)


@pytest.mark.anyio
@pytest.mark.req("S1-63")
async def test_an_issued_invoice_is_corrected_by_a_rectifying_one() -> None:
    async with Invoices() as world:
        await world.draft()
        issued = await world.send("issue_invoice", {"draft": "D1"})
        contract = world.tools["issue_invoice"].contract
        given = filled(contract.correct_arguments, arguments={"draft": "D1"}, result=issued)
        voided = await world.send(contract.correct, given, key="s1:op-a2")
        assert (voided["rectifies"], voided["total_cents"]) == (issued["id"], -60_500)
        numbers = [one["id"] for one in (await world.books())["invoices"]]
        assert numbers == [issued["id"], voided["id"]]


@pytest.mark.anyio
async def test_an_issue_is_looked_up_and_closed_under_its_key() -> None:
    async with Invoices() as world:
        await world.draft()
        tool, call = world.tools["issue_invoice"], world.call("issue_invoice", {"draft": "D1"})
        assert isinstance(await tool.lookup(call), Absent)
        sent = await tool.send(call)
        assert isinstance(sent, Acknowledged)
        for asked in (await tool.lookup(call), await tool.close(call)):
            assert isinstance(asked, Found)
            assert asked.result == sent.result
        assert isinstance(await tool.send(call), Refused)


ENDS: list[tuple[tuple[Fault, ...], str, str, type, str, int]] = [
    ((), "C1", "en", Confirmed, "Drafted D1 for Marta, 605.00.", 1),
    ((), "C1", "es", Confirmed, "Borrador D1 para Marta, 605,00.", 1),
    (
        (Fault(path="/drafts", kind="lose_reply"),),
        *("C1", "en", Confirmed, "Drafted D1 for Marta, 605.00.", 1),
    ),
    (
        (Fault(path="/drafts", kind="error_after"),),
        *("C1", "es", Confirmed, "Borrador D1 para Marta, 605,00.", 1),
    ),
    (
        (),
        "C9",
        "en",
        Failed,
        "Nothing was drafted: the service refused: 422 there is no contact C9.",
        0,
    ),
    (
        (),
        "C9",
        "es",
        Failed,
        "No se hizo el borrador: the service refused: 422 there is no contact C9.",
        0,
    ),
]


@pytest.mark.parametrize(("faults", "contact", "language", "end", "said", "drafts"), ENDS)
def test_the_runtime_drafts_one_time_and_says_so(
    faults: tuple[Fault, ...], contact: str, language: str, end: type, said: str, drafts: int
) -> None:
    with sim.World() as world:
        app = invoicing.app(":memory:", world.clock, faults)
        transport = WorldTransport(app, world.spawn)

        async def agent() -> tuple[Value, str]:
            await fill(URL, transport=transport)
            clock, store = sim.current_process().clock, open_sqlite(":memory:")
            tools = register(invoicing_tools(URL, transport=transport))
            async with assemble(store, tools=tools, clock=clock, ids=world.ids, worker="w1") as rt:
                value = await rt.perform("create_draft", {"contact": contact, "lines": LOGO})
                report = await rt.report(value.operation, language=language)
                return value, report.text

        ended = world.run(agent).result
        world.settle()
        assert ended is not None
        value, text = ended
        assert isinstance(value, end)
        assert text == said
        assert len(app.state.desk.books.every("draft")) == drafts
        app.state.desk.ledger.sql.close()


@pytest.mark.anyio
async def test_the_tools_reach_a_service_that_is_a_process_of_its_own(tmp_path: Path) -> None:
    path, settings = str(tmp_path / "invoicing.db"), Invoicing(today="2026-10-19")
    async with Invoices() as local:
        with serve.start("invoicing", db=path, settings=settings) as far:
            assert await fill(far.url) == await fill(far.url) == local.contacts
            local.made = invoicing_tools(far.url, settings)
            local.tools = {tool.name: tool for tool in local.made}
            try:
                seen = await local.preview("create_draft", DRAFT)
                assert seen.summary.endswith("500.00 + VAT 105.00 = 605.00")
                draft = await local.send("create_draft", DRAFT)
                assert await local.alike(DRAFT) == ["D1"]
                issued = await local.send("issue_invoice", {"draft": draft["id"]}, "s1:op-a2")
                assert (issued["id"], issued["due"]) == (F1, "18/11/2026")
            finally:
                for tool in local.made:
                    await tool.aclose()
            far.stop(WAIT_MAX_S)
