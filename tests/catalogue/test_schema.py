"""A contract file with a typo is an error that names file, table, key and what was meant."""

from datetime import date
from pathlib import Path

import pytest

from landed import catalogue
from landed.catalogue.files import FILE_BYTES_MAX
from landed.core.contract import Contract, Effect, Interrupt
from landed.core.declared import values
from landed.core.errors import ContractError

BANK = """
title = "The bank"
service = "bank"

[sources.manual]
url = "https://bank.example/manual"
checked = 2026-11-30
says = '''References are refused
    when they come twice.'''

[calls.pay]
request = "POST /payments"
effect = "irreversible"
keyed = "Reference"
key_max = 35
retention_s = 172800
compares_payload = true
lookup = true
on_interrupt = "finish"
says.en.confirmed = "paid {cents} cents"
notes = ["Only on working days."]

[calls.pay.ways]
lookup = "GET /payments?reference=…"

[calls.pay.hints]
idempotent = true

[calls.pay.arguments]
cents = "How much, in cents."

[calls.pay.facts]
keyed = "manual"
compares_payload = { source = "https://bank.example/errors", checked = 2026-11-29, says = "so" }
lookup = { source = "manual", verified = false, why = "the page is empty" }
"""


def written(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


def test_a_file_of_ones_own_is_read_like_the_catalogue(tmp_path: Path) -> None:
    (entry,) = catalogue.from_toml(written(tmp_path / "bank.toml", BANK)).values()
    assert entry.name == "bank.pay"
    assert values(entry.contract) == values(
        Contract(
            effect=Effect.IRREVERSIBLE,
            service="bank",
            keyed="Reference",
            retention_s=172800,
            compares_payload=True,
            lookup=True,
            on_interrupt=Interrupt.FINISH,
            says={"en": {"confirmed": "paid {cents} cents"}},
        )
    )
    assert (entry.request, entry.key_max) == ("POST /payments", 35)
    assert entry.ways == {"lookup": "GET /payments?reference=…"}
    assert entry.hints == {"idempotent": True}
    assert entry.arguments == {"cents": "How much, in cents."}
    assert entry.notes == ("Only on working days.",)
    assert entry.origin == str(tmp_path / "bank.toml")


def test_each_fact_has_its_source_and_what_has_none_is_unverified(tmp_path: Path) -> None:
    entry = catalogue.from_toml(written(tmp_path / "bank.toml", BANK))["bank.pay"]
    manual = entry.facts["keyed"]
    assert (manual.source, manual.checked) == ("https://bank.example/manual", date(2026, 11, 30))
    assert manual.says == "References are refused when they come twice."
    assert entry.facts["compares_payload"].source == "https://bank.example/errors"
    unsure = entry.facts["lookup"]
    assert (unsure.verified, unsure.why) == (False, "the page is empty")
    assert unsure.source == manual.source
    assert entry.unverified == ("retention_s", "lookup", "key_max")


CHANGES = {
    "a field with a typo": (
        ("retention_s =", "retention ="),
        r"\[calls.pay\] there is no key 'retention'; did you mean 'retention_s'\?",
    ),
    "a key that is nothing like any": (
        ("key_max = 35", "zzz = 35"),
        r"\[calls.pay\] there is no key 'zzz'; it may have effect, risk",
    ),
    "a table with a typo": (
        ("[calls.pay.facts]", "[calls.pay.fact]"),
        r"\[calls.pay\] there is no key 'fact'; did you mean 'facts'\?",
    ),
    "a table at the top with a typo": (
        ("[sources.manual]", "[source.manual]"),
        "there is no key 'source'; did you mean 'sources'",
    ),
    "a source that is not there": (
        ('keyed = "manual"', 'keyed = "manuel"'),
        r"\[calls.pay.facts\] keyed names 'manuel', which is not in \[sources\]; did you mean"
        r" 'manual'",
    ),
    "a fact about a decision of ours": (
        ('keyed = "manual"', 'effect = "manual"'),
        r"\[calls.pay.facts\] there is no key 'effect'",
    ),
    "a fact with a typo": (
        ("verified = false", "verifed = false"),
        r"\[calls.pay.facts.lookup\] there is no key 'verifed'; did you mean 'verified'",
    ),
    "a source that is no page": (
        ('url = "https://bank.example/manual"', 'url = "the manual"'),
        r"\[sources.manual\] url must be the URL of a page, not 'the manual'",
    ),
    "a source without a day": (
        ("checked = 2026-11-30", ""),
        r"\[sources.manual\] checked must be the day it was read, as 2026-11-30, not None",
    ),
    "a day with a time": (
        ("checked = 2026-11-30", "checked = 2026-11-30T10:00:00Z"),
        r"\[sources.manual\] checked must be the day",
    ),
    "a source with a typo": (
        ("says = '''References", "say = '''References"),
        r"\[sources.manual\] there is no key 'say'; did you mean 'says'",
    ),
    "an effect that is none": (
        ('effect = "irreversible"', 'effect = "final"'),
        r"\[calls.pay\] contract of bank.pay: effect: 'final' is not a valid Effect",
    ),
    "no effect": (
        ('effect = "irreversible"', ""),
        r"\[calls.pay\] contract of bank.pay: say what it does to the world",
    ),
    "a time that is a text": (
        ("retention_s = 172800", 'retention_s = "2 days"'),
        r"\[calls.pay\] contract of bank.pay: retention_s: int or float or nothing is wanted, not"
        r" '2 days'",
    ),
    "a promise that needs code": (
        ("lookup = true", "lookup = true\npreview = true"),
        r"\[calls.pay\] preview needs code: give it to the tool, not to the file",
    ),
    "a place for a key that there is not": (
        ("key_max = 35", 'key_in = "cookie"'),
        r"\[calls.pay\] key_in must be one of header, body, path, not 'cookie'",
    ),
    "a length that is none": (
        ("key_max = 35", "key_max = true"),
        r"\[calls.pay\] key_max must be a whole number above 0, not True",
    ),
    "a flag that is none": (
        ("key_max = 35", 'replays_failures = "yes"'),
        r"\[calls.pay\] replays_failures must be true or false, not 'yes'",
    ),
    "a hint with a typo": (
        ("idempotent = true", "idempotnet = true"),
        r"\[calls.pay.hints\] there is no key 'idempotnet'; did you mean 'idempotent'",
    ),
    "a way with a typo": (
        ('lookup = "GET', 'look_up = "GET'),
        r"\[calls.pay.ways\] there is no key 'look_up'; did you mean 'lookup'",
    ),
    "a text that is a number": (
        ('request = "POST /payments"', "request = 7"),
        r"\[calls.pay\] request must be a text, not 7",
    ),
    "notes that are one text": (
        ('notes = ["Only on working days."]', 'notes = "Only"'),
        r"\[calls.pay\] notes must be a list of texts, not 'Only'",
    ),
    "notes that are numbers": (
        ('notes = ["Only on working days."]', "notes = [7]"),
        r"\[calls.pay\] notes must be a list of texts, not \[7\]",
    ),
    "a service with a dot": (
        ('service = "bank"', 'service = "the.bank"'),
        "service must be a name without dots",
    ),
    "no service": (('service = "bank"', ""), "service must be a name without dots"),
    "a contract that contradicts itself": (
        ("lookup = true\n", "lookup = true\nclose = true\nassume_after_s = 1\n"),
        "contract of bank.pay: assume_after_s is for effects that nobody can check",
    ),
}


@pytest.mark.parametrize("wrong", CHANGES)
def test_what_is_wrong_in_a_file_is_told_with_its_place(wrong: str, tmp_path: Path) -> None:
    (old, new), told = CHANGES[wrong]
    assert old in BANK
    path = written(tmp_path / "bank.toml", BANK.replace(old, new, 1))
    with pytest.raises(ContractError, match=told) as caught:
        catalogue.from_toml(path)
    assert str(caught.value).startswith(f"contract file {path}: ")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("service = ", "is no TOML"),
        ('service = "bank"', r"there is no \[calls.NAME\]"),
        ('service = "bank"\ncalls = 7', "calls must be a table, not 7"),
        ('service = "bank"\n[calls]\npay = 7', r"\[calls\] pay must be a table, not 7"),
    ],
)
def test_a_file_that_is_no_contract_file_is_told_so(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=told):
        catalogue.from_toml(written(tmp_path / "bank.toml", text))


def test_a_file_that_cannot_be_read_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="cannot be read: No such file"):
        catalogue.from_toml(tmp_path / "absent.toml")
    with pytest.raises(ContractError, match="cannot be read: Is a directory"):
        catalogue.from_toml(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b'title = "\xe9"')
    with pytest.raises(ContractError, match="is not UTF-8"):
        catalogue.from_toml(tmp_path / "latin.toml")
    (tmp_path / "long.toml").write_bytes(b"#" * (FILE_BYTES_MAX + 1))
    with pytest.raises(ContractError, match="is longer than"):
        catalogue.from_toml(tmp_path / "long.toml")
