"""The arguments of one tool: their JSON Schema for the model, and the check that values fit.

Numbers that differ only in form are one number: 1, 1.0 and 1e0 are stored as the same int, also for
an `int` parameter; 1.5 is refused there. A `Decimal` is an amount: see `landed.tools.amounts`.

Pydantic does the work and is loaded when the first schema or check is needed: a program that only
registers its tools does not pay for it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, cast

from landed.core.canonical import MAX_BYTES, MAX_DEPTH, Json, checked
from landed.core.errors import ContractError, ProposalError
from landed.tools.amounts import in_one_form, inexact, schemas

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

Fields = Mapping[str, tuple[object, object]]
"""Per argument its type and its default; `...` where it must be given."""

PROBLEMS_SHOWN = 5


class Arguments:
    """What a tool takes. `fields` is asked when first needed; `own` is what the runtime fills.

    A name in `own` (the key's parameter, the epoch's) is in no schema, and a model that sends one
    all the same is refused: a key that the caller makes up protects nobody.
    """

    def __init__(
        self,
        tool: str,
        fields: Callable[[], Fields],
        *,
        own: Set[str] = frozenset(),
        description: str = "",
    ) -> None:
        self._tool = tool
        self._fields = fields
        self._own = own
        self._description = description

    @cached_property
    def schema(self) -> Mapping[str, Json]:
        """The JSON Schema. Raises `ContractError` when a type has none."""
        from pydantic.errors import PydanticUserError

        try:
            made = self._model.model_json_schema(schema_generator=schemas())
            schema = cast("dict[str, Any]", checked(made))
        except (PydanticUserError, ProposalError) as error:
            raise self._unfit(error) from error
        # Titles only repeat the names, and a model pays for every word.
        schema.pop("title", None)
        for each in schema.get("properties", {}).values():
            each.pop("title", None)
        return {"description": self._description, **schema} if self._description else schema

    def check(self, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the arguments as they are stored and sent: JSON, with the defaults filled in.

        Raises `ProposalError`, in words a model can act on, when they do not fit.
        """
        for name in sorted(self._own & set(arguments)):
            raise ProposalError(
                f"{self._tool}: {name} is filled by the runtime, never by the caller; leave it out"
            )
        _require_flat(self._tool, arguments)
        try:
            read = self._model.model_validate(arguments)
        except ValueError as error:  # Pydantic's ValidationError, but for the cost of importing it.
            problems = _problems(cast("ValidationError", error))
            raise ProposalError(f"{self._tool}: {problems}") from None
        if wrong := list(islice(inexact(arguments, read), PROBLEMS_SHOWN)):
            raise ProposalError(f"{self._tool}: {'; '.join(wrong)}")
        return self._stored(read)

    def _stored(self, read: "BaseModel") -> Mapping[str, Json]:
        stored = self._dumped(read)
        again = self._read_again(stored)
        if again != read:
            raise ContractError(
                f"{self._tool}: its arguments do not survive being stored as JSON; use types that"
                " read back as they were written"
            )
        form = cast("Mapping[str, Json]", in_one_form(stored, again))
        return form if form == stored or self._read_again(form) == read else stored

    def typed(self, stored: Mapping[str, Json]) -> dict[str, object]:
        """Return checked arguments as the Python values that the tool's own types ask for.

        Raises `ProposalError` when they no longer fit, as when the tool changed since.
        """
        read = self._read_again(stored)
        if read is None:
            raise ProposalError(f"{self._tool}: the stored arguments no longer fit its types")
        return {name: getattr(read, field) for field, name in self._names.items()}

    def _read_again(self, stored: Mapping[str, Json]) -> "BaseModel | None":
        try:
            return self._model.model_validate(stored)
        except ValueError:
            return None

    def _dumped(self, read: "BaseModel") -> Mapping[str, Json]:
        try:
            plain = read.model_dump(mode="json", by_alias=True, warnings="none")
        except ValueError as error:
            raise self._unfit(error) from error
        return cast("Mapping[str, Json]", checked(plain))

    @cached_property
    def _names(self) -> Mapping[str, str]:
        # Fields have names of their own: a parameter may be called `schema` or `_x`, a field not.
        return {f"argument_{n}": name for n, name in enumerate(self._fields())}

    @cached_property
    def _model(self) -> "type[BaseModel]":
        from pydantic import ConfigDict, Field, create_model
        from pydantic.errors import PydanticUserError

        try:
            fields = self._fields()
            described: dict[str, Any] = {
                field: (fields[name][0], Field(fields[name][1], alias=name))
                for field, name in self._names.items()
            }
            settings = ConfigDict(extra="forbid")
            return create_model(self._tool, __config__=settings, **described)
        except (NameError, TypeError, PydanticUserError) as error:
            raise self._unfit(error) from error

    def _unfit(self, error: Exception) -> ContractError:
        return ContractError(
            f"{self._tool}: the types of its arguments make no JSON Schema ({error}); annotate each"
            " with a type that JSON can carry and that can be resolved where the tool is defined"
        )


def _require_flat(tool: str, arguments: object) -> None:
    """Refuse what is nested too deep before anything walks down it."""
    level: list[object] = [arguments]
    for _ in range(MAX_DEPTH + 1):
        # One list may stand in a million places; what is cut off here is refused for its size.
        level = list(islice(chain.from_iterable(map(_inside, level)), MAX_BYTES + 1))
        if not level:
            return
        if len(level) > MAX_BYTES:
            raise ProposalError(f"{tool}: its arguments hold more than {MAX_BYTES} values")
    raise ProposalError(f"{tool}: its arguments are nested deeper than {MAX_DEPTH} levels")


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return cast("Mapping[object, object]", value).values()
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()


def _problems(error: "ValidationError") -> str:
    found = error.errors(include_url=False, include_input=False)
    lines = [
        f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {each['msg']}"
        for each in found[:PROBLEMS_SHOWN]
    ]
    if len(found) > PROBLEMS_SHOWN:
        lines.append(f"and {len(found) - PROBLEMS_SHOWN} more")
    return "; ".join(lines)
