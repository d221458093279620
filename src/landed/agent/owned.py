"""Makes an agent's own tool an operation: recorded before it runs, told as it was afterwards.

A command changes the world as a booking does, and dies halfway more often. Registered with
`landed.open(tools=[bash_operation(shell)])` it goes through the runtime like every other effect:
its record comes first, a person is asked where its risk says so, a stop reaches it and says that it
may have run in part, and a process that died under it leaves a question and no second run.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Unpack, cast

from landed.agent.bash import PARTLY, Shell, bash_tool
from landed.agent.guard import BlockedError, allow_only
from landed.agent.signal import Signal, StoppedError, cancelled
from landed.agent.tool import AgentTool, Telling, bounded
from landed.core.canonical import Json
from landed.core.contract import Contract, Effect, check
from landed.core.declared import from_values
from landed.core.errors import ContractError
from landed.core.outcome import (
    Acknowledged,
    Listed,
    LookOutcome,
    NoAnswer,
    Prepared,
    Refused,
    SendOutcome,
)
from landed.core.preview import SUMMARY_MAX, Preview, Previewing
from landed.core.tool import Call
from landed.tools.arguments import Arguments, Fields
from landed.tools.classify import Classifier, described, nothing_proven, of_error
from landed.tools.files import FileTool, RestoreTool
from landed.tools.foresight import Foresight, foresight
from landed.tools.promises import Promises

BASH_S = 600.0
"""How long a command may run, in seconds, unless said; it is killed then."""


class OwnedTool:
    """A tool of an agent with a contract: a `landed.core.tool.Tool`. Made by `as_tool`.

    Nobody can be asked afterwards whether a call of it landed, so what is in doubt goes to a
    person, and is never run again by itself.
    """

    interruptible = True
    each_is_its_own = True

    def __init__(
        self,
        tool: AgentTool,
        *,
        contract: Contract,
        foresight: Foresight,
        raises: Classifier,
        ends_when_cut: bool,
    ) -> None:
        self.name = tool.name
        self.contract = contract
        self.foresight = foresight
        self._tool = tool
        self._raises = raises
        self._ends_when_cut = ends_when_cut
        fields = _fields(tool)
        self._arguments = Arguments(tool.name, lambda: fields)

    @property
    def schema(self) -> Mapping[str, Json]:
        """The JSON Schema of its arguments, as the agent's tool describes them."""
        parameters = cast("Mapping[str, Json]", self._tool.parameters)
        return {"description": self._tool.description, **parameters}

    def check(self, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the arguments as they will be stored; `ProposalError` when they do not fit."""
        checked = self._arguments.check(arguments)
        return {name: value for name, value in checked.items() if name in arguments}

    async def prepare(self, call: Call) -> Prepared | NoAnswer:
        """Say that there is nothing to prepare."""
        return NoAnswer(reason=f"{self.name} has nothing to prepare")

    async def send(self, call: Call) -> SendOutcome:
        """Run the tool, once; what was stopped midway may have run in part, and is said to."""
        heard = None if call.stop is None else _Heard(call.stop)
        if heard is not None and heard.is_cancelled():
            return Refused(reason="it was stopped before it began")
        try:
            output = _text(await self._tool.execute(call.arguments, heard))
        except StoppedError:
            return Acknowledged(result={"output": PARTLY}, complete=False)
        except BlockedError as error:
            return Refused(reason=described(error))
        except BaseException as error:
            return self._raised(error)
        complete = heard is None or not heard.seen
        return Acknowledged(result={"output": output}, complete=complete)

    async def list_effects(self, since: float) -> Listed | NoAnswer:
        """Say that there is no list."""
        return NoAnswer(reason=f"{self.name} has no list of effects")

    async def lookup(self, call: Call) -> LookOutcome:
        """Say that nobody can tell."""
        return NoAnswer(reason=f"{self.name} has no lookup")

    async def close(self, call: Call) -> LookOutcome:
        """Say the same."""
        return NoAnswer(reason=f"{self.name} has no close")

    async def read_back(self, call: Call, result: Json) -> LookOutcome:
        """Say that its result is what it came back with."""
        return NoAnswer(reason=f"{self.name} has no read_back")

    def _raised(self, error: BaseException) -> SendOutcome:
        """Return what is known after an exception; one that is nobody's answer goes on."""
        if isinstance(error, Exception):
            return of_error(error, self.contract, self._raises)
        if isinstance(error, asyncio.CancelledError) and self._ends_when_cut:
            # Whoever cancels wants it to be over, and it is: nothing of it can still land.
            return Acknowledged(result={"output": PARTLY}, complete=False)
        raise error


def as_tool(
    tool: AgentTool,
    *,
    effect: Effect | Literal["none", "reversible", "irreversible"],
    raises: Classifier = nothing_proven,
    ends_when_cut: bool = False,
    **promises: Unpack[Promises],
) -> OwnedTool:
    """Return an agent's own tool with a contract, to be registered with `landed.open(tools=[…])`.

    Its result is `{"output": text}`. It takes the stop token (`stops_midway`, unless promised
    otherwise), and if it ended because of it, the effect is *ended early*. A check at its door
    (`landed.agent.guard`) refuses. What any other exception proves is for `raises` to say: by
    default nothing, for a tool may have done half of its work before it failed.
    `value_errors_refuse` believes a tool that looks at everything before it begins.

    `ends_when_cut` promises that a cancelled `execute` leaves nothing behind that goes on: then a
    deadline or a hard stop has ended it early, and nobody is in doubt. Raises `ContractError` for
    promises that contradict each other, or that no such tool can hold (a key, an epoch).
    """
    said = {**_DEFAULTS, **promises, "effect": effect}
    if impossible := sorted({"keyed", "fence"} & promises.keys()):
        raise ContractError(
            f"contract of {tool.name}: {impossible[0]} names a parameter that the runtime fills,"
            " but an agent's tool has none; write it as a function with @landed.tool"
        )
    seen, plain = foresight(tool.name, said)
    return OwnedTool(
        tool,
        contract=check(from_values(plain, tool=tool.name), tool=tool.name),
        foresight=seen,
        raises=raises,
        ends_when_cut=ends_when_cut,
    )


def value_errors_refuse(error: Exception, contract: Contract) -> SendOutcome:
    """Take a `ValueError` for a no before anything was done; all else proves nothing."""
    if isinstance(error, ValueError):
        return Refused(reason=described(error))
    return nothing_proven(error, contract)


def bash_operation(
    shell: Shell, *, allow: tuple[str, ...] = (), **promises: Unpack[Promises]
) -> OwnedTool:
    """Return `bash` as an operation: irreversible, without a key, stopped midway with all it began.

    A command of one plain program in `allow` runs at once; for any other a person is asked, who is
    shown the whole of it, and their yes runs that and nothing else. A code other than 0 is a result
    like any other. After `deadline_s` (600 by default) it is killed, as by a stop: it may have run
    in part. A process that dies under a command leaves it in doubt, for a person to look.

    Equal commands of one conversation wait for each other: after one whose outcome is unknown, the
    same is not run until somebody has said how that was.
    """
    allowed = allow_only(*allow)

    def risk(arguments: Mapping[str, Json], origin: str) -> Literal["safe", "confirm"]:
        return "safe" if allowed("bash", arguments) is None else "confirm"

    def preview(asked: Previewing) -> Preview:
        line = str(asked.arguments["command"]).replace("\n", " ⏎ ")
        summary = _RUNS.get(asked.language, _RUNS["en"]).format(command=line)
        if len(summary) > SUMMARY_MAX and risk(asked.arguments, asked.origin) == "confirm":
            return Preview(summary="", questions=(TOO_LONG,))
        return Preview(summary=summary[:SUMMARY_MAX])

    given: Promises = {**_BASH, "risk": risk, "preview": preview, **promises}
    return as_tool(bash_tool(shell), effect="irreversible", ends_when_cut=True, **given)


class _Writing(FileTool):
    """A `FileTool` of which each call is meant for itself: one, another, and the first again."""

    each_is_its_own = True


def write_operation(root: str | Path, **promises: Unpack[Promises]) -> tuple[FileTool, RestoreTool]:
    """Return `write` as an operation over the files in `root`, and the tool that takes one back.

    Register both. A file is written whole or not at all, it can be told afterwards which, and what
    it held before is kept: see `landed.tools.files.FileTool`.
    """
    write = _Writing(name="write", root=root, description=WRITES, **promises)
    return write, write.restoring()


WRITES = "Write a whole file: it is made, or replaced. Its folder must be there."

# Nobody can agree to what they can't see.
TOO_LONG = (
    f"the command has more than {SUMMARY_MAX} characters, too many to be shown to a person as a"
    " whole; put it into a file and run that, or do it in parts"
)

_RUNS = {"en": "run: {command}", "es": "ejecutar: {command}"}
_DEFAULTS: Promises = {"stops_midway": True, "on_interrupt": "stop_and_resolve"}
_BASH: Promises = {
    "deadline_s": BASH_S,
    "when_unknown": "escalate",
    "says": {"en": {"confirmed": "ran {command}"}, "es": {"confirmed": "se ejecutó {command}"}},
}


class _Heard:
    """A stop token as a signal of the agent's, that keeps in mind whether the tool heard of it."""

    def __init__(self, stop: Signal) -> None:
        self.seen = False
        self._stop = stop

    def is_cancelled(self) -> bool:
        self.seen |= (asked := self._stop.is_cancelled())
        return asked

    async def wait(self) -> None:
        await cancelled(self._stop)
        self.seen = True


def _text(output: str | Telling) -> str:
    return bounded(output.text if isinstance(output, Telling) else output)


_KINDS: Mapping[object, object] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list[Any],
    "object": dict[str, Any],
}


def _fields(tool: AgentTool) -> Fields:
    """Read what a schema asks of each argument: that it is there, and of its kind."""
    properties: Mapping[str, Mapping[str, object]] = tool.parameters.get("properties", {})
    required = tool.parameters.get("required", ())
    kinds = {
        name: _KINDS.get(kind, Any) if isinstance(kind := each.get("type"), str) else Any
        for name, each in properties.items()
    }
    return {
        name: (kind, ...) if name in required else (kind | None, None)  # type: ignore[operator]
        for name, kind in kinds.items()
    }
