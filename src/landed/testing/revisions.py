"""The scenarios of a change of mind in mid-request: one table, not two; and the wrong designs."""

import asyncio
from dataclasses import replace

from landed.testing.acting import Agent
from landed.testing.designs import (
    KEY_PER_STEP,
    KEY_PER_STEP_UNGUARDED,
    KEY_PER_TURN,
    NAIVE_CANCEL,
    NO_FENCING,
    OPERATIONS_LOST,
)
from landed.testing.scenario import Scenario
from landed.testing.wishes import (
    ANSWER_LOST,
    ANSWER_SLOW,
    AS_WELL,
    CHANGES,
    CHARGES,
    CHARGES_MORE_SOON,
    CORRECTED,
    FRIDAY,
    FRIDAY_AFTER_ALL,
    GROUP,
    INSTEAD,
    INTENTS,
    IT_IS_BOOKED,
    LATER,
    LOOKUP_ONLY,
    NO,
    NOBODY_TELLS,
    RAIN,
    RECEIPT_LATE,
    RECEIPT_LOST,
    REQUEST_SLOW,
    SAM_ONLY,
    SATURDAY,
    SATURDAY_FULL,
    SATURDAY_SECOND,
    SATURDAY_TOO,
    SENT,
    TELLS_NOTHING,
    TEXTED,
    TOLD_FRIDAY,
    TOLD_SATURDAY,
    YES,
    changed,
)
from landed.testing.worlds.restaurant import Restaurant

SOON_GIVEN_UP: dict[str, object] = {"escalate_after_s": 60.0}
FEE_RISES_S = 10.0  # after the start; by then `CHARGES_MORE_SOON` asks for more


async def saturday(agent: Agent) -> None:
    """The booking is in flight when the user says Saturday."""
    await changed(agent, SATURDAY)


async def saturday_before_it_arrives(agent: Agent) -> None:
    """The request for Friday is still on its way when the user says Saturday."""
    await changed(agent, SATURDAY, when=SENT)


async def saturday_after_the_text(agent: Agent) -> None:
    """The group was told of Friday, and no receipt is here yet, when the user says Saturday."""
    await changed(agent, SATURDAY, when=TEXTED)


async def saturday_and_back(agent: Agent) -> None:
    """Saturday, and Friday after all, while Saturday is in flight."""
    heard, plan = await agent.start(GROUP, delivery="d1")
    await agent.until("restaurant", "committed R1")
    second, revised = await agent.begin_change(heard.turn, SATURDAY, delivery="d2")
    await agent.until("restaurant", "committed R2")
    third = await agent.change(second.turn, FRIDAY_AFTER_ALL, delivery="d3")
    await asyncio.gather(plan, revised)
    await agent.answer(third)


async def later(agent: Agent) -> None:
    """The same day, an hour later."""
    await changed(agent, LATER)


async def sam_only(agent: Agent) -> None:
    """The table stays; somebody else is told."""
    await changed(agent, SAM_ONLY)


async def saturday_too(agent: Agent) -> None:
    """Words that the model cannot read for sure: it asks."""
    await changed(agent, SATURDAY_TOO)


async def saturday_instead(agent: Agent) -> None:
    """The same, and the user answers that it is Saturday instead."""
    await _answered(agent, INSTEAD)


async def saturday_as_well(agent: Agent) -> None:
    """The same, and the user answers that it is Saturday as well."""
    await _answered(agent, AS_WELL)


async def _answered(agent: Agent, text: str) -> None:
    heard, plan = await agent.start(GROUP, delivery="d1")
    await agent.until("restaurant", "committed")
    await agent.change(heard.turn, SATURDAY_TOO, delivery="d2")
    await plan
    await agent.answer(await agent.change(heard.turn, text, delivery="d3"))


async def saturday_yes(agent: Agent) -> None:
    """Saturday, and a yes to the question that comes of it."""
    await changed(agent, SATURDAY)
    await agent.answer(await agent.say(YES, delivery="d3"))


async def saturday_no(agent: Agent) -> None:
    """Saturday, and a no to the question that comes of it."""
    await changed(agent, SATURDAY)
    await agent.answer(await agent.say(NO, delivery="d3"))


async def saturday_yes_late(agent: Agent) -> None:
    """Saturday, and a yes that comes when the price has changed."""
    await changed(agent, SATURDAY)
    await asyncio.sleep(max(0.0, FEE_RISES_S - agent.timeline.now()))
    await agent.answer(await agent.say(YES, delivery="d3"))


async def saturday_then_a_confirmation(agent: Agent) -> None:
    """Nobody can tell about Friday; then its confirmation arrives, and the user hands it in."""
    turn = await changed(agent, SATURDAY, rests=NOBODY_TELLS)
    await agent.change(turn, IT_IS_BOOKED, delivery="d3")
    await agent.answer(await agent.say(YES, delivery="d4"))


async def saturday_unknowable(agent: Agent) -> None:
    """Saturday is booked, and nobody can tell about Friday."""
    await changed(agent, SATURDAY, rests=NOBODY_TELLS)


async def rain(agent: Agent) -> None:
    """Not the user but the weather changes the plan."""
    await changed(agent, RAIN, origin="weather")


async def group(agent: Agent) -> None:
    """The user asks once, for a table and a text."""
    heard, plan = await agent.start(GROUP, delivery="d1")
    await plan
    await agent.answer(heard)


IN_FLIGHT = Scenario(
    name="revise-in-flight",
    line="'Actually, Saturday' while Friday's request is in flight: found out, replaced, one table.",
    script=saturday,
    intents=INTENTS,
    changes=CHANGES,
    faults=ANSWER_SLOW,
    holds=(SATURDAY_SECOND,),
    texts=(TOLD_SATURDAY,),
    says=("Booked R2 (Sat 19:00 for 4)", "Cancelled R1 (Fri 19:00)", "Texted group"),
)
DELAYED = replace(
    IN_FLIGHT,
    name="revise-delayed",
    line="The same while Friday's request is still on its way: its key is closed, it comes too late.",
    script=saturday_before_it_arrives,
    faults=REQUEST_SLOW,
    holds=("R1 Sat 19:00 x4",),
    says=("Booked R1 (Sat 19:00 for 4)", "Texted group"),
)
AFTER_TEXT = replace(
    IN_FLIGHT,
    name="revise-after-text",
    line="The group was told of Friday already: the receipt is waited for, and a correction sent.",
    script=saturday_after_the_text,
    faults=(),
    text_faults=RECEIPT_LATE,
    texts=(TOLD_FRIDAY, CORRECTED),
    says=(
        "The earlier text had already gone out",
        "Booked R2 (Sat 19:00 for 4)",
        "Cancelled R1 (Fri 19:00)",
        "Change of plan",
    ),
)
FEE = replace(
    IN_FLIGHT,
    name="fee-consent",
    line="Cancelling Friday costs 20: asked, agreed to, and done at exactly that price.",
    script=saturday_yes,
    restaurant=CHARGES,
    says=("Cancelled R1 (Fri 19:00)",),
)
UNKNOWABLE = replace(
    IN_FLIGHT,
    name="revise-no-lookup",
    line="Nobody can tell about Friday: Saturday is booked, and the doubt is told as a doubt.",
    script=saturday_unknowable,
    restaurant=TELLS_NOTHING,
    faults=ANSWER_LOST,
    promises={"while_unknown": "replace", **SOON_GIVEN_UP},
    holds=(FRIDAY, SATURDAY_SECOND),
    reconciled=False,
    says=("I may have booked Fri 19:00", "I can't check", "Booked R2 (Sat 19:00 for 4)"),
)
COARSE = replace(
    IN_FLIGHT,
    name="key-reuse-strict",
    line="WRONG: a key for each step; the restaurant compares, refuses Saturday, and we ask.",
    restaurant=LOOKUP_ONLY,
    design=KEY_PER_STEP,
    holds=(FRIDAY,),
    texts=(),
    says=("No table was booked for Sat 19:00", "You still hold R1"),
)
FULL = replace(
    IN_FLIGHT,
    name="replacement-full",
    line="Saturday is full: Friday is kept, and the user is asked about it.",
    restaurant=SATURDAY_FULL,
    holds=(FRIDAY,),
    texts=(),
    says=("No table was booked for Sat 19:00", "Sat is full", "You still hold R1"),
)
UNSURE = replace(
    IN_FLIGHT,
    name="revise-unsure",
    line="'Saturday too?': nothing is interrupted, Friday is booked, and the user is asked.",
    script=saturday_too,
    faults=(),
    holds=(FRIDAY,),
    texts=(TOLD_FRIDAY,),
    says=("Do you mean Saturday instead of Friday, or as well?",),
)

SCENARIOS: tuple[Scenario, ...] = (
    replace(
        IN_FLIGHT,
        name="no-lookup",
        line="The reply is lost and nothing can be asked: told as a doubt, and in front of a person.",
        script=group,
        restaurant=Restaurant(can_look_up=False, can_close=False),
        faults=ANSWER_LOST,
        promises=SOON_GIVEN_UP,
        holds=(FRIDAY,),
        texts=(),
        reconciled=False,
        says=("I may have booked Fri 19:00", "Not done before that is known: text_group"),
    ),
    replace(
        IN_FLIGHT,
        name="crash-ops-lost",
        line="WRONG: killed with the booking out, and the store lost its operations: two tables.",
        script=group,
        faults=(),
        design=OPERATIONS_LOST,
        kill=("after:send:reserve_table",),
        holds=(FRIDAY, "R2 Fri 19:00 x4"),
        texts=(TOLD_FRIDAY,),
        reconciled=False,
        says=("Booked R2",),
    ),
    IN_FLIGHT,
    replace(
        IN_FLIGHT,
        name="revise-in-flight-naive",
        line="WRONG: a stopped wait is taken for a cancellation: two tables, and one is mentioned.",
        design=NAIVE_CANCEL,
        holds=(FRIDAY, SATURDAY_SECOND),
        reconciled=False,
        says=("Booked R2 (Sat 19:00 for 4)",),
    ),
    DELAYED,
    replace(
        DELAYED,
        name="revise-delayed-lookup-only",
        line="WRONG: the same, but 'not found' is taken for a no: Friday lands after all, untold.",
        restaurant=LOOKUP_ONLY,
        design=NO_FENCING,
        holds=("R1 Sat 19:00 x4", "R2 Fri 19:00 x4"),
        reconciled=False,
    ),
    replace(
        IN_FLIGHT,
        name="revise-time",
        line="'Actually, make it 20:00': one detail makes it another table; the old one is released.",
        script=later,
        holds=("R2 Fri 20:00 x4",),
        texts=("M1 group: table for 4, Fri 20:00",),
        says=("Booked R2 (Fri 20:00 for 4)", "Cancelled R1 (Fri 19:00)"),
    ),
    replace(
        IN_FLIGHT,
        name="revise-keep",
        line="'Just tell Sam': the table is kept and not asked for again; only Sam is told.",
        script=sam_only,
        faults=(),
        holds=(FRIDAY,),
        texts=("M1 Sam: table for 4, Fri 19:00",),
        says=("R1 (Fri 19:00 for 4) stays as it is", "Texted Sam"),
    ),
    UNSURE,
    replace(
        UNSURE,
        name="revise-unsure-instead",
        line="The same, and the answer is 'instead': Saturday, and a correction to the group.",
        script=saturday_instead,
        holds=(SATURDAY_SECOND,),
        texts=(TOLD_FRIDAY, CORRECTED),
        says=("Booked R2 (Sat 19:00 for 4)", "Cancelled R1 (Fri 19:00)"),
    ),
    replace(
        UNSURE,
        name="revise-unsure-as-well",
        line="The same, and the answer is 'as well': both tables, Friday's kept as it is.",
        script=saturday_as_well,
        holds=(FRIDAY, SATURDAY_SECOND),
        says=("R1 (Fri 19:00 for 4) stays as it is", "Booked R2 (Sat 19:00 for 4)"),
    ),
    replace(
        IN_FLIGHT,
        name="revise-back",
        line="Saturday, then Friday after all: Friday was never let go of, Saturday is released.",
        script=saturday_and_back,
        holds=(FRIDAY,),
        texts=(TOLD_FRIDAY,),
        says=("R1 (Fri 19:00 for 4) stays as it is", "Cancelled R2 (Sat 19:00)"),
    ),
    AFTER_TEXT,
    replace(
        AFTER_TEXT,
        name="revise-text-unconfirmed",
        line="The same, but no receipt comes: treated as sent, said so, and corrected.",
        text_faults=RECEIPT_LOST,
        reconciled=False,
        says=("I couldn't confirm it, so I've treated it as sent", "Change of plan"),
    ),
    replace(
        AFTER_TEXT,
        name="revise-after-text-naive",
        line="WRONG: the text is taken for cancelled: the group gets two texts and no correction.",
        design=NAIVE_CANCEL,
        texts=(TOLD_FRIDAY, "M2 group: table for 4, Sat 19:00"),
        reconciled=False,
        says=("Booked R2",),
    ),
    UNKNOWABLE,
    replace(
        COARSE,
        name="key-reuse-lenient",
        line="WRONG: a key for each step; Saturday's request is answered with Friday's table.",
        restaurant=Restaurant(can_close=False),
        design=KEY_PER_STEP_UNGUARDED,
        holds=(),
        texts=(TOLD_SATURDAY,),
        says=("Cancelled R1",),
        reconciled=False,
    ),
    COARSE,
    replace(
        IN_FLIGHT,
        name="key-too-fine",
        line="WRONG: a key for each turn of a process; after a restart the table is booked twice.",
        script=group,
        faults=(),
        design=KEY_PER_TURN,
        kill=("after:send:reserve_table",),
        holds=(FRIDAY, "R2 Fri 19:00 x4"),
        texts=(TOLD_FRIDAY,),
        reconciled=False,
        says=("Booked R2",),
    ),
    FULL,
    replace(
        FULL,
        name="replacement-full-release-first",
        line="WRONG here: Friday is released first, and Saturday is full: the user has nothing.",
        promises={"order": "release_first", "order_why": "two tables would cost two deposits"},
        holds=(),
        says=("No table was booked for Sat 19:00", "Cancelled R1"),
    ),
    FEE,
    replace(
        FEE,
        name="fee-changed",
        line="The fee rises between the question and the yes: refused at 20, asked again at 30.",
        script=saturday_yes_late,
        restaurant=CHARGES_MORE_SOON,
        holds=(FRIDAY, SATURDAY_SECOND),
        says=("costs 30.00",),
    ),
    replace(
        FEE,
        name="fee-declined",
        line="A no to the fee: both tables stay, and the user is told so.",
        script=saturday_no,
        holds=(FRIDAY, SATURDAY_SECOND),
        says=("R1 (Fri 19:00 for 4) stays", "R2 (Sat 19:00 for 4)"),
    ),
    replace(
        UNKNOWABLE,
        name="late-confirmation",
        line="Nobody could tell about Friday; its confirmation is handed in, and Friday is released.",
        script=saturday_then_a_confirmation,
        holds=(SATURDAY_SECOND,),
        reconciled=True,
        says=("Cancelled R1 (Fri 19:00)",),
    ),
    replace(
        IN_FLIGHT,
        name="revise-crash-after-commit",
        line="Killed after Saturday was booked and before the agent heard: one table.",
        kill=("after:send:reserve_table",),
    ),
    replace(
        IN_FLIGHT,
        name="revise-crash-before-release",
        line="Killed with Saturday booked and Friday not released yet: released once, after restart.",
        kill=("before:send:cancel_reservation",),
    ),
    replace(
        IN_FLIGHT,
        name="revise-ops-lost",
        line="WRONG: killed there, and the store lost its operations: three tables.",
        design=OPERATIONS_LOST,
        kill=("after:send:reserve_table",),
        holds=(FRIDAY, SATURDAY_SECOND, "R3 Sat 19:00 x4"),
        reconciled=False,
        says=("Booked R3",),
    ),
    replace(
        IN_FLIGHT,
        name="acknowledged-input",
        line="Killed between taking 'Saturday' down and acting on it: acted on once, after restart.",
        kill=("after:opened#2",),
    ),
    replace(
        IN_FLIGHT,
        name="turn-without-the-user",
        line="The forecast moves the table to Saturday: nobody asked, so Friday needs the user's yes.",
        script=rain,
        holds=(FRIDAY, SATURDAY_SECOND),
        says=("Booked R2 (Sat 19:00 for 4)", "is final. Shall I?"),
    ),
)
