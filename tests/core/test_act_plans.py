"""The `act` tool: how the plan that a model sends is read, and refused with all that is wrong."""

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landed.core.act import PROBLEMS_MAX, Offered, call_id_of, read_plan
from landed.core.errors import ProposalError
from landed.core.plan import Wanted
from landed.core.reference import referred, step_named
from landed.tools.function import tool
from tests.core.selling import INVOICE, LINE, TOOLS, Hand, draft_invoice, plan, step

CALLS_MAX = 1_000


def refused(given: Any, tools: list[Offered] = TOOLS) -> list[str]:
    with pytest.raises(ProposalError) as raised:
        read_plan(given, tools)
    return str(raised.value).splitlines()


@pytest.mark.req("S1-01", "S1-02")
def test_a_plan_of_four_steps_is_one_call() -> None:
    calls = read_plan(json.dumps(INVOICE), TOOLS)
    assert [call.tool for call in calls] == ["add_contact", "draft_invoice", "issue_invoice", "pay"]
    assert calls[1].arguments == {
        "contact": "$1",
        "lines": [{"text": "logo", "price": "100", "pieces": 1}],
        "note": None,
    }
    assert calls[3].arguments["invoice"] == "$3"


def test_text_and_bytes_and_values_are_read_alike() -> None:
    text = json.dumps(INVOICE)
    assert read_plan(text, TOOLS) == read_plan(text.encode(), TOOLS) == read_plan(INVOICE, TOOLS)


def test_a_tool_that_takes_nothing_may_leave_its_arguments_out() -> None:
    assert read_plan({"steps": [{"tool": "far"}]}, [Hand()]) == (Wanted(tool="far", arguments={}),)


@pytest.mark.fault("X72")
@pytest.mark.parametrize(
    "text",
    [
        '{"price": "1", "pieces": 2, "text": "logo"}',
        '{"price": 1, "pieces": 2.0, "text": "logo"}',
        '{"price": 1.0, "pieces": 2e0, "text": "logo"}',
        '{"price": 1e0, "pieces": 20e-1, "text": "logo"}',
        '{"price": "1.00", "pieces": 2, "text": "\\u006cogo"}',
        '{"text":"logo","pieces":2,"price":"01"}',
    ],
)
def test_plans_that_differ_only_in_form_are_the_same_ask(text: str) -> None:
    given = f'{{"steps": [{{"arguments": {{"lines": [{text}], "contact": "c1"}}, '
    calls = read_plan(given + '"tool": "draft_invoice"}]}', TOOLS)
    line = {"text": "logo", "price": "1", "pieces": 2}
    told: Any = {"contact": "c1", "lines": [line], "note": None}
    same = [Wanted(tool="draft_invoice", arguments=told)]
    assert call_id_of(calls) == call_id_of(same)


@pytest.mark.req("K5", "S1-30")
@pytest.mark.field("A13")
def test_another_plan_is_another_ask_and_a_models_own_id_has_no_part_in_it() -> None:
    ana, eva = (Wanted(tool="add_contact", arguments={"name": name}) for name in ("Ana", "Eva"))
    again = Wanted(tool="add_contact", arguments={"name": "Ana"}, call_id="toolu_01")
    assert call_id_of([ana]) == call_id_of([again])
    asks = {call_id_of(calls) for calls in ([ana], [eva], [ana, eva], [eva, ana], [ana, ana])}
    assert len(asks) == 5
    assert all(ask.startswith("act:sha256:") for ask in asks)


# What is refused: ALL that is wrong, one line for each.


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("[]", "a plan is an object"),
        ("{}", "the steps of a plan are a list"),
        ('{"steps": {}}', "the steps of a plan are a list"),
        ('{"steps": []}', "a plan without a step does nothing"),
        ('{"steps": [], "why": "because"}', "'why' is no field of a plan, which has steps"),
        ("act!", "this is not one JSON value (line 1, column 1"),
        ('{"steps": []} {}', "and nothing after it"),
        (b'{"steps": ["\xff"]}', "is not UTF-8"),
        ("\ufeff{}", "byte order mark"),
    ],
)
def test_what_is_no_plan_is_refused_in_one_sentence(given: Any, says: str) -> None:
    (line,) = refused(given)
    assert says in line


@pytest.mark.fault("X72", "X70")
@pytest.mark.parametrize(
    ("value", "says"),
    [
        ('{"name": "Ana", "name": "Eva"}', '$.steps[0].arguments: the key "name" appears twice'),
        ('{"name": NaN}', "$.steps[0].arguments.name: JSON has no NaN"),
        ('{"name": Infinity}', "outside"),
        ('{"name": 1e999}', "outside"),
        ('{"name": "\\ud800"}', "half of a surrogate pair"),
        ('{"name": 9007199254740993}', "outside ±(2**53 - 1)"),
        ('{"name": -9007199254740992}', "outside ±(2**53 - 1)"),
        ('{"name": ' + "9" * 100_000 + "}", "outside"),
        ('{"name": ' + "[" * 100 + "]" * 100 + "}", "nested deeper than 64 levels"),
        ('{"name": ' + "[" * 10_000 + "]" * 10_000 + "}", "nested deeper than 64 levels"),
        ('{"name": ' + "[" * 120_000 + "]" * 120_000 + "}", "nested deeper than 64 levels"),
        ('{"name": "' + "x" * 300_000 + '"}', "more than 262144 bytes"),
    ],
    ids=lambda value: value[:24],
)
def test_json_that_two_readers_could_understand_differently_is_refused(
    value: str, says: str
) -> None:
    (line,) = refused(f'{{"steps": [{{"tool": "add_contact", "arguments": {value}}}]}}')
    assert says in line
    assert len(line) < 300


@pytest.mark.fault("X70")
@pytest.mark.parametrize(
    ("given", "says"),
    [
        (plan(*[0] * 101), "a plan has at most 100 steps, not 101; split it"),
        (plan(*[step("add_contact", name="Ana")] * 10_000), "at most 100 steps, not 10000"),
        (plan(*[0] * 100_000), "at most 100 steps, not 100000"),
        (json.dumps(plan(*[0] * 80_000)), "at most 100 steps, not 80000"),
        (json.dumps(plan(step("add_contact", name="x" * 5_000_000))), "more than 262144 bytes"),
        (plan(step("add_contact", name="x" * 5_000_000)), "more than 262144 bytes"),
    ],
    ids=["101", "10000", "100000", "80000 as text", "5 MB as text", "5 MB"],
)
def test_what_is_far_too_much_is_refused_early_and_in_one_sentence(given: Any, says: str) -> None:
    """Whatever its size, nothing is called for each part of it; a text is read once."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        (line,) = refused(given)
    finally:
        sys.setprofile(None)
    assert says in line
    assert calls < (4 * len(given) if isinstance(given, str) else CALLS_MAX)


def test_a_plan_of_a_hundred_steps_is_read() -> None:
    assert len(read_plan(plan(*[step("add_contact", name="Ana")] * 100), TOOLS)) == 100


def test_every_problem_is_told_with_its_step_and_field() -> None:
    lines = refused(
        plan(
            step("add_contact", name=4),
            step("isue_invoice", draft="$1"),
            "pay",
            step("draft_invoice", contact="$1", lines=[{"text": "logo", "price": 12.5}]),
            {"tool": "find_contact", "arguments": '{"name": "Ana"}', "id": 3},
            {"arguments": {}},
            step("pay", invoice="$1"),
        )
    )
    assert lines == [
        "step 1 (add_contact): name: Input should be a valid string",
        "step 2: there is no tool 'isue_invoice'; did you mean 'issue_invoice'? The tools are"
        " add_contact, draft_invoice, find_contact, issue_invoice, pay",
        'step 3: a step is an object: {"tool": …, "arguments": {…}}',
        "step 4 (draft_invoice): lines.0.price: 12.5 is a float, which holds no exact amount; write"
        ' the amount as text, "12.50", or in cents',
        "step 5 (find_contact): 'id' is no field of a step, which has tool and arguments",
        "step 5 (find_contact): arguments is no object; send the arguments themselves, by name,"
        " not as text",
        "step 6: tool is the name of a tool, one of add_contact, draft_invoice, find_contact,"
        " issue_invoice, pay",
        "step 7 (pay): how: Field required",
        "step 7 (pay): invoice wants an invoice, but step 1 makes a contact; refer to a step that"
        " makes an invoice, or give its id",
    ]


@pytest.mark.fault("X70")
def test_what_is_told_is_bounded_however_much_is_wrong() -> None:
    lines = refused(plan(*[step("nothing" * 200, **{"x" * 900: 1})] * 100))
    assert lines[-1] == "and 90 more"
    assert len(lines) == PROBLEMS_MAX + 1
    assert all(len(line) <= 401 for line in lines)
    (line,) = refused(plan(step("add_contact", name="Ana", **{"x" * 900: 1})))
    assert len(line) == 401
    many: list[Offered] = [Hand(name=f"tool_{n:03}") for n in range(300)]
    (line,) = refused(plan(step("x")), many)
    assert line.endswith("tool_019, 280 more")


@pytest.mark.req("S1-30", "S4-04", "S4-11", "S1-61", "F1-05")
@pytest.mark.parametrize(
    "name",
    [
        *("idempotency_key", "idempotencyKey", "Idempotency-Key", "token", "plan_token", "epoch"),
        *("operation", "call_id", "attempt", "approved", "status", "confirmed", "principal"),
    ],
)
def test_what_the_runtime_fills_is_refused_wherever_a_model_puts_it(name: str) -> None:
    inside = step("issue_invoice", draft="d1", **{name: "mine"})
    beside = {**step("issue_invoice", draft="d1"), name: "mine"}
    around = {**plan(step("issue_invoice", draft="d1")), name: "mine"}
    for sent, where in (
        (plan(inside), f"step 1 (issue_invoice): {name}"),
        (plan(beside), f"step 1 (issue_invoice): {name}"),
        (around, name),
    ):
        lines = refused(sent)
        assert lines[0].startswith(where)
        assert "filled by the runtime" in lines[0]
        assert "leave it out" in lines[0]


def test_a_tool_may_have_a_parameter_of_such_a_name_of_its_own() -> None:
    @tool(effect="none")
    async def compute(operation: str, status: int) -> None: ...

    (call,) = read_plan(plan(step("compute", operation="add", status=1)), [compute])
    assert call.arguments == {"operation": "add", "status": 1}


def test_a_plan_may_come_as_values_whose_steps_are_no_list() -> None:
    (line,) = refused({"steps": "all of them"})
    assert line.startswith("the steps of a plan are a list")


# References.

FORMS = ["$0", "$01", "$-1", "$+1", "$1 ", " $1", "$1.email", "$1.__class__", "$../7", "$$1", "$"]
FORMS += ["$1\n", "$1$2", "${1}", "$(1)", "$one", "$\uff11", "$\u0663", "$1e0", "$1.0", "$99999"]


@pytest.mark.req("S1-03")
@pytest.mark.fault("X84")
@pytest.mark.parametrize("form", FORMS)
def test_only_a_dollar_and_a_number_is_a_reference(form: str) -> None:
    given = plan(step("add_contact", name="Ana"), step("draft_invoice", contact=form, lines=[]))
    if form.startswith("$"):
        (line,) = refused(given)
        assert line.startswith(f"step 2 (draft_invoice): contact is {form!r}, which is no refer")
    else:
        calls = read_plan(given, TOOLS)
        assert referred(calls[1].arguments, {"contact": "contact"}) == {}


@pytest.mark.req("S1-03")
@pytest.mark.fault("X84")
@pytest.mark.parametrize(
    ("contact", "says"),
    [
        ("$3", "refers to step 3, which is not before it"),
        ("$2", "refers to step 2, which is not before it"),
        ("$9999", "refers to step 9999, which is not before it"),
        ("$1", "wants a contact, but step 1 makes an invoice"),
    ],
)
def test_a_reference_to_a_later_step_or_another_type_names_step_and_field(
    contact: str, says: str
) -> None:
    given = plan(
        step("issue_invoice", draft="d1"),
        step("draft_invoice", contact=contact, lines=[]),
        step("add_contact", name="Ana"),
    )
    assert refused(given) == [
        line for line in refused(given) if f"step 2 (draft_invoice): contact {says}" in line
    ]


@pytest.mark.req("S1-03")
@pytest.mark.fault("X84")
def test_a_reference_where_none_is_taken_is_refused_also_inside_a_value() -> None:
    lines = refused(
        plan(
            step("add_contact", name="Ana"),
            step("draft_invoice", contact="$1", lines=[LINE, {**LINE, "text": "$1"}], note="$1"),
        )
    )
    assert lines == [
        "step 2 (draft_invoice): lines[1].text is '$1', but a reference stands only in a field of"
        " its own, never inside another value",
        "step 2 (draft_invoice): note is '$1', but takes no reference to a step; of draft_invoice"
        " contact may",
    ]


def test_a_price_in_a_sentence_is_no_reference() -> None:
    (call,) = read_plan(plan(step("add_contact", name="Ana $1, or $2")), TOOLS)
    assert call.arguments == {"name": "Ana $1, or $2"}


def test_a_reference_to_a_step_without_a_tool_is_not_complained_of_as_well() -> None:
    lines = refused(plan(step("ad_contact"), step("draft_invoice", contact="$1", lines=[])))
    assert len(lines) == 1


TEXTS = st.one_of(
    st.from_regex(r"\$.{0,6}"),
    st.from_regex(r"\$[0-9]{1,5}", fullmatch=True),
    st.sampled_from(FORMS),
    st.text(max_size=6),
)


@pytest.mark.req("S1-03")
@pytest.mark.fault("X84")
@given(TEXTS, TEXTS, st.integers(1, 3))
def test_no_text_but_a_fitting_dollar_n_is_ever_taken_for_a_reference(
    contact: str, name: str, at: int
) -> None:
    """Step `at` refers; the contact is made by step 1, and only after it may it be referred to."""
    steps = [step("add_contact", name=name), step("find_contact", name="x")]
    steps.insert(at - 1, step("draft_invoice", contact=contact, lines=[]))
    try:
        calls = read_plan(plan(*steps), TOOLS)
    except ProposalError:
        assert contact.startswith("$") or step_named(name)
        return
    taken = referred(calls[at - 1].arguments, draft_invoice.contract.accepts)
    made = at > 1
    assert taken == ({"contact": 1} if made and contact == "$1" else {})
    assert contact == "$1" or not contact.startswith("$")
    assert calls[at - 1].arguments["contact"] == contact


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inside: (
        st.lists(inside, max_size=4)
        | st.dictionaries(st.text(max_size=5) | st.sampled_from(["tool", "arguments"]), inside)
    ),
    max_leaves=12,
)
SHAPED = st.builds(
    lambda name, arguments: {"tool": name, "arguments": arguments},
    st.sampled_from([one.name for one in TOOLS]) | JSON,
    JSON,
)


@pytest.mark.req("S1-61")
@pytest.mark.fault("X70", "X84")
@given(JSON | st.builds(lambda steps: {"steps": steps}, st.lists(SHAPED | JSON, max_size=4)))
def test_whatever_a_model_sends_is_read_or_refused_in_words(sent: Any) -> None:
    """And what was read reads again as the same ask: nothing is understood in two ways."""
    try:
        calls = read_plan(json.dumps(sent), TOOLS)
    except ProposalError:
        return
    again = plan(*(step(call.tool, **call.arguments) for call in calls))
    assert call_id_of(read_plan(again, TOOLS)) == call_id_of(calls)
