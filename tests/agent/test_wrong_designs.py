"""Each wrong design of a stop goes wrong in the way that is known of it; ours, beside it, does not.

What stands here is what the failure variants say, and not what the scenarios say of themselves.
"""

import pytest

from landed.testing.stops.scenario import StopRan, run
from landed.testing.stops.scenarios import PAIRS


def both(variant: str) -> tuple[StopRan, StopRan]:
    """Play the wrong design of a variant, and ours with the same script."""
    wrong, right = PAIRS[variant]
    return run(wrong), run(right)


def texts(ran: StopRan, type: str) -> list[str]:
    return [line.text for line in ran.lines if line.type == type]


def turn(ran: StopRan, type: str) -> int:
    return next(line.turn for line in ran.lines if line.type == type)


@pytest.mark.req("F2-01", "S2-103")
def test_f2_01_a_plain_loop_keeps_the_floor() -> None:
    wrong, right = both("F2-01")

    # Twelve looks of the frontend, the build inside one of them, and the button after all.
    assert "pressed after look 12 of 12" in wrong.end.endings
    assert texts(wrong, "tool.result") == ["c1: built"]
    assert "pressed after look 5 of 12" in right.end.endings
    assert texts(right, "tool.result") == ["c1: Command cancelled"]
    assert right.end.calls == 1 < wrong.end.calls


@pytest.mark.req("F2-02")
def test_f2_02_a_flag_alone_does_not_stop_a_deaf_tool() -> None:
    wrong, right = both("F2-02")

    assert (wrong.end.endings, wrong.end.records) == (("STILL GOING",), ("U A[c1]",))
    assert turn(wrong, "ended") - turn(wrong, "stop") == 200
    assert (wrong.end.running, right.end.running) == (("the run",), ())
    assert (right.end.endings, right.end.records) == (("hard",), ("U A[c1]",))


@pytest.mark.req("F2-03", "S2-61")
def test_f2_03_a_tool_runner_that_catches_everything_turns_a_stop_into_a_result() -> None:
    wrong, right = both("F2-03")

    assert texts(wrong, "tool.result") == ["c1: the tool failed (CancelledError) (error)"]
    assert (wrong.end.words, wrong.end.calls) == ("It failed. I go on.", 2)
    assert (right.end.records, right.end.calls) == (("U A[c1]",), 1)


@pytest.mark.req("F2-04", "S2-21", "S2-61")
def test_f2_04_a_guard_that_catches_everything_turns_a_stop_into_a_refusal() -> None:
    wrong, right = both("F2-04")

    assert texts(wrong, "tool.result") == ["c1: Tool call blocked: CancelledError (error)"]
    assert (wrong.end.words, wrong.end.calls) == ("Blocked. I go on.", 2)
    assert (right.end.records, right.end.calls) == (("U A[c1]",), 1)


@pytest.mark.req("F2-05", "S2-98", "S2-47")
def test_f2_05_a_token_made_at_the_first_step_loses_an_early_stop() -> None:
    wrong, right = both("F2-05")

    assert (wrong.end.records, wrong.end.calls) == (("U A",), 1)
    assert wrong.end.words == "Deleted 4,000 files. You are welcome."
    assert (right.end.records, right.end.calls) == (("U A(aborted)",), 0)


@pytest.mark.req("F2-06", "S2-49")
def test_f2_06_calls_that_are_skipped_without_a_result_break_the_next_request() -> None:
    wrong, right = both("F2-06")

    assert wrong.end.records == ("U A[c1,c2,c3] R(c1) A(aborted)",)
    assert wrong.end.refused.startswith("400 ")
    assert right.end.records == ("U A[c1,c2,c3] R(c1) R(c2) R(c3) A(aborted)",)
    assert texts(right, "tool.result") == [
        "c1: contents of a.py",
        "c2: Operation aborted (error)",
        "c3: Operation aborted (error)",
    ]
    assert (right.end.calls, right.end.refused) == (1, "")


@pytest.mark.req("F2-07", "S2-19")
def test_f2_07_a_guard_that_fails_open_lets_the_folder_be_deleted() -> None:
    wrong, right = both("F2-07")

    assert (wrong.end.files, right.end.files) == ((), ("build/out.txt",))


@pytest.mark.req("F2-08", "S2-28")
def test_f2_08_a_bound_between_reply_and_calls_leaves_a_call_without_result() -> None:
    wrong, right = both("F2-08")

    assert wrong.end.records == ("U A[c1] R(c1) A[c2] A(error)",)
    assert wrong.end.refused.startswith("400 ")
    assert (right.end.records, right.end.refused) == (("U A[c1] R(c1) A[c2] R(c2) A(error)",), "")


@pytest.mark.req("F2-09", "S2-46")
def test_f2_09_one_token_for_life_stops_the_next_run_at_once() -> None:
    wrong, right = both("F2-09")

    assert wrong.end.records == ("U A(aborted) U A(aborted)",)
    assert (wrong.end.calls, right.end.calls) == (0, 1)
    assert right.end.records == ("U A(aborted) U A",)


@pytest.mark.req("F2-10", "S2-60")
def test_f2_10_a_command_that_is_killed_only_where_the_flag_is_seen_survives() -> None:
    wrong, right = both("F2-10")

    assert (wrong.end.endings, wrong.end.running) == (("hard",), ("sleep inf",))
    assert (right.end.endings, right.end.running) == (("hard",), ())


@pytest.mark.req("F2-11", "S2-62")
def test_f2_11_a_stop_that_swallows_its_own_cancellation_cannot_be_stopped() -> None:
    wrong, right = both("F2-11")

    assert wrong.end.endings[0] == "hard"
    assert right.end.endings == ("cancelled", "hard")


@pytest.mark.req("F2-12", "S2-88")
def test_f2_12_a_renderer_that_ignores_a_stop_tells_an_empty_success() -> None:
    wrong, right = both("F2-12")

    assert (wrong.end.words, wrong.end.endings[-1]) == ("", "exit 0")
    assert (right.end.words, right.end.endings[-1]) == ("Error: Operation aborted", "exit 1")


@pytest.mark.req("F2-13", "S2-78")
def test_f2_13_a_cut_on_a_result_is_refused_by_the_provider() -> None:
    wrong, right = both("F2-13")

    assert wrong.end.records[0].startswith("U R(c2) ")
    assert wrong.end.refused == "400 message 1: a result of c2 out of its place"
    assert (right.end.records, right.end.refused) == (("U U A",), "")


@pytest.mark.req("F2-14", "S2-75")
def test_f2_14_a_torn_line_that_is_skipped_costs_two_entries() -> None:
    wrong, right = both("F2-14")

    # Of four messages the log tells two: of the answer that was torn, and what was glued to it.
    assert wrong.end.log == "3 lines: U A"
    assert wrong.end.broken == ("the log is not the record",)
    assert right.end.endings == ("line 2 is refused",)
    assert right.end.log == "4 lines: U U A"
