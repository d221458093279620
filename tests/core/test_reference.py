"""References: one grammar, only to earlier steps, only for the type of thing a field takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landed.core.contract import Contract, Effect
from landed.core.errors import ProposalError
from landed.core.reference import check_references, known_by, referred, resolved, step_named

ADD = Contract(effect=Effect.REVERSIBLE, makes_type="contact")
DRAFT = Contract(effect=Effect.REVERSIBLE, makes_type="draft", accepts={"contact": "contact"})
ISSUE = Contract(
    effect=Effect.IRREVERSIBLE,
    makes_type="invoice",
    accepts={"draft": "draft", "copy_to": "contact"},
)
READ = Contract(effect=Effect.NONE)
PLAN = (ADD, DRAFT, ISSUE, READ)


@pytest.mark.fault("X84")
@pytest.mark.parametrize(
    ("value", "number"),
    [
        *(("$1", 1), ("$10", 10), ("$9999", 9999)),
        *(
            (text, None)
            for text in ("$10000", "$0", "$01", "$", "1", "$1 ", "$1\n", "$1.id", "$-1")
        ),
        *((other, None) for other in ("$\u0661", 1, None, ["$1"], {"$1": "$1"}, True)),
    ],
)
def test_a_reference_is_a_dollar_and_a_number_and_nothing_else(value, number):
    assert step_named(value) == number


@given(st.text(max_size=8) | st.from_regex(r"\$[0-9.]{1,6}"))
@pytest.mark.fault("X84")
def test_no_other_text_names_a_step(text):
    number = step_named(text)
    assert number is None or (text == f"${number}" and 1 <= number <= 9999)


def test_what_refers_is_told_by_parameter():
    arguments = {"draft": "$2", "copy_to": "c1", "note": "$1"}
    assert referred(arguments, ISSUE.accepts) == {"draft": 2}


@pytest.mark.req("S1-02")
@pytest.mark.parametrize(
    ("number", "arguments"),
    [
        (2, {"contact": "$1"}),
        (2, {"contact": "c1"}),
        (3, {"draft": "$2", "copy_to": "$1"}),
        (3, {"draft": "$2", "copy_to": None}),
        (4, {"text": "it costs $5", "count": 3, "list": ["$5 off"]}),
    ],
)
def test_a_reference_that_fits_is_accepted(number, arguments):
    check_references(number, "t", arguments, PLAN)


@pytest.mark.req("S1-03")
@pytest.mark.fault("X84")
@pytest.mark.parametrize(
    ("number", "arguments", "says"),
    [
        (2, {"contact": "$2"}, "contact refers to step 2, which is not before it"),
        (2, {"contact": "$3"}, "contact refers to step 3, which is not before it"),
        (2, {"contact": "$9999"}, "contact refers to step 9999, which is not before it"),
        (3, {"draft": "$1"}, "draft wants a draft, but step 1 makes a contact"),
        (3, {"copy_to": "$2"}, "copy_to wants a contact, but step 2 makes a draft"),
        (3, {"draft": "$1.id"}, "draft is '$1.id', which is no reference"),
        (3, {"draft": "$../7"}, "draft is '$../7', which is no reference"),
        (3, {"note": "$1"}, "note is '$1', but takes no reference to a step; of t copy_to, draft"),
        (4, {"name": "$1"}, "of t none of its fields may"),
        (
            3,
            {"draft": ["$2"]},
            "draft[0] is '$2', but a reference stands only in a field of its own",
        ),
        (3, {"note": {"of": "$1"}}, "note.of is '$1', but a reference stands only in a field"),
    ],
)
def test_one_that_does_not_names_step_and_field(number, arguments, says):
    with pytest.raises(ProposalError) as refused:
        check_references(number, "t", arguments, PLAN)
    assert str(refused.value).startswith(f"step {number} (t): ")
    assert says in str(refused.value)


def test_a_step_that_makes_nothing_cannot_be_referred_to():
    wants = Contract(effect=Effect.NONE, accepts={"invoice": "invoice"})
    with pytest.raises(ProposalError) as refused:
        check_references(2, "t", {"invoice": "$1"}, (READ, wants))
    assert "wants an invoice, but step 1 makes nothing that can be referred to" in str(
        refused.value
    )


@pytest.mark.req("S1-02")
def test_what_earlier_steps_made_is_filled_in_as_text():
    arguments = {"draft": "$2", "copy_to": "c9", "note": "$1"}
    filled = resolved(arguments, ISSUE.accepts, {1: "c1", 2: 17})
    assert filled == {"draft": "17", "copy_to": "c9", "note": "$1"}
    assert arguments["draft"] == "$2"


@pytest.mark.parametrize("made", [{}, {2: None}])
def test_a_step_that_made_nothing_with_an_id_fills_nothing(made):
    with pytest.raises(ProposalError, match="step 2 made nothing that draft could refer to"):
        resolved({"draft": "$2"}, ISSUE.accepts, made)


@pytest.mark.req("S1-30")
def test_two_steps_that_say_the_same_number_are_the_same_only_where_the_first_steps_are():
    said = {"draft": "$1", "copy_to": "c1"}
    one, two = (known_by(said, ISSUE.accepts, [identity]) for identity in ("sha:a", "sha:b"))
    assert one == {"draft": "$(sha:a)", "copy_to": "c1"}
    assert one != two
    assert step_named(one["draft"]) is None
