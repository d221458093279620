"""Says what became of the last request to the model: one that was left is not one that ended.

unsent     nothing left us: there was no key, or the conversation is none that can be sent
answered   a whole reply came
failed     an error came, or a reply that can't be used: one that was cut off halfway, or no message
abandoned  nobody waits for it any more; it may go on at the provider, in a thread, and be paid for

A run that is stopped no longer waits for its answer. The request itself may have left long ago, and
goes on there: it was abandoned, and nobody cancelled it. What a failed one had made up to then may
be paid for too.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from landed.agent.loop import Model
from landed.agent.messages import AssistantMessage, Message
from landed.agent.signal import Signal
from landed.agent.tool import ToolSpec
from landed.agent.validate import reply_problems

RequestStatus = Literal["none", "unsent", "waiting", "answered", "failed", "abandoned"]

_SAID: Mapping[object, RequestStatus] = {
    "unsent": "unsent",
    "answered": "answered",
    "failed": "failed",
    "abandoned": "abandoned",
}
_BY_REASON: Mapping[str, RequestStatus] = {"error": "failed", "aborted": "abandoned"}


class WatchedModel:
    """A model, and in `status` what became of its last request.

    A model that has such a `status` itself knows it best (`landed.agent.providers`): that it waited
    in vain is an error to the conversation, and a request that was abandoned.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self.status: RequestStatus = "none"

    async def __call__(
        self,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        signal: Signal | None = None,
        /,
    ) -> AssistantMessage:
        """Ask the model, and see how it ends."""
        self.status = "waiting"
        try:
            reply = await self._model(system, messages, tools, signal)
        except Exception:
            stopped = signal is not None and signal.is_cancelled()
            self.status = "abandoned" if stopped else "failed"
            raise
        except BaseException:
            self.status = "abandoned"
            raise
        self.status = self._end_of(reply)
        return reply

    def _end_of(self, reply: AssistantMessage) -> RequestStatus:
        if reply_problems(reply):
            return "failed"
        said: object = getattr(self._model, "status", None)
        by_reason = _BY_REASON.get(reply["stop_reason"], "answered")
        return _SAID.get(said, by_reason) if isinstance(said, str) else by_reason
