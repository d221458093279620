"""What a mail is: which addresses and texts it takes, how it is written, and whose it is."""

from email import message_from_bytes
from email.policy import default as policy
from typing import Any

import pytest

from landed.core.canonical import Json
from landed.core.errors import ContractError, ProposalError
from landed.runtime.clock import RandomIds
from landed.tools.letters import (
    BODY_MAX,
    SUBJECT_MAX,
    Letter,
    address,
    made_at,
    message_id,
    operation_of,
    sender_of,
)
from tests.tools.calls import call_of


def letter(**given: str) -> Letter:
    return Letter(**({"to": "bob@example.com", "subject": "Hello", "body": "Hi."} | given))


def written(one: Letter) -> Any:
    source = one.written(sender="ana@shop.example", message_id="<op-1@x.example>", made_at=0.0)
    assert all(byte < 128 for byte in source)
    assert max(map(len, source.split(b"\r\n"))) <= 998
    return message_from_bytes(source, policy=policy)


@pytest.mark.parametrize(
    "text",
    ["a@b.co", "first.last+tag@sub.example.com", "o'brien@x-y.example", "a@xn--nxasmq6b.example"],
)
def test_a_plain_address_is_taken(text: str) -> None:
    assert address(text, name="to") == text


@pytest.mark.parametrize(
    "text",
    [
        *("", "a", "@example.com", "a@", "a@b", "a@.com", "a@b..com", "a@-b.com", "a@b.com."),
        *("a.@b.com", ".a@b.com", "a..b@b.com", "a b@b.com", '"a b"@b.com', "a@[127.0.0.1]"),
        *("a@b.com,c@d.com", "a@b.com;c@d.com", "a@b.com c@d.com", "Bob <a@b.com>", "<a@b.com>"),
        *(
            "ñ@b.com",
            "a@ñ.com",
            "a@b.com\n",
            "a@b.com\r\nRCPT TO:<c@d.com>",
            "a@b.com>",
            "a@b@c.com",
        ),
        *("x" * 65 + "@b.com", "a@" + "b." * 130 + "com", "a@b.com(comment)", "a@b.c0m1-"),
    ],
)
def test_anything_else_is_refused_in_words_that_a_model_can_act_on(text: str) -> None:
    with pytest.raises(ProposalError, match=r"^to (must be one plain address|goes into a header)"):
        address(text, name="to")


@pytest.mark.parametrize(
    "body",
    [
        "Hi.",
        "¡Hola, señora! Son 121 €.",
        ".\n..\n.hidden",
        "x" * 5_000,
        "From here\n\n\ton",
        "日本語" * 2_000,
        "a\r\nb",
        "",
    ],
)
def test_every_text_arrives_as_it_was(body: str) -> None:
    came = written(letter(body=body)).get_content().replace("\r\n", "\n")
    assert came.rstrip("\n") == body.replace("\r\n", "\n").rstrip("\n")


@pytest.mark.parametrize(
    "subject", ["Hello", "Factura n.º 14 · 121 €", "word " * 49 + "end", "x" * SUBJECT_MAX, "=?x?="]
)
def test_every_subject_arrives_as_it_was(subject: str) -> None:
    assert written(letter(subject=subject))["Subject"] == subject


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"subject": ""}, "subject must have 1 to"),
        ({"subject": "  "}, "subject must have 1 to"),
        ({"subject": "x" * (SUBJECT_MAX + 1)}, "subject must have 1 to"),
        ({"subject": "a\tb"}, "U\\+0009"),
        ({"subject": "\ud800"}, "U\\+D800"),
        ({"body": "x" * (BODY_MAX + 1)}, "body may have"),
        ({"body": "a\x00b"}, "body holds the control character U\\+0000"),
        ({"body": "a\rb"}, "U\\+000D"),
        ({"body": "\udfff"}, "U\\+DFFF"),
        ({"reply_to": "nobody"}, "reply_to must be one plain address"),
    ],
)
def test_what_no_mail_can_carry_is_refused(given: dict[str, str], says: str) -> None:
    with pytest.raises(ProposalError, match=says):
        letter(**given)


def test_a_sender_may_have_a_name() -> None:
    assert sender_of("ana@shop.example", tool="mail") == ("ana@shop.example", "ana@shop.example")
    shown, plain = sender_of("Ana, of the Shop <ana@shop.example>", tool="mail")
    assert plain == "ana@shop.example"
    assert shown == '"Ana, of the Shop" <ana@shop.example>'


@pytest.mark.parametrize("text", ["", "ana", "Ana <ana>", "a@b.com\r\nBcc: c@d.com", "<>"])
def test_a_sender_without_an_address_is_refused(text: str) -> None:
    with pytest.raises(ContractError, match="mail: sender"):
        sender_of(text, tool="mail")


# Whose mail it is.


@pytest.mark.req("S1-60")
@pytest.mark.parametrize(
    "key", ["op-a1", "main:op-a1", "s 1/ñ@x:op%20", "<>", "a.b..c", "ses/op-1"]
)
def test_a_message_id_names_its_operation_and_reads_back(key: str) -> None:
    name = message_id(call_of(key=key), domain="shop.example")
    assert operation_of(name) == operation_of(f" {name}\r\n") == key
    local = name.removeprefix("<").removesuffix("@shop.example>")
    assert local.isascii()
    assert not set(local) & set('<>@ :"(),;[]\\')
    assert written(letter())["Message-ID"] == "<op-1@x.example>"


@pytest.mark.parametrize(
    "other", ["", "op-1@x.example", "<op-1>", "<a@b> <c@d>", "<@b>", "<a b@c>"]
)
def test_a_message_id_of_another_form_names_nothing(other: str) -> None:
    assert operation_of(other) == ""


def test_a_long_message_id_is_not_folded_or_encoded() -> None:
    name = f"<op-01hq3v5w8x9y0z1a2b3c4d5e6f@{'a' * 60}.{'b' * 60}.example>"
    source = letter().written(sender="ana@shop.example", message_id=name, made_at=None)
    assert f"Message-ID: {name}\r\n".encode() in source
    assert b"Date:" not in source


def test_the_date_is_when_the_operation_was_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    at_ns = 1_796_000_000_123_456_789
    monkeypatch.setattr("time.time_ns", lambda: at_ns)
    operation = RandomIds().new("operation")
    assert made_at(operation) == 1_796_000_000.123
    one = letter().written(sender="a@b.com", message_id="<x@y>", made_at=made_at(operation))
    assert b"\r\nDate: Mon, 30 Nov 2026 00:53:20 +0000\r\n" in one


@pytest.mark.parametrize("operation", ["op-a1", "", "op-" + "u" * 26, "op-" + "1" * 25, "1" * 26])
def test_an_id_that_tells_no_time_gives_no_date(operation: str) -> None:
    assert made_at(operation) is None


def test_the_same_values_are_the_same_bytes() -> None:
    given: dict[str, Json] = {"to": "bob@example.com", "subject": "Straße", "body": "ñ\n" * 99}
    first, second = (Letter(**given) for _ in range(2))  # type: ignore[arg-type]
    told: dict[str, Any] = {"sender": "a@b.com", "message_id": "<x@y>", "made_at": 1.5}
    assert first.written(**told) == second.written(**told)
