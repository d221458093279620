"""The invoicing service keeps its promises about figures, numbers, keys and refusals."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from landed.testing.worlds import serve
from landed.testing.worlds.far_side import KeyedLedger
from landed.testing.worlds.faults import Fault
from landed.testing.worlds.invoicing import Invoicing
from tests.testing.far_sides import WAIT_MAX_S, code
from tests.testing.invoices import LOGO, TODAY, Invoices

pytestmark = pytest.mark.anyio

F1, F2, R1 = "F-2026-0001", "F-2026-0002", "R-2026-0001"


@pytest.fixture
async def world() -> AsyncIterator[Invoices]:
    async with Invoices() as world:
        yield world


@pytest.mark.req("S1-06")
async def test_a_draft_is_issued_with_real_figures_and_the_days_of_its_customer(
    world: Invoices,
) -> None:
    draft = await world.draft()
    figures = {"net_cents": 50_000, "vat_cents": 10_500, "total_cents": 60_500, "total": "605.00"}
    assert draft.items() >= {"id": "D1", "state": "open", "customer": "Marta", **figures}.items()
    invoice = await world.did("/drafts/D1/issue")
    days = {"issued_on": "2026-10-19", "due_on": "2026-11-18", "due": "18/11/2026"}
    assert invoice.items() >= {"id": F1, "open_cents": 60_500, **figures, **days}.items()
    reminder = await world.did(f"/invoices/{F1}/reminders", days_before=5)
    assert reminder.items() >= {"id": "M1", "remind_on": "2026-11-13", "day": "13/11/2026"}.items()
    assert (await world.log())[-3:] == [
        "drafted D1 for Marta, 605.00",
        f"issued {F1} to Marta, 605.00, due 18/11/2026",
        f"scheduled M1 for {F1} on 13/11/2026",
    ]
    assert (await world.record("D1"))["state"] == "issued"
    assert code(await world.act("/drafts/D1/issue")) == (422, "draft-issued")


@pytest.mark.req("S1-63")
async def test_an_invoice_is_voided_by_a_rectifying_invoice_and_nothing_is_deleted(
    world: Invoices,
) -> None:
    await world.invoice()
    await world.did(f"/invoices/{F1}/reminders", days_before=5)
    voided = await world.did(f"/invoices/{F1}/void", reason="wrong price")
    assert voided.items() >= {"id": R1, "rectifies": F1, "total_cents": -60_500}.items()
    assert voided["total"] == "-605.00"
    assert [one["id"] for one in voided["effects"]] == [R1, F1]
    old = await world.record(F1)
    assert (old["rectified_by"], old["total_cents"]) == (R1, 60_500)
    assert (await world.record("M1"))["state"] == "cancelled"
    assert code(await world.act(f"/invoices/{F1}/void")) == (422, "invoice-voided")
    assert code(await world.act(f"/invoices/{R1}/void")) == (422, "invoice-rectifying")
    assert code(await world.act(f"/invoices/{F1}/payments")) == (422, "invoice-voided")
    assert (await world.invoice())["id"] == F2


@pytest.mark.parametrize(
    "forbidden",
    [
        "DELETE FROM invoice",
        "UPDATE invoice SET total_cents = 1",
        "UPDATE invoice SET id = 'F-2026-0009'",
        "UPDATE series SET last = last",
        "UPDATE series SET last = 0",
        "DELETE FROM series",
        "INSERT INTO invoice SELECT * FROM invoice",
    ],
)
async def test_the_database_itself_keeps_invoices_and_series(
    forbidden: str, world: Invoices
) -> None:
    await world.invoice()
    held = await world.books()
    with pytest.raises(Exception, match=r"never|only goes on|UNIQUE"):
        world.sql.execute(forbidden)
    assert await world.books() == held
    assert (await world.invoice())["id"] == F2


async def test_an_effect_and_its_key_are_written_together_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch, world: Invoices
) -> None:
    def broken(*_: object) -> None:
        raise OSError("the disk is full")

    await world.draft()
    before = world.rows()
    with monkeypatch.context() as patched:
        patched.setattr(KeyedLedger, "bind", broken)
        assert (await world.act("/drafts/D1/issue", "k1")).status_code == 500
    assert world.rows() == before
    assert (await world.client.get("/keys/k1")).json()["found"] is False
    assert (await world.did("/drafts/D1/issue", "k1"))["id"] == F1


async def test_a_key_again_is_replayed_and_with_other_details_refused(world: Invoices) -> None:
    await world.draft()
    first = await world.act("/drafts/D1/issue", "k1")
    again = await world.act("/drafts/D1/issue", "k1")
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == first.json()
    assert again.headers["idempotent-replayed"] == "true"
    assert code(await world.act("/drafts/D2/issue", "k1")) == (422, "key-mismatch")
    assert code(await world.act("/drafts/D1/delete", "k1")) == (422, "key-mismatch")
    assert len((await world.books())["invoices"]) == 1


async def test_a_lenient_service_replays_whatever_comes_with_a_key() -> None:
    async with Invoices(strict=False) as world:
        first = await world.draft()
        again = await world.act("/drafts", "hand:1", contact="C2", lines=LOGO)
        assert (again.status_code, again.json()["id"]) == (200, first["id"])


async def test_a_closed_key_refuses_the_request_that_comes_late() -> None:
    late = Fault(path="/drafts/*/issue", kind="delay_request", seconds=30.0)
    async with Invoices(late) as world:
        await world.draft()
        waiting = asyncio.ensure_future(world.act("/drafts/D1/issue", "k1"))
        _, arrives = await world.sleeps.get()
        closed = (await world.client.post("/keys/k1/close")).json()
        assert closed["found"] is False
        arrives.set()
        assert code(await waiting) == (422, "key-closed")
        assert (await world.books())["invoices"] == []
        assert (await world.log())[-1] == "refused a late request: key k1 is closed"


async def test_a_service_offers_only_what_its_settings_say() -> None:
    async with Invoices(can_look_up=False, can_close=False, refuses_after_s=60.0) as world:
        assert (await world.client.get("/keys/k1")).status_code == 404
        assert (await world.client.post("/keys/k1/close")).status_code == 404
        assert code(await world.act("/drafts", contact="C1", lines=LOGO)) == (400, "bad-sent-at")
        for sent_at, expected in ((TODAY - 61.0, "too-old"), (TODAY - 60.0, None)):
            headers = {"Idempotency-Key": "k1", "X-Sent-At": repr(sent_at)}
            body = {"contact": "C1", "lines": LOGO}
            answer = await world.client.post("/drafts", json=body, headers=headers)
            assert answer.json().get("code") == expected


async def test_a_key_past_its_retention_is_forgotten() -> None:
    async with Invoices(retention_s=60.0) as world:
        await world.did("/expenses", "k1", what="ink", cents=100)
        world.clock.at += 61.0
        assert (await world.did("/expenses", "k1", what="ink", cents=100))["id"] == "E2"


BAD_LINES: list[object] = [
    *(None, [], "logo", ["logo"], [{}], LOGO * 51),
    *([{"what": what, "unit_cents": 1}] for what in ("", "a\nb", 7, "x" * 201)),
    *([{"what": "x", "unit_price": price}] for price in (500.0, 500, "5e2", "1.00001", "-1", "")),
    *([{"what": "x", "unit_cents": cents}] for cents in (1.5, "100", -1, True, 10**12)),
    *(
        [{"what": "x", "unit_cents": 1, "quantity": of}]
        for of in (0, 0.5, "0.0", "-1", True, "1e3")
    ),
    *([{"what": "x"}], [{"what": "x", "unit_cents": 1, "unit_price": "1"}]),
    *([{"what": "x", "unit_cents": 0}], [{"what": "x", "unit_cents": 10**11, "quantity": 9}]),
]


@pytest.mark.parametrize("lines", BAD_LINES)
async def test_a_draft_with_lines_that_are_not_exact_is_refused(
    lines: object, world: Invoices
) -> None:
    before = world.rows()
    refused = await world.act("/drafts", contact="C1", lines=lines)
    assert code(refused) == (400, "bad-lines")
    assert world.rows() == before | {"log": before["log"] + 1}


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("/drafts", {"contact": "C9", "lines": LOGO}, "no-such-contact"),
    ("/drafts", {"lines": LOGO}, "bad-contact"),
    ("/drafts/D9/issue", {}, "no-such-draft"),
    ("/drafts/D3/issue", {}, "missing"),
    ("/invoices/F-2026-0009/void", {}, "no-such-invoice"),
    (f"/invoices/{F1}/void", {"reason": 7}, "bad-reason"),
    *((f"/invoices/{F1}/payments", {"cents": of}, "bad-cents") for of in (0, 1.5, "1", True, -1)),
    (f"/invoices/{F1}/payments", {"cents": 60_501}, "not-open"),
    (f"/invoices/{F1}/payments", {"notify_customer": "yes"}, "bad-notify-customer"),
    (f"/invoices/{F2}/payments", {"notify_customer": True}, "missing"),
    (f"/invoices/{F2}/reminders", {"days_before": 5}, "missing"),
    (f"/invoices/{F1}/reminders", {"days_before": 31}, "day-past"),
    *((f"/invoices/{F1}/reminders", {"days_before": n}, "bad-days-before") for n in (366, -1, "5")),
    ("/payments/P9/delete", {}, "no-such-payment"),
    ("/reminders/M9/cancel", {}, "no-such-reminder"),
    ("/expenses", {"what": "", "cents": 1}, "bad-what"),
    *(("/expenses/delete", {"expenses": of}, "bad-expenses") for of in ([], "E1", [7], ["E1"] * 2)),
    ("/expenses/delete", {"expenses": ["E1", "E9"]}, "no-such-expense"),
    ("/collections", {"invoices": [F1, "F-2026-0009"]}, "no-such-invoice"),
    ("/collections/B9/return", {}, "no-such-collection"),
    ("/auto-send", {"on": 1}, "bad-on"),
]


@pytest.mark.parametrize(("path", "body", "expected"), REFUSED)
async def test_a_refusal_comes_before_any_effect(
    path: str, body: dict[str, Any], expected: str, world: Invoices
) -> None:
    await world.invoice()
    await world.invoice("Bruno")
    await world.draft("Carla")
    await world.did("/expenses", what="ink", cents=1_250)
    before, held = world.rows(), await world.books()
    assert code(await world.act(path, **body))[1] == expected
    assert world.rows() == before | {"log": before["log"] + 1}
    assert await world.books() == held


async def test_payments_close_an_invoice_and_those_nobody_was_told_of_can_be_deleted(
    world: Invoices,
) -> None:
    await world.invoice()
    part = await world.did(f"/invoices/{F1}/payments", cents=500)
    rest = await world.did(f"/invoices/{F1}/payments", notify_customer=True)
    assert (part["undoable"], part["told"]) == (True, None)
    assert (rest["cents"], rest["undoable"], rest["told"]) == (60_000, False, "marta@example.com")
    assert code(await world.act(f"/invoices/{F1}/payments")) == (422, "not-open")
    assert code(await world.act(f"/invoices/{F1}/void")) == (422, "invoice-paid")
    assert (await world.did("/payments/P1/delete"))["state"] == "deleted"
    assert (await world.record(F1))["open_cents"] == 500
    assert code(await world.act("/payments/P1/delete")) == (422, "payment-deleted")
    assert code(await world.act("/payments/P2/delete")) == (422, "payment-told")


async def test_reminders_are_cancelled_and_expenses_deleted_one_time(world: Invoices) -> None:
    await world.invoice()
    await world.did(f"/invoices/{F1}/reminders", days_before=30)
    assert (await world.did("/reminders/M1/cancel"))["state"] == "cancelled"
    assert code(await world.act("/reminders/M1/cancel")) == (422, "reminder-cancelled")
    for what, cents in (("ink", 1_250), ("paper", 399)):
        await world.did("/expenses", what=what, cents=cents)
    gone = await world.did("/expenses/delete", expenses=["E1", "E2"])
    assert (gone["count"], gone["what"], gone["cents"]) == (2, "ink; paper", 1_649)
    assert gone["summary"] == "deleted 2 expenses, 16.49: ink; paper"
    assert code(await world.act("/expenses/delete", expenses=["E2"])) == (422, "expense-deleted")


async def test_a_collection_pays_what_is_open_and_can_be_returned(world: Invoices) -> None:
    await world.invoice()
    await world.invoice("Bruno")
    await world.did(f"/invoices/{F1}/payments", cents=500)
    made = await world.did("/collections", invoices=[F1, F2])
    assert (made["id"], made["cents"], made["count"]) == ("B1", 120_500, 2)
    assert code(await world.act("/collections", invoices=[F1])) == (422, "not-open")
    assert code(await world.act("/payments/P2/delete")) == (422, "payment-told")
    await world.did("/collections/B1/return")
    opened = [one["open_cents"] for one in (await world.books())["invoices"]]
    assert opened == [60_000, 60_500]
    assert code(await world.act("/collections/B1/return")) == (422, "collection-returned")


async def test_automatic_sending_is_a_switch_that_says_where_it_stood(world: Invoices) -> None:
    assert (await world.client.get("/auto-send")).json() == {"on": False}
    first = await world.did("/auto-send", on=True)
    again = await world.did("/auto-send", on=True)
    assert [(one["before"], one["changed"]) for one in (first, again)] == [
        (False, True),
        (True, False),
    ]
    assert (await world.client.get("/auto-send")).json() == {"on": True}


async def test_contacts_and_drafts_are_edited_by_hand(world: Invoices) -> None:
    await world.draft("Carla")
    await world.edit("/contacts/C3", terms_days=15, email=None)
    carla = await world.record("C3")
    assert (carla["name"], carla["terms_days"], carla["email"]) == ("Carla", 15, None)
    await world.edit("/drafts/D1", lines=[{"what": "logo", "unit_cents": 40_000}])
    assert (await world.did("/drafts/D1/issue"))["total_cents"] == 48_400
    changed = await world.client.patch("/drafts/D1", json={"lines": LOGO})
    assert code(changed) == (422, "draft-issued")
    taken = [
        await world.client.post("/contacts", json={"name": "Marta"}),
        await world.client.patch("/contacts/C2", json={"name": "Marta"}),
    ]
    assert [code(one) for one in taken] == [(422, "name-taken")] * 2
    assert code(await world.client.patch("/contacts/C9", json={}))[1] == "no-such-contact"
    assert code(await world.client.post("/contacts", json={"email": "x@example.com"}))[0] == 400


async def test_the_editor_previews_a_draft_and_writes_nothing(world: Invoices) -> None:
    before = world.rows()
    body = {"contact": "C1", "lines": LOGO}
    said = (await world.client.post("/drafts/preview", json=body)).json()
    assert said.items() >= {"total": "605.00", "due": "18/11/2026", "missing": []}.items()
    said = (await world.client.post("/drafts/preview", json=body | {"contact": "C3"})).json()
    assert (said["missing"], "due_on" in said) == (["terms_days"], False)
    assert world.rows() == before


async def test_a_contact_is_found_by_name_or_the_question_comes_back(world: Invoices) -> None:
    for name, id in (("Marta", "C1"), ("bruno", "C2"), ("arl", "C3")):
        found = (await world.client.get("/contacts/find", params={"name": name})).json()
        assert (found["id"], found["today"]) == (id, "2026-10-19")
    for name, names in (("ar", "Marta, Carla"), ("Zoe", "none")):
        refused = await world.client.get("/contacts/find", params={"name": name})
        assert code(refused) == (422, "which-contact")
        assert refused.json()["detail"].endswith(f"found: {names}")
    for id in ("X1", "", "D1", "F-1"):
        answer = await world.client.get(f"/records/{id}")
        assert answer.status_code == (422 if id else 404)


async def test_a_day_can_be_set_for_a_demo_whatever_the_clock_says() -> None:
    async with Invoices(today="2027-01-01") as world:
        assert (await world.invoice())["due_on"] == "2027-01-31"
        assert (await world.invoice())["id"] == "F-2027-0002"


async def test_series_and_keys_go_on_after_a_restart(tmp_path: Path) -> None:
    path = str(tmp_path / "invoicing.db")
    async with Invoices(path=path) as world:
        await world.draft()
        first = await world.did("/drafts/D1/issue", "k1")
    async with Invoices(path=path) as world:
        assert await world.did("/drafts/D1/issue", "k1") == first
        assert (await world.did("/drafts", "k2", contact="C1", lines=LOGO))["id"] == "D2"
        assert (await world.did("/drafts/D2/issue", "k3"))["id"] == F2


def _post(url: str, path: str, key: str, **body: Any) -> httpx2.Response:
    headers = {"Idempotency-Key": key}
    return httpx2.post(f"{url}{path}", json=body, headers=headers, timeout=WAIT_MAX_S)


def test_a_served_service_that_is_killed_after_an_issue_gives_its_number_to_nobody_else(
    tmp_path: Path,
) -> None:
    path, settings = str(tmp_path / "invoicing.db"), Invoicing(today="2026-10-19")
    lost = Fault(path="/drafts/*/issue", kind="lose_reply")
    marta = {"name": "Marta", "tax_id": "12345678Z", "terms_days": 30}
    with serve.start("invoicing", db=path, faults=[lost], settings=settings) as far:
        httpx2.post(f"{far.url}/contacts", json=marta).raise_for_status()
        for n in (1, 2):
            _post(far.url, "/drafts", f"d{n}", contact="C1", lines=LOGO).raise_for_status()
        with pytest.raises((httpx2.ReadError, httpx2.RemoteProtocolError)):
            _post(far.url, "/drafts/D1/issue", "k1")
        far.process.kill()
    with serve.start("invoicing", db=path, settings=settings) as far:
        assert _post(far.url, "/drafts/D2/issue", "k2").json()["id"] == F2
        again = _post(far.url, "/drafts/D1/issue", "k1")
        assert (again.json()["id"], again.json()["due"]) == (F1, "18/11/2026")
        assert again.headers["idempotent-replayed"] == "true"


@pytest.mark.parametrize("wrong", ['{"today": "someday"}', '{"retention_s": -1}', '{"stars": 1}'])
def test_settings_that_make_no_sense_are_refused(
    wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        serve.main(["invoicing", "--db", ":memory:", "--settings", wrong])
    assert "bad --faults or --settings" in capsys.readouterr().err
