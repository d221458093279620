"""What was said in an agent's conversation: durable inputs, which of them the model has heard.

The words come first and are acknowledged once they are durable; whether they stand in the record
that the model is shown is known from there. What was acknowledged and stands nowhere is not lost:
the next process hears it.
"""

from collections.abc import Iterable, Sequence

from landed.agent.journal_log import JournalLog
from landed.agent.ledger import inputs_in
from landed.agent.log_lines import Entry
from landed.agent.loop import Event
from landed.agent.messages import Message
from landed.core.changes import Kind
from landed.core.question import About, Question, QuestionState, question_from
from landed.core.session import Input, input_of
from landed.runtime.runtime import Runtime
from landed.runtime.telling import UNIT_MAX

_ANSWERS = (QuestionState.YES, QuestionState.NO)


class Hearing:
    """The inputs of one conversation; `now` is the one whose words the model acts on."""

    def __init__(self, rt: Runtime, log: JournalLog, *, principal: str) -> None:
        self.now: Input | None = None
        self._rt = rt
        self._log = log
        self._principal = principal
        self._inputs: dict[str, Input] = {}
        self._known: set[str] = set()

    async def begin(self, entries: Iterable[Entry], messages: Sequence[Message]) -> None:
        """Learn from the whole log whose words are known, and from the record whose were last."""
        self._known = inputs_in([each["message"] for each in entries if each["type"] == "message"])
        for record in await self._rt.driver.reader.load(*inputs_in(messages)):
            self._inputs[record.id] = input_of(record)
        for message in messages:
            self.follow(message)

    def follow(self, message: Message) -> None:
        """Keep in mind whose words came into the record."""
        if message["role"] == "user":
            self.now = self._inputs.get(message.get("input", ""), self.now)
            self._known |= inputs_in([message])

    def in_event(self, event: Event) -> Input | None:
        """Return the input whose words came into the record with an event, None for another."""
        message = event.get("message")
        if message is None or message["role"] != "user":
            return None
        return self._inputs.get(message.get("input", ""))

    def is_known(self, heard: Input) -> bool:
        """Whether the words of an input have come into the record."""
        return heard.id in self._known

    def by_id(self, id: str) -> Input | None:
        """Return an input of the record by its id, None for another."""
        return self._inputs.get(id)

    def of_turn(self, turn: str) -> set[str]:
        """Return the ids of the inputs of a turn."""
        return {heard.id for heard in self._inputs.values() if heard.turn == turn}

    async def received(self, text: str, *, delivery: str, origin: str) -> Input:
        """Make what somebody says durable."""
        heard = await self._rt.receive(
            text,
            session=self._log.session,
            principal=self._principal,
            tenant=self._log.tenant,
            delivery=delivery,
            origin=origin,
        )
        self._inputs[heard.id] = heard
        return heard

    async def unheard(self) -> Sequence[Input]:
        """Return the inputs that were acknowledged, never came into the record, and did nothing."""
        unacted = await self._rt.unacted(self._log.session, tenant=self._log.tenant)
        missing = [heard for heard in unacted if not self.is_known(heard)]
        self._inputs.update({heard.id: heard for heard in missing})
        return missing

    async def answered(self, heard: Input) -> Sequence[Question]:
        """Return the questions that an input answered with a strict yes or no, for code to do.

        What was meant is for the model to read, whatever the answer is.
        """
        store = self._rt.driver.store
        (words,) = await store.load(heard.id)
        # What some words answered is written in one unit with them.
        unit = await store.journal(after=words.made, limit=UNIT_MAX)
        near = await store.load(*dict.fromkeys(entry.id for entry in unit))
        asked = [question_from(record) for record in near if record.kind is Kind.QUESTION]
        by_it = [question for question in asked if question.input == heard.id]
        return [q for q in by_it if q.state in _ANSWERS and q.about is not About.UNSURE]
