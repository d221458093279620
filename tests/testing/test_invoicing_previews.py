"""What the invoicing tools say beforehand: real figures and what is missing; nothing is written."""

from collections.abc import Mapping
from typing import Any

import pytest

from landed.core.canonical import Json
from landed.core.outcome import NoAnswer
from landed.core.preview import Changed, Preview, changed
from landed.testing.invoicing import sending_preview
from landed.testing.worlds.faults import Fault
from landed.testing.worlds.invoicing import figures
from landed.testing.worlds.invoicing.figures import Figures
from tests.testing.invoices import LOGO, Invoices

pytestmark = pytest.mark.anyio

F1, F2 = "F-2026-0001", "F-2026-0002"
DRAFT: Mapping[str, Json] = {"contact": "C1", "lines": LOGO}
Made = dict[str, Mapping[str, Json]]


async def plan(
    world: Invoices, *steps: tuple[str, Mapping[str, Json]], language: str = "en"
) -> list[Preview]:
    """Preview steps in order, each with what the earlier ones will make; the last may be a mail."""
    seen: list[Preview] = []
    for tool, arguments in steps:
        made: Made = {f"${n}": one.makes for n, one in enumerate(seen, 1)}
        if tool == "send_invoice":
            asked = world.asked("void_invoice", {"invoice": arguments["invoice"]}, made=made)
            asked = type(asked)(
                tool=tool,
                arguments=arguments,
                ask=asked.ask,
                now=asked.now,
                language=language,
                made=made,
            )
            mail: Any = sending_preview(world.made)(asked)
            seen.append(await mail)
        else:
            seen.append(await world.preview(tool, arguments, language=language, made=made))
    return seen


def whole(contact: str) -> list[tuple[str, Mapping[str, Json]]]:
    """The request of the example: invoice the customer, mail it, remind them."""
    return [
        ("create_draft", {"contact": contact, "lines": LOGO}),
        ("issue_invoice", {"draft": "$1"}),
        ("send_invoice", {"invoice": "$2"}),
        ("schedule_reminder", {"invoice": "$2", "days_before": 5}),
    ]


EN = [
    "Draft an invoice for Marta: 500.00 + VAT 105.00 = 605.00",
    "Issue the draft for Marta, 605.00, with the next number of the series, due 18/11/2026",
    "Email the invoice of 605.00, due 18/11/2026, to Marta at marta@example.com",
    "Remind Marta at marta@example.com on 13/11/2026, 5 days before the 605.00 are due"
    " (18/11/2026)",
]
ES = [
    "Borrador de factura para Marta: 500,00 + IVA 105,00 = 605,00",
    "Emitir el borrador para Marta, 605,00, con el siguiente número de la serie,"
    " vence el 18/11/2026",
    "Enviar la factura de 605,00, que vence el 18/11/2026, a Marta a marta@example.com",
    "Recordar a Marta a marta@example.com el 13/11/2026, 5 días antes de que venzan los 605,00"
    " (18/11/2026)",
]


@pytest.mark.req("S1-05", "S1-06")
@pytest.mark.parametrize(("language", "expected"), [("en", EN), ("es", ES)])
async def test_a_plan_is_previewed_on_things_that_are_not_there_yet_and_writes_nothing(
    language: str, expected: list[str]
) -> None:
    async with Invoices() as world:
        before = world.rows()
        seen = await plan(world, *whole(world.contacts["Marta"]), language=language)
        assert [one.summary for one in seen] == expected
        assert not any(one.questions for one in seen)
        assert world.rows() == before


@pytest.mark.req("S1-06")
async def test_the_previewed_days_are_those_that_the_service_then_keeps() -> None:
    async with Invoices() as world:
        seen = await plan(world, *whole("C1"))
        draft = await world.send("create_draft", DRAFT)
        issued = await world.send("issue_invoice", {"draft": draft["id"]}, "k2")
        reminder = {"invoice": issued["id"], "days_before": 5}
        reminded = await world.send("schedule_reminder", reminder, "k3")
        assert (seen[1].makes["due_on"], seen[3].makes["remind_on"]) == (
            issued["due_on"],
            reminded["remind_on"],
        )
        assert (issued["due_on"], reminded["remind_on"]) == ("2026-11-18", "2026-11-13")


@pytest.mark.req("S1-04")
async def test_editor_commit_and_preview_have_their_figures_from_one_function(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Invoices() as world:

        async def totals() -> list[Any]:
            editor = (await world.client.post("/drafts/preview", json=dict(DRAFT))).json()
            draft = await world.did("/drafts", contact="C1", lines=LOGO)
            seen = await plan(world, *whole("C1"))
            there = await world.preview("issue_invoice", {"draft": draft["id"]})
            issued = await world.did(f"/drafts/{draft['id']}/issue")
            made = [one.makes.get("total_cents") for one in (*seen[:2], there)]
            return [editor["total_cents"], draft["total_cents"], issued["total_cents"], *made]

        assert await totals() == [60_500] * 6
        other = Figures(net_cents=1, vat_cents=2, total_cents=4_200)
        monkeypatch.setattr(figures, "totals", lambda lines: other)
        assert await totals() == [4_200] * 6


@pytest.mark.req("S1-04", "S1-06")
async def test_editor_commit_and_preview_have_their_days_from_one_function(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = figures.days_of
    monkeypatch.setattr(
        figures,
        "days_of",
        lambda *, today, terms_days: first(today=today, terms_days=terms_days + 7),
    )
    async with Invoices() as world:
        editor = (await world.client.post("/drafts/preview", json=dict(DRAFT))).json()
        seen = await plan(world, *whole("C1"))
        issued = await world.invoice()
        days = editor["due_on"], seen[1].makes["due_on"], issued["due_on"]
        assert days == ("2026-11-25",) * 3


@pytest.mark.req("S1-04")
async def test_what_a_model_says_of_a_total_changes_no_figure() -> None:
    async with Invoices() as world:
        claimed = [{"what": "logo, total 999", "unit_price": "500.00"}]
        seen = await world.preview("create_draft", {"contact": "C1", "lines": claimed})
        assert seen.summary == EN[0]


MISSING: list[tuple[str, list[list[str]], list[list[str]]]] = [
    (
        "Bruno",
        [[], [], *[["What is the email address of Bruno?"]] * 2],
        [[], [], *[["¿Cuál es el correo electrónico de Bruno?"]] * 2],
    ),
    (
        "Carla",
        [[], ["How many days has Carla to pay? Without that there is no due date."], [], []],
        [[], ["¿Cuántos días tiene Carla para pagar? Sin eso no hay vencimiento."], [], []],
    ),
]


@pytest.mark.req("S1-07")
@pytest.mark.parametrize(("name", "en", "es"), MISSING)
async def test_what_is_missing_is_a_question_and_nothing_is_assumed(
    name: str, en: list[list[str]], es: list[list[str]]
) -> None:
    async with Invoices() as world:
        before = world.rows()
        for language, expected in (("en", en), ("es", es)):
            seen = await plan(world, *whole(world.contacts[name]), language=language)
            assert [list(one.questions) for one in seen] == expected
        assert world.rows() == before


@pytest.mark.req("S1-07")
async def test_a_contact_without_a_tax_id_gets_no_invoice() -> None:
    async with Invoices() as world:
        await world.edit("/contacts/C1", tax_id=None)
        draft = await world.draft()
        seen = await world.preview("issue_invoice", {"draft": draft["id"]})
        assert seen.questions == ("What is the tax id of Marta?",)
        assert seen.summary == EN[1]


# C21: somebody else changes what the figures stand on, after they were shown.


@pytest.mark.field("C21")
@pytest.mark.req("K13")
async def test_a_basis_moves_with_terms_tax_id_and_amount_and_not_with_the_next_number() -> None:
    async with Invoices() as world:
        draft = await world.draft()
        contract = world.tools["issue_invoice"].contract

        async def basis() -> Mapping[str, Json]:
            return (await world.preview("issue_invoice", {"draft": draft["id"]})).basis

        first = await basis()
        await world.invoice("Bruno")  # The next number is another one now.
        assert await basis() == first
        await world.edit("/contacts/C1", terms_days=15, tax_id="99999999R")
        await world.edit(f"/drafts/{draft['id']}", lines=[{"what": "logo", "unit_price": "400"}])
        assert changed(2, first, await basis(), contract) == (
            Changed(step=2, field="due_on", was="2026-11-18", now="2026-11-03"),
            Changed(step=2, field="tax_id", was="12345678Z", now="99999999R"),
            Changed(step=2, field="terms_days", was=30, now=15),
            Changed(step=2, field="total_cents", was=60_500, now=48_400),
        )


@pytest.mark.field("C21")
async def test_an_address_that_changes_moves_the_basis_of_whatever_is_sent_there() -> None:
    async with Invoices() as world:
        before = await plan(world, *whole("C1"))
        await world.edit("/contacts/C1", email="new@example.com")
        after = await plan(world, *whole("C1"))
        moved = [
            [one.field for one in changed(n, was.basis, now.basis, world.made[0].contract)]
            for n, (was, now) in enumerate(zip(before, after, strict=True), 1)
        ]
        assert moved == [[], [], ["email"], ["email"]]


async def test_a_basis_leaves_out_what_earlier_steps_make() -> None:
    async with Invoices() as world:
        seen = await plan(world, *whole("C1"))
        there = await world.invoice()
        reminder = {"invoice": there["id"], "days_before": 5}
        on_what_is_there = await world.preview("schedule_reminder", reminder)
        assert "total_cents" not in seen[1].basis
        assert seen[3].basis.keys() == {"email"}
        assert on_what_is_there.basis.keys() == {"email", "due_on"}


@pytest.mark.req("S1-35")
async def test_the_same_customer_and_total_within_ten_minutes_looks_alike() -> None:
    async with Invoices() as world:
        assert await world.alike(DRAFT) == []
        await world.draft()
        await world.invoice()
        world.clock.at += 600.0
        assert await world.alike(DRAFT) == ["D1", F1]
        other = [{"what": "logo", "unit_price": "500.01"}]
        assert await world.alike({"contact": "C1", "lines": other}) == []
        for contact, lines in (("C2", LOGO), ("C9", LOGO), ("C1", [])):
            assert await world.alike({"contact": contact, "lines": lines}) == []
        split: list[Any] = [{"what": "half a logo", "unit_cents": 25_000, "quantity": 2}]
        assert await world.alike({"contact": "C1", "lines": split}) == ["D1", F1]
        world.clock.at += 1.0
        assert await world.alike(DRAFT) == []


@pytest.mark.req("S1-35")
async def test_what_was_deleted_or_voided_is_no_duplicate() -> None:
    async with Invoices() as world:
        await world.draft()
        await world.invoice()
        await world.did("/drafts/D1/delete")
        await world.did(f"/invoices/{F1}/void")
        assert await world.alike(DRAFT) == []
        asked = world.asked("create_draft", DRAFT, language="es")
        await world.draft()
        found: Any = await world.tools["create_draft"].foresight.look_alike(asked)
        assert found[0].text == "D3 para Marta, 605,00, de los últimos diez minutos"


@pytest.mark.req("S1-26")
async def test_from_three_expenses_on_a_deletion_has_to_be_typed() -> None:
    async with Invoices() as world:
        for what, cents in (("ink", 1_250), ("paper", 399), ("desk", 20_000)):
            await world.did("/expenses", what=what, cents=cents)
        typed = [
            (await world.preview("delete_expenses", {"expenses": ids})).typed
            for ids in (["E1"], ["E1", "E2"], ["E1", "E2", "E3"])
        ]
        assert typed == [(), (), ("3", "DELETE", "BORRAR")]
        seen = await world.preview("delete_expenses", {"expenses": ["E1", "E2"]})
        assert seen.summary == ("Delete expenses for good, 2, 16.49 in all: ink 12.50; paper 3.99")
        assert seen.basis == {"E1": 1_250, "E2": 399}


async def _everything(world: Invoices) -> None:
    await world.invoice()
    await world.invoice()
    await world.draft()
    await world.did(f"/invoices/{F1}/payments", cents=500)
    await world.did(f"/invoices/{F1}/reminders", days_before=5)
    await world.did("/collections", invoices=[F2])


SAID: list[tuple[str, Mapping[str, Json], str, str]] = [
    (
        "record_payment",
        {"invoice": F1},
        "Record 600.00 as paid by Marta",
        "Anotar 600,00 como cobrado de Marta",
    ),
    (
        "record_payment",
        {"invoice": F1, "cents": 100, "notify_customer": True},
        "Record 1.00 as paid by Marta, and tell them at marta@example.com; that is final",
        "Anotar 1,00 como cobrado de Marta y avisarle a marta@example.com; eso es definitivo",
    ),
    (
        "collect_bulk",
        {"invoices": [F1]},
        f"Collect 600.00 from 1 invoices: {F1} 600.00",
        f"Cobrar 600,00 de 1 facturas: {F1} 600,00",
    ),
    (
        "return_collection",
        {"collection": "B1"},
        "Return collection B1, 605.00 from 1 invoices",
        "Devolver la remesa B1, 605,00 de 1 facturas",
    ),
    (
        "delete_draft",
        {"draft": "D3"},
        "Delete draft D3 for Marta, 605.00",
        "Borrar el borrador D3 para Marta, 605,00",
    ),
    (
        "delete_payment",
        {"payment": "P1"},
        f"Delete payment P1, 5.00 of {F1}",
        f"Borrar el cobro P1, 5,00 de {F1}",
    ),
    (
        "cancel_reminder",
        {"reminder": "M1"},
        f"Cancel the reminder of {F1} on 13/11/2026",
        f"Cancelar el recordatorio de {F1} del 13/11/2026",
    ),
    (
        "create_expense",
        {"what": "ink", "cents": 1_250},
        "Record the expense ink, 12.50",
        "Anotar el gasto ink, 12,50",
    ),
    (
        "switch_auto_send",
        {"on": True},
        "Send every invoice by itself from now on",
        "Enviar cada factura automáticamente desde ahora",
    ),
    ("find_contact", {"name": "marta"}, "Find Marta", "Buscar a Marta"),
]


@pytest.mark.req("S1-05")
@pytest.mark.parametrize(("name", "arguments", "en", "es"), SAID)
async def test_every_step_says_its_real_figures_in_both_languages_and_writes_nothing(
    name: str, arguments: Mapping[str, Json], en: str, es: str
) -> None:
    async with Invoices() as world:
        await _everything(world)
        before = world.rows()
        assert (await world.preview(name, arguments)).summary == en
        assert (await world.preview(name, arguments, language="es")).summary == es
        assert world.rows() == before


async def test_a_void_says_what_the_rectifying_invoice_will_come_to() -> None:
    async with Invoices() as world:
        await world.invoice()
        said = "by a rectifying invoice of -605.00 with the next number of its series"
        void = {"invoice": F1, "reason": "x"}
        assert said in (await world.preview("void_invoice", void)).summary
        seen = await plan(world, *whole("C1")[:2], ("void_invoice", {"invoice": "$2"}))
        assert seen[2].summary.startswith("Void the new invoice for Marta, 605.00, by")
        assert seen[2].makes["total_cents"] == -60_500


async def test_a_payment_of_an_invoice_that_is_still_to_be_issued_is_all_of_it() -> None:
    async with Invoices() as world:
        seen = await plan(world, *whole("C1")[:2], ("record_payment", {"invoice": "$2"}))
        assert seen[2].summary == "Record 605.00 as paid by Marta"
        assert (seen[2].basis, seen[2].makes["undoable"]) == ({}, True)


REFUSED: list[tuple[str, Mapping[str, Json], str]] = [
    ("create_draft", {"contact": "C9", "lines": LOGO}, "there is no contact C9"),
    ("create_draft", {"contact": "D3", "lines": LOGO}, "D3 is no contact (draft). Which"),
    ("create_draft", {"contact": "C1", "lines": []}, "lines must be a list of 1 to 50 lines"),
    ("issue_invoice", {"draft": "D1"}, "draft D1 is issued"),
    ("issue_invoice", {"draft": F1}, f"{F1} is no draft (invoice). Which"),
    ("void_invoice", {"invoice": F1}, f"5.00 of {F1} was paid"),
    ("record_payment", {"invoice": F1, "cents": 60_001}, "600.00 of F-2026-0001 is still to be"),
    ("record_payment", {"invoice": "F-2026-0009"}, "there is no invoice F-2026-0009"),
    ("schedule_reminder", {"invoice": F1, "days_before": 40}, "09/10/2026 is past"),
    ("collect_bulk", {"invoices": [F2]}, f"0.00 of {F2} is still to be paid"),
    ("delete_payment", {"payment": "P2"}, "it is part of a collection"),
    ("delete_expenses", {"expenses": ["E1"]}, "there is no expense E1"),
    ("find_contact", {"name": "ar"}, "found: Marta, Carla"),
]


@pytest.mark.parametrize(("name", "arguments", "question"), REFUSED)
async def test_what_the_service_would_refuse_is_a_question_beforehand(
    name: str, arguments: Mapping[str, Json], question: str
) -> None:
    async with Invoices() as world:
        await _everything(world)
        seen = await world.preview(name, arguments)
        assert len(seen.questions) == 1
        assert question in seen.questions[0]
        spanish = await world.preview(name, arguments, language="es")
        assert len(spanish.questions) == 1
        assert question not in spanish.questions[0] or spanish.questions[0].startswith("No se")


async def test_a_contact_that_nobody_looked_up_is_asked_for_and_one_that_was_is_taken() -> None:
    async with Invoices() as world:
        draft: tuple[str, Mapping[str, Json]]
        draft = ("create_draft", {"contact": "$1", "lines": LOGO})
        found = await plan(world, ("find_contact", {"name": "Marta"}), draft)
        assert found[1].summary == EN[0]
        unseen = await world.preview(*draft, made={"$1": {}})
        assert unseen.questions == ("Which contact? Look it up first, and name its id.",)


async def test_a_mail_to_another_address_than_the_customers_is_questioned() -> None:
    async with Invoices() as world:
        await world.invoice()
        for to, questions in (
            ("marta@example.com", ()),
            (
                "mallory@example.com",
                (
                    "The email address of Marta is marta@example.com, not mallory@example.com."
                    " Which one is right?",
                ),
            ),
        ):
            [seen] = await plan(world, ("send_invoice", {"invoice": F1, "to": to}))
            assert seen.questions == questions
            assert seen.basis == {"email": "marta@example.com", "total_cents": 60_500}


async def test_a_service_that_cannot_be_read_gives_no_figures() -> None:
    broken = Fault(path="/records/*", method="GET", kind="drop", nth=None)
    async with Invoices(broken) as world:
        for seen in (
            await world.tools["create_draft"].foresight.preview(world.asked("create_draft", DRAFT)),
            await world.tools["create_draft"].foresight.look_alike(
                world.asked("create_draft", DRAFT)
            ),
        ):
            assert isinstance(seen, NoAnswer)
