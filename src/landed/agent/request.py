"""Says what became of the last request to the model: one that was left is not one that ended.

A run that is stopped no longer waits for its answer. The request itself may have left long ago, in
a thread or at the provider, and goes on there, and is paid for: it was abandoned, and nobody
cancelled it.
"""

from collections.abc import Sequence
from typing import Literal

from landed.agent.loop import Model
from landed.agent.messages import AssistantMessage, Message
from landed.agent.signal import Signal
from landed.agent.tool import ToolSpec
from landed.agent.validate import reply_problems

RequestStatus = Literal["none", "waiting", "answered", "failed", "abandoned"]


class WatchedModel:
    """A model, and in `status` what became of its last request."""

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
        stopped = not reply_problems(reply) and reply["stop_reason"] == "aborted"
        self.status = "abandoned" if stopped else "answered"
        return reply
