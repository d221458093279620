"""The scenarios of a stop in `landed demo`: a few lines each, wrong designs beside right ones."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from landed.testing.stops import designs, scripts
from landed.testing.stops.designs import StopDesign
from landed.testing.stops.ending import End
from landed.testing.stops.scenario import StopScenario

ABORTED = "Operation aborted"
CUT_OFF = End(records=("U A[c1]",), shown="U A[c1] R(c1 interrupted) U", words="")
ANSWERED = End(records=("U A[c1] R(c1) A(aborted)",), shown="U A[c1] R(c1) U", words=ABORTED)
WENT_ON = End(records=("U A[c1] R(c1) A",), shown="U A[c1] R(c1) A U", words="Done.", calls=2)
FAILED = replace(WENT_ON, shown="U A[c1] R(c1 error) A U")
EARLY = End(
    records=("U A(aborted)",),
    shown="U U",
    words=ABORTED,
    calls=0,
    request="none",
    endings=("clean",),
)


def wrong(right: StopScenario, name: str, line: str, design: StopDesign, end: End) -> StopScenario:
    """Return the same scenario on a wrong design."""
    return replace(right, name=name, line=f"WRONG: {line}", design=design, end=end)


SLOW_BUILD = StopScenario(
    name="stop-slow-build",
    line="The button is pressed during a build, which gives the floor away: it is heard.",
    script=scripts.pressed_in_a_build,
    end=replace(ANSWERED, endings=("clean", "pressed after look 5 of 12")),
)
PLAIN_LOOP = wrong(
    SLOW_BUILD,
    "stop-plain-loop",
    "a plain loop keeps the floor for the whole build: the button is not heard until it is over.",
    designs.NEVER_HEARD,
    replace(WENT_ON, words="Built.", endings=("not at all", "pressed after look 12 of 12")),
)
DEAF = StopScenario(
    name="stop-deaf",
    line="A tool does not listen: after the grace its wait is cancelled, and the run is over.",
    script=scripts.deaf_tool,
    end=replace(CUT_OFF, endings=("hard",)),
)
FLAG_ONLY = wrong(
    DEAF,
    "stop-flag-only",
    "a stop is a flag and nothing else: 200 turns later the run is still going.",
    designs.FLAG_ONLY,
    replace(
        CUT_OFF,
        endings=("STILL GOING",),
        running=("the run",),
        shown="nothing, for the run is not over",
    ),
)
CANCELLED = StopScenario(
    name="stop-cancelled",
    line="The task that drives a run is cancelled: that goes through the tool, and it is over.",
    script=scripts.cancelled,
    end=replace(CUT_OFF, endings=("cancelled",)),
)
SWALLOWED_BY_TOOL = wrong(
    CANCELLED,
    "stop-swallowed-by-tool",
    "whoever runs a tool catches everything: a failed tool, and the run goes on, spending.",
    designs.SWALLOWED_BY_TOOL,
    replace(FAILED, words="It failed. I go on.", endings=("not at all: it went on",)),
)
CANCELLED_GUARDED = replace(
    CANCELLED,
    name="stop-cancelled-guarded",
    line="The same through a guard: it is no reason to refuse the call.",
    script=scripts.cancelled_behind_a_guard,
)
SWALLOWED_BY_GUARD = wrong(
    CANCELLED_GUARDED,
    "stop-swallowed-by-guard",
    "the guard catches everything: the call is said to be blocked, and the run goes on.",
    designs.SWALLOWED_BY_GUARD,
    replace(FAILED, words="Blocked. I go on.", endings=("not at all: it went on",)),
)
GUARDED = StopScenario(
    name="stop-guarded",
    line="A tool behind a guard does not listen: stopped hard, and its call has no result.",
    script=scripts.deaf_tool_behind_a_guard,
    end=DEAF.end,
)
BEFORE = StopScenario(
    name="stop-before-first-step",
    line="The button is pressed before the run's first step: nothing is asked of the model.",
    script=scripts.before_the_first_step,
    end=EARLY,
)
TOKEN_TOO_LATE = wrong(
    BEFORE,
    "stop-token-too-late",
    "the token is made at the first step, and the stop before it is lost: 4,000 files.",
    designs.TOKEN_TOO_LATE,
    End(
        records=("U A",),
        shown="U A U",
        words="Deleted 4,000 files. You are welcome.",
        endings=("not at all",),
    ),
)
BATCH = StopScenario(
    name="stop-batch",
    line="Three files are asked for, and stopped during the first: each call has its result.",
    script=scripts.three_files,
    end=End(
        records=("U A[c1,c2,c3] R(c1) R(c2) R(c3) A(aborted)",),
        shown="U A[c1,c2,c3] R(c1) R(c2 error) R(c3 error) U",
        words=ABORTED,
        endings=("clean",),
    ),
)
UNANSWERED_CALLS = wrong(
    BATCH,
    "stop-unanswered-calls",
    "calls that are not run have no result: the provider refuses the next request, and each later.",
    designs.UNANSWERED_CALLS,
    End(
        records=("U A[c1,c2,c3] R(c1) A(aborted)",),
        shown="U A[c1,c2,c3] R(c1) A(aborted) U",
        words=ABORTED,
        endings=("clean",),
        refused="400 message 3: no result of c2 before it",
    ),
)
FAIL_CLOSED = StopScenario(
    name="guard-fail-closed",
    line="A check fails on a call that it does not know: the call is refused, the folder is there.",
    script=scripts.failing_check,
    end=replace(FAILED, words="Very well.", files=("build/out.txt",)),
)
FAIL_OPEN = wrong(
    FAIL_CLOSED,
    "guard-fail-open",
    "a check that fails lets the call through: the folder is gone.",
    designs.FAIL_OPEN,
    replace(WENT_ON, words="Very well.", files=()),
)
BOUNDED = StopScenario(
    name="turns-bounded",
    line="A model never stops asking: the bound is looked at before a request, every call is run.",
    script=scripts.endless_model,
    end=End(
        records=("U A[c1] R(c1) A[c2] R(c2) A(error)",),
        shown="U A[c1] R(c1) A[c2] R(c2) U",
        words="Agent stopped after max_turns=2",
        calls=2,
    ),
)
CUT_BETWEEN = wrong(
    BOUNDED,
    "turns-cut-between",
    "the bound is looked at between a reply and its calls: a call without a result, and refused.",
    designs.CUT_BETWEEN,
    replace(
        BOUNDED.end,
        records=("U A[c1] R(c1) A[c2] A(error)",),
        shown="U A[c1] R(c1) A[c2] A(error) U",
        refused="400 message 4: no result of c2 before it",
    ),
)
THEN_AGAIN = StopScenario(
    name="stop-then-again",
    line="Yesterday's stop does not stop today's run: each run has a token of its own.",
    script=scripts.stopped_then_again,
    end=End(
        records=("U A(aborted) U A",),
        shown="U U A U",
        words="Here.",
        endings=("clean", "not at all"),
    ),
)
TOKEN_KEPT = wrong(
    THEN_AGAIN,
    "stop-token-kept",
    "one token for the harness's life: the next run stops at once, and so does each after it.",
    designs.TOKEN_KEPT,
    replace(
        EARLY,
        records=("U A(aborted) U A(aborted)",),
        shown="nothing, for the run is stopped at once",
        endings=("clean", "clean"),
    ),
)
BASH = StopScenario(
    name="stop-bash",
    line="A command that never ends is killed when the button is pressed, and says so.",
    script=scripts.sleeping_command,
    end=replace(ANSWERED, endings=("clean",)),
)
BASH_HARD = StopScenario(
    name="stop-bash-hard",
    line="The same without any grace: a call without a result, and no command that goes on.",
    script=scripts.sleeping_command_without_grace,
    end=DEAF.end,
)
ORPHAN_PROCESS = wrong(
    BASH_HARD,
    "stop-orphan-process",
    "a command is killed only where the flag is seen: after a hard stop it goes on.",
    designs.ORPHAN_PROCESS,
    replace(BASH_HARD.end, running=("sleep inf",)),
)
STOPPER = StopScenario(
    name="stop-the-stopper",
    line="Whoever waits for a run to end can be stopped too, and the run by somebody else.",
    script=scripts.stopper_is_stopped,
    end=replace(CUT_OFF, endings=("cancelled", "hard")),
)
EATS_ITS_OWN = wrong(
    STOPPER,
    "stop-eats-its-own",
    "a stop swallows every cancellation, its own too: whoever waits there cannot be stopped.",
    designs.EATS_ITS_OWN,
    replace(STOPPER.end, endings=("hard", "hard")),
)
EXIT_ONE = StopScenario(
    name="stop-exit-one",
    line="A script sees by the exit status that its agent was stopped, and reads why.",
    script=scripts.exit_status,
    end=replace(ANSWERED, words=f"Error: {ABORTED}", endings=("clean", "exit 1")),
)
EXIT_ZERO = wrong(
    EXIT_ONE,
    "stop-exit-zero",
    "a renderer knows errors and no stops: an empty answer, and success.",
    designs.EXIT_ZERO,
    replace(EXIT_ONE.end, words="", endings=("clean", "exit 0")),
)
COMPACTION = StopScenario(
    name="compaction-cut",
    line="A long conversation is cut for a summary: before what the user said, never on a result.",
    script=scripts.long_conversation,
    end=End(records=("U U A",), shown="U U A U", words="Three.", calls=5, log="11 lines: U U A"),
)
CUT_ON_RESULT = wrong(
    COMPACTION,
    "compaction-cut-on-result",
    "it is cut where the room is up: a result without its call, which the provider refuses.",
    designs.CUT_ON_RESULT,
    replace(
        COMPACTION.end,
        records=("U R(c2) A U A",),
        shown="U R(c2) A U A U",
        log="11 lines: U R(c2) A U A",
        refused="400 message 1: a result of c2 out of its place",
        broken=("message 1: a result of c2, which is no call before it, or answered",),
    ),
)
TORN = StopScenario(
    name="torn-line-refused",
    line="The power fails in the middle of a line: the log is refused until that is cut.",
    script=scripts.torn_line,
    end=End(
        records=("U U A",),
        shown="U U A U",
        words="Two.",
        calls=2,
        log="4 lines: U U A",
        endings=("line 2 is refused",),
    ),
)
TORN_SKIPPED = wrong(
    TORN,
    "torn-line-skipped",
    "a torn line is skipped: the next one is glued to it, and two entries are lost.",
    designs.TORN_LINE_SKIPPED,
    replace(TORN.end, log="3 lines: U A", endings=(), broken=("the log is not the record",)),
)
TWO_BUILDS = StopScenario(
    name="stop-two-builds",
    line="One build is stopped cleanly, one hard, and the conversation goes on, on the disk too.",
    script=scripts.two_builds,
    end=End(
        records=("U A[c1] R(c1) A(aborted) U A[c2] U A U A",),
        log="10 lines: U A[c1] R(c1) A(aborted) U A[c2] U A U A",
        shown="U A[c1] R(c1) U A[c2] R(c2 interrupted) U A U A U",
        words="Answer 4.",
        calls=4,
        endings=("clean", "hard"),
    ),
)
ANYWHERE = StopScenario(
    name="stop-anywhere",
    line="A run is closed after each of its events: the record is whole, two prompts are answered.",
    script=scripts.closed_anywhere,
    end=End(
        records=(
            "U A U A",
            "U U A U A",
            "U A[c1] U A U A",
            "U A[c1] R(c1) U A U A",
            "U A[c1] R(c1) A[c2] U A U A",
            "U A[c1] R(c1) A[c2] R(c2) U A U A",
            "U A[c1] R(c1) A[c2] R(c2) A U A U A",
        ),
        log="10 lines: U A[c1] R(c1) A[c2] R(c2) A U A U A",
        shown="U A[c1] R(c1) A[c2] R(c2) A U A U A U",
        words="Here.",
        calls=70,
    ),
)
HANGING = StopScenario(
    name="stop-hanging-model",
    line="The model does not answer, and looks at the signal: a clean stop, a request abandoned.",
    script=scripts.hanging_patiently,
    end=replace(EARLY, calls=1, request="abandoned"),
)
HANGING_DEAF = StopScenario(
    name="stop-hanging-model-deaf",
    line="The same, and it never looks: a hard stop; the request may go on, and be paid for.",
    script=scripts.hanging_deafly,
    end=End(records=("U",), shown="U U", words="", request="abandoned", endings=("hard",)),
)
GRACE = StopScenario(
    name="stop-grace",
    line="A tool needs ten turns to tidy up and has fifty: its result is in the record.",
    script=partial(scripts.tidying_tool, 50),
    end=BASH.end,
)
GRACE_TOO_SHORT = StopScenario(
    name="stop-grace-too-short",
    line="It has two: a hard stop, and a call of which nobody knows what it did.",
    script=partial(scripts.tidying_tool, 2),
    end=DEAF.end,
)
POWER_CUT = StopScenario(
    name="stop-power-cut",
    line="The program ends inside a tool: that goes through guard and loop, and is no failure.",
    script=scripts.power_cut,
    end=replace(CUT_OFF, endings=("PowerCut went through",)),
)

PAIRS: dict[str, tuple[StopScenario, StopScenario]] = {
    "F2-01": (PLAIN_LOOP, SLOW_BUILD),
    "F2-02": (FLAG_ONLY, DEAF),
    "F2-03": (SWALLOWED_BY_TOOL, CANCELLED),
    "F2-04": (SWALLOWED_BY_GUARD, CANCELLED_GUARDED),
    "F2-05": (TOKEN_TOO_LATE, BEFORE),
    "F2-06": (UNANSWERED_CALLS, BATCH),
    "F2-07": (FAIL_OPEN, FAIL_CLOSED),
    "F2-08": (CUT_BETWEEN, BOUNDED),
    "F2-09": (TOKEN_KEPT, THEN_AGAIN),
    "F2-10": (ORPHAN_PROCESS, BASH_HARD),
    "F2-11": (EATS_ITS_OWN, STOPPER),
    "F2-12": (EXIT_ZERO, EXIT_ONE),
    "F2-13": (CUT_ON_RESULT, COMPACTION),
    "F2-14": (TORN_SKIPPED, TORN),
}
"""By failure variant: the wrong design that shows it, and ours with the same script."""


def _told() -> Iterator[StopScenario]:
    yield from (TWO_BUILDS, ANYWHERE, BASH, GRACE, GRACE_TOO_SHORT)
    yield from (HANGING, HANGING_DEAF, GUARDED, POWER_CUT)
    for wrong_one, right in PAIRS.values():
        yield from (right, wrong_one)


STOPS = tuple(_told())
STOPS_BY_NAME = {scenario.name: scenario for scenario in STOPS}
