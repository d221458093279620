"""The one tool that a model is shown: `act`, whose argument is a plan of ordered steps.

Its JSON Schema is made from the registered tools: one shape for each, told apart by its name. `$n`
may stand where a contract says so (`accepts`), and nowhere else. There is no field for a key, an
approval, a state or an attempt: those are the runtime's. A schema only advises a model, so what it
sends is read as if there had been none, and is refused with *all* that is wrong, in sentences that
it can act on.
"""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Protocol, cast

from landed.core.canonical import Json, canonical, checked, fingerprint, parse
from landed.core.contract import UNDECLARED, Contract
from landed.core.errors import ContractError, ProposalError
from landed.core.plan import STEPS_MAX, Wanted
from landed.core.reference import check_fields, misplaced, referred

PROBLEMS_MAX = 10
LINE_MAX_CHARS = 400
NAMES_SHOWN = 20

REFERENCE = r"^\$[1-9][0-9]*$"

# What a model might want to say about the carrying out, and may not: letters only, in lower case.
OF_THE_RUNTIME = frozenset(
    {
        *("key", "idempotencykey", "token", "plantoken", "approvaltoken", "operation", "callid"),
        *("operationid", "epoch", "attempt", "retry", "retries", "approval", "approved"),
        *("confirmed", "state", "status", "principal", "tenant"),
    }
)


class Offered(Protocol):
    """What is read of a tool here; a `landed.core.tool.Tool` is one."""

    @property
    def name(self) -> str:
        """The name the model calls it by."""
        ...

    @property
    def contract(self) -> Contract:
        """Its promises."""
        ...

    @property
    def schema(self) -> Mapping[str, Json]:
        """The JSON Schema of its arguments."""
        ...

    def check(self, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the arguments as stored, or raise `ProposalError`."""
        ...


# The schema.


def act_schema(tools: Sequence[Offered]) -> dict[str, Json]:
    """Return the JSON Schema of `act`'s argument: `{"steps": [{"tool": …, "arguments": …}]}`.

    It keeps to what providers accept: `anyOf` with `const`, no other way to choose; every object
    closed; definitions at the root under names of their own; no reference that leads back to
    itself. What else a tool's schema demands is said in a description. The same tools give the same
    bytes, in whatever order they were registered. Raises `ContractError` for a tool that can't be
    shown: its types contain themselves, or `accepts` names what takes no text.
    """
    shapes: list[Json] = []
    definitions: dict[str, Json] = {}
    for tool in sorted(tools, key=lambda one: one.name):
        _check_accepts(tool)
        shapes.append(_shape(tool, definitions))
    steps: dict[str, Json] = {
        "type": "array",
        "minItems": 1,
        "maxItems": STEPS_MAX,
        "items": {"anyOf": shapes} if shapes else {"type": "object", "additionalProperties": False},
    }
    schema = _closed({"steps": steps})
    return {**schema, "$defs": definitions} if definitions else schema


def call_schema(tool: Offered) -> dict[str, Json]:
    """Return the JSON Schema of one tool's arguments, for a model that calls it by its own name.

    In the words that providers take, as in `act_schema`; no `$n`, for there is no plan around it.
    Raises `ContractError` for a tool that can't be shown.
    """
    definitions: dict[str, Json] = {}
    _, arguments = _arguments(tool, definitions)
    return {**arguments, "$defs": definitions} if definitions else arguments


def _arguments(tool: Offered, definitions: dict[str, Json]) -> tuple[str, dict[str, Json]]:
    """Return what a tool says of itself, and the schema of its arguments; add its definitions."""
    own = cast("dict[str, Json]", checked(tool.schema))
    _require_tree(tool.name, own)
    names = {name: _unused(f"{tool.name}__{name}", definitions) for name in _table(own, "$defs")}
    definitions.update(dict.fromkeys(names.values()))
    for name, definition in _table(own, "$defs").items():
        definitions[names[name]] = _kept(definition, names)
    said = str(own.pop("description", ""))
    return said, cast("dict[str, Json]", _kept(own, names))


def _shape(tool: Offered, definitions: dict[str, Json]) -> Json:
    said, arguments = _arguments(tool, definitions)
    properties = _table(arguments, "properties")
    for name, type in tool.contract.accepts.items():
        properties[name] = _or_reference(cast("dict[str, Json]", properties[name]), type)
    shape = _closed({"tool": {"type": "string", "const": tool.name}, "arguments": arguments})
    return {"description": _described(said, tool.contract.makes_type), **shape}


def _closed(properties: dict[str, Json]) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _described(said: str, makes: str) -> str:
    made = f"Makes: {makes}. A later step refers to it as $n, where n is this step's number."
    return "\n".join(part for part in (said, made if makes else "") if part)


def _or_reference(schema: dict[str, Json], type: str) -> Json:
    said = schema.pop("description", "")
    told = f"Takes: {type}. Its id, or $n for what step n of this plan makes, n before this step."
    ways = cast("list[Json]", schema.pop("anyOf")) if "anyOf" in schema else [schema]
    return {
        "description": f"{said}\n{told}" if said else told,
        "anyOf": [*ways, {"type": "string", "pattern": REFERENCE}],
    }


def _unused(name: str, taken: Mapping[str, Json]) -> str:
    return name if name not in taken else _unused(f"{name}_", taken)


# What every provider takes; whatever else a schema says is told in words.
_KEYWORDS = frozenset(
    {
        *("type", "properties", "required", "items", "enum", "const", "anyOf", "$ref", "pattern"),
        *("description", "additionalProperties", "minimum", "maximum", "exclusiveMinimum"),
        *("exclusiveMaximum", "multipleOf", "minItems", "maxItems", "format"),
    }
)
# What a model need not be told: a title repeats the name, a discriminator what `const` says.
_UNTOLD = frozenset({"title", "discriminator", "$defs", "oneOf"})


def _kept(schema: Json, names: Mapping[str, str]) -> Json:
    """Return a schema in the words that providers take, its references led to the root."""
    if not isinstance(schema, Mapping):
        return schema
    kept: dict[str, Json] = {}
    for word, value in schema.items():
        if word in _KEYWORDS:
            kept[word] = _kept_word(word, value, names)
        elif word == "oneOf":
            kept["anyOf"] = _kept_word("anyOf", value, names)
    if "properties" in kept:
        kept["additionalProperties"] = False
    if told := _in_words(schema):
        kept["description"] = f"{kept['description']}\n{told}" if "description" in kept else told
    return kept


def _kept_word(word: str, value: Json, names: Mapping[str, str]) -> Json:
    match word, value:
        case "properties", Mapping():
            return {name: _kept(each, names) for name, each in value.items()}
        case "anyOf", list():
            return [_kept(each, names) for each in value]
        case (("items" | "additionalProperties"), Mapping()):
            return _kept(value, names)
        case "$ref", str():
            return f"#/$defs/{names[value.removeprefix('#/$defs/')]}"
        case _:
            return value


def _in_words(schema: Mapping[str, Json]) -> str:
    """Say what no keyword that is kept can: `default: 2, maxLength: 5`."""
    left = [word for word in schema if word not in _KEYWORDS and word not in _UNTOLD]
    return ", ".join(f"{word}: {canonical(schema[word]).decode()}" for word in left)


def _require_tree(tool: str, schema: Mapping[str, Json]) -> None:
    """Raise `ContractError` where a definition contains itself, or is not there."""
    below = {name: set(_references(each)) for name, each in _table(schema, "$defs").items()}
    if missing := sorted(set(_references(schema)) - set(below)):
        raise ContractError(
            f"{tool}: its schema refers to {missing[0]!r}, which is not in its $defs"
        )
    while leaves := {name for name, named in below.items() if not named}:
        below = {name: named - leaves for name, named in below.items() if name not in leaves}
    if below:
        raise ContractError(
            f"{tool}: its type {sorted(below)[0]} contains itself, which many providers refuse;"
            " give the arguments a shape of bounded depth, such as a list in which each names its"
            " parent"
        )


def _references(schema: Json) -> Iterator[str]:
    if isinstance(schema, Mapping):
        for word, value in schema.items():
            if word == "$ref" and isinstance(value, str):
                yield value.removeprefix("#/$defs/")
            else:
                yield from _references(value)
    elif isinstance(schema, list):
        for each in schema:
            yield from _references(each)


def _table(schema: Mapping[str, Json], word: str) -> dict[str, Json]:
    return cast("dict[str, Json]", schema.get(word, {}))


def _check_accepts(tool: Offered) -> None:
    properties = _table(tool.schema, "properties")
    for name in tool.contract.accepts:
        where = f"contract of {tool.name}: accepts names {name!r}"
        if name not in properties:
            raise ContractError(
                f"{where}, which is no parameter of it; its parameters are {_listed(properties)}"
            )
        parameter = cast("Mapping[str, Json]", properties[name])
        ways = cast("Sequence[Mapping[str, Json]]", parameter.get("anyOf", [parameter]))
        if not any(map(_takes_reference, ways)):
            raise ContractError(
                f"{where}, which cannot take the text $1; make it a str without a pattern, a format"
                " or a least length"
            )


_NARROWS = frozenset({"pattern", "format", "enum", "const", "minLength"})


def _takes_reference(schema: Mapping[str, Json]) -> bool:
    kinds = schema.get("type")
    text = kinds == "string" or (isinstance(kinds, list) and "string" in kinds)
    return text and not _NARROWS & set(schema)


# What a model sent.


def read_plan(given: "bytes | Json", tools: Sequence[Offered]) -> tuple[Wanted, ...]:
    """Read the argument of `act`, as text or as JSON, into calls whose arguments are checked.

    Numbers that differ only in form (1, 1.0, 1e0) are one value: JSON has one kind of number, and
    the canonical form one way to write each. So two plans that mean the same give equal calls, and
    equal fingerprints. Raises one `ProposalError` with a line for each problem, at most
    `PROBLEMS_MAX`: `step 2 (issue_invoice): draft: …`. Nothing was recorded then.
    """
    steps = _steps(given)
    by_name = {tool.name: tool for tool in tools}
    reading = [_read(number, step, by_name) for number, step in enumerate(steps, 1)]
    contracts = [
        by_name[call.tool].contract if call and call.tool in by_name else UNDECLARED
        for call, _ in reading
    ]
    problems: list[str] = []
    for number, (call, wrong) in enumerate(reading, 1):
        problems += wrong
        if call is not None:
            problems += _misreferred(number, call, contracts, known=[bool(c) for c, _ in reading])
    if problems:
        raise ProposalError("\n".join(_bounded(problems)))
    return tuple(call for call, _ in reading if call is not None)


def call_id_of(calls: Sequence[Wanted]) -> str:
    """Return the call id of a plan: the same steps for the same input are the same ask.

    It comes from what is wanted and nothing else, so that neither a model's own ids nor those of a
    transport have a part in it.
    """
    plain: list[Json] = [[call.tool, call.arguments] for call in calls]
    return f"act:{fingerprint(plain, domain='act')}"


def revision_id_of(turn: str, calls: Sequence[Wanted], drop: Sequence[str]) -> str:
    """Return the call id of a revision, in the same way: from what is wanted instead of a turn."""
    said = fingerprint([turn, call_id_of(calls), list(drop)], domain="revise")
    return f"revise:{said}"


def _steps(given: "bytes | Json") -> Sequence[Json]:
    plan = parse(given) if isinstance(given, str | bytes) else _within(given)
    if not isinstance(plan, Mapping):
        raise ProposalError('a plan is an object: {"steps": [{"tool": …, "arguments": {…}}]}')
    for name in plan:
        if name != "steps":
            raise ProposalError(not_taken(name, "a plan", "steps"))
    steps = plan.get("steps")
    if not isinstance(steps, list):
        raise ProposalError('the steps of a plan are a list: {"steps": [{"tool": …, …}]}')
    if not steps:
        raise ProposalError("a plan without a step does nothing; name what is wanted")
    _require_few(steps)
    return steps


def _within(given: Json) -> Json:
    """Check a value that was read already; a plan that is far too long, before it is walked."""
    if isinstance(given, Mapping) and isinstance(steps := given.get("steps"), list | tuple):
        _require_few(cast("Sequence[Json]", steps))
    return checked(given)


def _require_few(steps: Sequence[Json]) -> None:
    if len(steps) > STEPS_MAX:
        raise ProposalError(
            f"a plan has at most {STEPS_MAX} steps, not {len(steps)}; split it into several"
        )


_Read = tuple[Wanted | None, list[str]]


def _read(number: int, step: Json, tools: Mapping[str, Offered]) -> _Read:
    """Return the call of one step, or None where it names no tool, and what is wrong with it."""
    where = f"step {number}"
    if not isinstance(step, Mapping):
        return None, [f'{where}: a step is an object: {{"tool": …, "arguments": {{…}}}}']
    name, arguments = step.get("tool"), step.get("arguments", {})
    if isinstance(name, str) and name in tools:
        where = f"{where} ({name})"
    wrong = [
        f"{where}: {not_taken(each, 'a step', 'tool and arguments')}"
        for each in step
        if each not in ("tool", "arguments")
    ]
    tool = tools.get(name) if isinstance(name, str) else None
    if tool is None:
        return None, [*wrong, f"{where}: {_unknown(name, tools)}"]
    if not isinstance(arguments, Mapping):
        told = "arguments is no object; send the arguments themselves, by name, not as text"
        return Wanted(tool=tool.name, arguments={}), [*wrong, f"{where}: {told}"]
    taken, refused = _checked(tool, arguments)
    return Wanted(tool=tool.name, arguments=taken), wrong + [f"{where}: {one}" for one in refused]


def _checked(tool: Offered, arguments: Mapping[str, Json]) -> tuple[Mapping[str, Json], list[str]]:
    """Return the arguments as the tool takes them, or as they came and why it does not."""
    parameters = _table(tool.schema, "properties")
    filled = [name for name in arguments if name not in parameters and _is_ours(name)]
    refused = [f"{name}: {_FILLED}" for name in filled]
    rest = {name: value for name, value in arguments.items() if name not in filled}
    try:
        return tool.check(rest), refused
    except ProposalError as error:
        return rest, [*refused, str(error).removeprefix(f"{tool.name}: ")]


_FILLED = "filled by the runtime; leave it out"


def _is_ours(name: str) -> bool:
    return name.lower().replace("_", "").replace("-", "") in OF_THE_RUNTIME


def not_taken(name: str, of: str, fields: str) -> str:
    """Return why a field that a model added is not taken, and what to do about it."""
    if _is_ours(name):
        return f"{_cut(name, 40)}: {_FILLED}"
    return f"{_cut(name, 40)!r} is no field of {of}, which has {fields}"


def _unknown(name: Json, tools: Mapping[str, Offered]) -> str:
    if not isinstance(name, str):
        return f"tool is the name of a tool, one of {_listed(tools)}"
    near = get_close_matches(name[:100], tools, n=1)
    meant = f"; did you mean {near[0]!r}?" if near else ";"
    return f"there is no tool {_cut(name, 40)!r}{meant} The tools are {_listed(tools)}"


def _listed(names: Mapping[str, object]) -> str:
    every = sorted(names)
    more = [f"{len(every) - NAMES_SHOWN} more"] if len(every) > NAMES_SHOWN else []
    return ", ".join([*every[:NAMES_SHOWN], *more]) or "none"


def _misreferred(
    number: int, call: Wanted, contracts: Sequence[Contract], *, known: Sequence[bool]
) -> list[str]:
    """Say what is wrong with a step's references; those to a step without a tool can't be told."""
    accepts = contracts[number - 1].accepts
    problems = misplaced(number, call.tool, call.arguments)
    named = referred(call.arguments, accepts).values()
    if all(n > len(known) or known[n - 1] for n in named):
        try:
            check_fields(number, call.tool, call.arguments, contracts)
        except ProposalError as error:
            problems.append(str(error))
    return problems


def _bounded(problems: Sequence[str]) -> list[str]:
    shown = [_cut(each, LINE_MAX_CHARS) for each in problems[:PROBLEMS_MAX]]
    more = len(problems) - PROBLEMS_MAX
    return [*shown, f"and {more} more"] if more > 0 else shown


def _cut(text: str, at: int) -> str:
    return text if len(text) <= at else f"{text[:at]}…"
