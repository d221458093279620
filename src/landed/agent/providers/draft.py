"""Puts one reply together from the fragments it arrives in, and says whether it may be acted on.

A reply may be acted on when its protocol said that it is over, for a reason that leaves it whole,
and every call in it has a name and one JSON object for arguments. Any other reply keeps its
text and loses its calls: what was cut off is never carried out, not even when it happens to parse.
"""

import itertools
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field

from landed.agent.messages import AssistantMessage, Block, StopReason, ThinkingBlock, ToolCall
from landed.core.canonical import Json, parse
from landed.core.errors import ProposalError

Listener = Callable[[Mapping[str, object]], None]
"""Hears each piece of a reply as it comes."""

THINKING_MAX_CHARS = 4 * 1024 * 1024
"""Characters of thinking that are kept of one reply; of one that thought more, nothing is kept."""

FILTERED = "the provider's filter stopped the reply"

_EMPTY: Mapping[str, Json] = {}

Place = tuple[int, int]
"""Where a block stands in the reply, whatever order the fragments come in."""


class ReplyError(Exception):
    """A reply that can't be acted on; the text says what is wrong with it."""


@dataclass(slots=True, kw_only=True)
class _Call:
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])
    closed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """Who made a reply: thinking goes back to this model over this dialect, and to no other."""

    provider: str = ""
    model: str = ""


@dataclass(slots=True, kw_only=True)
class _Thought:
    pieces: list[str] = field(default_factory=list[str])
    payload: dict[str, Json] = field(default_factory=dict[str, Json])
    closed: bool = False


@dataclass(slots=True, kw_only=True)
class Usage:
    """Tokens, as the provider counts them; 0 where it did not say."""

    input_tokens: int = 0
    output_tokens: int = 0


class Draft:
    """One reply, as far as it has come.

    `over` is True once the protocol said that nothing follows; `reason` is then ours for why the
    model stopped (None where it did not say), `failure` what to say where the reply is none.
    `listener` hears each piece as it comes (`text_delta`, `call_delta`): something to show, nothing
    to act on.
    """

    def __init__(
        self, listener: Listener = lambda delta: None, *, maker: Maker | None = None
    ) -> None:
        self._listener = listener
        self._maker = maker or Maker()
        self._thoughts: dict[Place, _Thought] = {}
        self._texts: dict[Place, list[str]] = {}
        self._calls: dict[Place, _Call] = {}
        self.usage = Usage()
        self.over = False
        self.reason: StopReason | None = None
        self.failure = ""

    @property
    def begun(self) -> bool:
        """True once the model has said anything; what it thinks is not said."""
        return bool(self._texts or self._calls)

    def say(self, place: Place, piece: str) -> None:
        """Add a piece of text."""
        if piece:
            self._texts.setdefault(place, []).append(piece)
            self._listener({"type": "text_delta", "text": piece})

    def call(self, place: Place, *, call_id: str = "", name: str = "", piece: str = "") -> None:
        """Add what is known of a call. Raises `ReplyError` where it contradicts what was known."""
        call = self._calls.setdefault(place, _Call())
        for word, known, given in (("id", call.id, call_id), ("name", call.name, name)):
            if known and given and known != given:
                raise ReplyError(f"a call changed its {word} on the way")
        call.id, call.name = call.id or call_id, call.name or name
        self.add(place, piece)

    def add(self, place: Place, piece: str) -> None:
        """Add to the arguments of a call, if there is one at this place."""
        if piece and place in self._calls:
            call = self._calls[place]
            call.pieces.append(piece)
            self._listener({"type": "call_delta", "id": call.id, "name": call.name, "piece": piece})

    def think(
        self,
        place: Place,
        piece: str = "",
        *,
        signature: str = "",
        payload: Mapping[str, Json] = _EMPTY,
    ) -> None:
        """Add to a thought: to its text, to its signature, to what else goes back with it."""
        thought = self._thoughts.setdefault(place, _Thought())
        thought.payload |= payload
        if piece:
            thought.pieces.append(piece)
        if signature:
            thought.payload["signature"] = f"{thought.payload.get('signature') or ''}{signature}"

    def place_of(self, call_id: str) -> Place:
        """Return where the call with this id stands: a place of its own for a new id.

        For servers that don't number their calls; without an id it is the last call's place.
        """
        places = sorted(self._calls)
        if not call_id and places:
            return places[-1]
        known = (place for place in places if self._calls[place].id == call_id)
        return next(known, (len(places), 0))

    def close(self, place: Place, arguments: str | None = None) -> None:
        """Note that a call or a thought is complete.

        `arguments` are all of the call's, where the protocol repeats them. Raises `ReplyError`
        where they are not what the fragments say.
        """
        if place in self._thoughts:
            self._thoughts[place].closed = True
        call = self._calls.get(place)
        if call is None:
            return
        call.closed = True
        if arguments is None:
            return
        if call.pieces and "".join(call.pieces) != arguments:
            raise ReplyError(f"the arguments of {call.name} arrived in two versions")
        call.pieces = [arguments]

    def close_all(self) -> None:
        """Note that every call is complete, where the protocol says so for the whole reply."""
        for call in self._calls.values():
            call.closed = True

    def stop(self, reason: str, known: Mapping[str, StopReason]) -> None:
        """Note why the model stopped, in the provider's word; one that is not `known` fails it."""
        self.reason = known.get(reason)
        if self.reason is None:
            self.failure = f"the model stopped for a reason that is not known here: {reason}"

    def refuse(self, failure: str) -> None:
        """Note that the model refused: what it said before is not kept either."""
        self.failure = failure
        self._texts.clear()
        self._calls.clear()

    def finished(self, taken: Container[str] = ()) -> AssistantMessage:
        """Return the whole reply. Raises `ReplyError` where it can't be acted on.

        `taken` are the ids of calls before it. Some servers count their calls anew in each reply,
        or give no id: such a call gets one that is its own.
        """
        if self.failure:
            raise ReplyError(self.failure)
        if not self.over:
            raise ReplyError("the reply was cut off before its end")
        if self.reason == "length" and self._calls:
            raise ReplyError("the reply reached its length limit within a call")
        ids = [call.id for call in self._calls.values() if call.id]
        if len(set(ids)) < len(ids):
            # The same call delivered twice looks like this, and would be made twice.
            raise ReplyError("two calls of the reply have one id")
        calls = {place: _block(call) for place, call in sorted(self._calls.items())}
        used: set[str] = set()
        for call in calls.values():
            call["id"] = _own(call["id"], lambda id: id in taken or id in used)
            used.add(call["id"])
        if not self._content(calls):
            raise ReplyError("the reply was empty")
        if self.reason is None:
            raise ReplyError("the reply does not say why it ended")
        reason: StopReason = "toolUse" if calls else self.reason
        content = self._content({**self._kept(), **calls})
        return {"role": "assistant", "content": content, "stop_reason": reason}

    def broken(self, text: str, stop_reason: StopReason) -> AssistantMessage:
        """Return what is left of a reply that can't be acted on: its text, and why."""
        return {
            "role": "assistant",
            "content": self._content({}),
            "stop_reason": stop_reason,
            "error_message": text,
        }

    def _kept(self) -> dict[Place, ThinkingBlock]:
        """Return the thoughts as they go back: all of them or none, for parts are refused."""
        whole = {place: _thinking(one, self._maker) for place, one in self._thoughts.items()}
        size = sum(len(one["text"]) + len(str(one["opaque"]["payload"])) for one in whole.values())
        closed = all(one.closed for one in self._thoughts.values())
        return whole if closed and size <= THINKING_MAX_CHARS else {}

    def _content(self, others: Mapping[Place, ToolCall | ThinkingBlock]) -> list[Block]:
        blocks: dict[Place, Block] = dict(others)
        for place, pieces in self._texts.items():
            blocks[place] = {"type": "text", "text": _joined(pieces)}
        said = any(piece.strip() for pieces in self._texts.values() for piece in pieces)
        # Text of spaces alone is refused by some providers when it is sent back to them.
        return [blocks[place] for place in sorted(blocks)] if said or others else []


def _thinking(thought: _Thought, maker: Maker) -> ThinkingBlock:
    return {
        "type": "thinking",
        "text": _joined(thought.pieces),
        "opaque": {
            "provider": maker.provider,
            "model": maker.model,
            "payload": dict(thought.payload),
        },
    }


def _own(given: str, is_taken: Callable[[str], bool]) -> str:
    """Return the id, or one like it that nobody has."""
    given = given or "call"
    others = (f"{given}-{number}" for number in itertools.count(2))
    return next(one for one in itertools.chain([given], others) if not is_taken(one))


def _joined(pieces: list[str]) -> str:
    """Join the pieces; a character whose halves (surrogates) came in two of them is one again."""
    return "".join(pieces).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _block(call: _Call) -> ToolCall:
    if not call.name:
        raise ReplyError("a call of the reply has no name")
    if not call.closed:
        raise ReplyError(f"the call of {call.name} was cut off")
    text = _joined(call.pieces)
    # A tool without parameters is called with nothing at all by several servers.
    try:
        arguments = parse(text if text.strip() else "{}")
    except (ProposalError, RecursionError) as error:
        raise ReplyError(f"the arguments of {call.name} can't be read: {error}") from None
    if not isinstance(arguments, Mapping):
        raise ReplyError(f"the arguments of {call.name} are no JSON object")
    return {"type": "toolCall", "id": call.id, "name": call.name, "arguments": dict(arguments)}
