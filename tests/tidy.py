"""The house rules that read the checkout: each rule looks at one file and says what to do.

The idea is TigerBeetle's `tidy.zig`. Ruff, the type checkers and import-linter see to what they
can see; what is left is sizes, opening sentences, words, residue, sleeps and the purity of core.
`tests/test_tidy.py` runs every rule over the checkout, and over a planted sample that breaks it.
"""

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from statistics import median

CHECKOUT = Path(__file__).parents[1]
ROOMS = ("src", "tests", "bench", "examples", "scripts", "docs", ".ci")
TEXTS = {"", ".css", ".html", ".js", ".json", ".md", ".py", ".sql", ".toml", ".txt", ".yaml"}
# These two spell out what no other file may contain.
THEMSELVES = {"tests/tidy.py", "tests/test_tidy.py"}

LINE_MAX = 100
FILE_MAX = {"src": 450, "scripts": 450, "tests": 600}
FUNCTION_MAX = {"src": 40, "scripts": 40, "tests": 60}
FUNCTION_MEDIAN_MAX = 8
PAGE_MAX = {"README.md": 150, "ARCHITECTURE.md": 300}

UNUSED_WORDS = {
    "task": "say operation, step or turn",
    "job": "say operation, step or turn",
    "manager": "name what it does",
    "handler": "name what it does",
    "context": "name the values it carries",
    "data": "name what it is",
    "info": "name what it is",
}
# Names that asyncio and the standard library force on whoever implements their interfaces.
FORCED_NAMES = {
    "call_exception_handler",
    "create_task",
    "data_received",
    "default_exception_handler",
    "get_exception_handler",
    "get_task_factory",
    "set_exception_handler",
    "set_task_factory",
}
# An event loop runs asyncio's tasks, and has no other word for them.
FORCED_WORDS = {"src/landed/testing/loop.py": {"task"}}
PHRASES = {
    r"exactly[\s-]+once": "say: takes effect once, or says that it does not know",
    r"\bguarantee\w*": "say what is promised, and on what it rests",
}
RESIDUE = {
    r"\b(?:TO-?DO|FIX-?ME|X{3})\b": "finish it, or open an issue",
    r"not[ ]implemented[ ]yet": "implement it, or leave it out",
}
PLACES = {
    r"(?:pypi|pythonhosted|npmjs|crates|yarnpkg)\.(?:org|com|io)\b": "name no package registry",
    r"--(?:extra-)?index-url": "name no package registry",
    r"(?<![\w.])/(?:work|root|farm|home|Users)/[\w.]": "name no path of one machine",
    r"\bfarm-[a-z]+": "name no tool that only one machine has",
}
IMPURE = {
    *("asyncio", "logging", "multiprocessing", "os", "pathlib", "random", "secrets", "selectors"),
    *("shutil", "signal", "socket", "sqlite3", "ssl", "subprocess", "tempfile", "threading"),
    *("time", "urllib", "uuid"),
}
CLOCK_READS = {"now", "today", "utcnow"}
SLEEPERS = {"anyio", "asyncio", "time", "trio"}
VIRTUAL = "# virtual time"


@dataclass(frozen=True)
class Source:
    """One text file of the checkout, by its path from the root."""

    path: str
    text: str

    @property
    def room(self) -> str:
        return PurePosixPath(self.path).parts[0]

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.path).suffix

    @property
    def is_core(self) -> bool:
        return self.path.startswith("src/landed/core/")

    @property
    def module(self) -> str:
        """The dotted name under which a file of `src` is imported."""
        parts = PurePosixPath(self.path).with_suffix("").parts[1:]
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text if self.suffix == ".py" else "")

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))


@dataclass(frozen=True)
class Complaint:
    """What is wrong in one place, and what to do about it."""

    path: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


Rule = Callable[[Source], Iterator[Complaint]]


def sources() -> list[Source]:
    """Read every text file that is ours: the rooms, and the pages at the root."""
    paths = [path for room in ROOMS for path in sorted((CHECKOUT / room).rglob("*"))]
    paths += sorted(CHECKOUT.glob("*"))
    return [
        Source(path=path.relative_to(CHECKOUT).as_posix(), text=path.read_text("utf-8"))
        for path in paths
        if path.is_file() and path.suffix in TEXTS and _is_ours(path)
    ]


# One file at a time.


def opens_with_a_sentence(source: Source) -> Iterator[Complaint]:
    if source.suffix != ".py" or source.room not in FILE_MAX:
        return
    docstring = ast.get_docstring(source.tree) or ""
    if not docstring.split("\n\n")[0].rstrip().endswith((".", ":", "!", "?")):
        yield Complaint(source.path, 1, "open with a docstring sentence that says what it is for")


def lines_are_short(source: Source) -> Iterator[Complaint]:
    if source.suffix not in {".py", ".sql", ".toml"}:
        return
    for number, line in enumerate(source.lines, 1):
        if len(line) > LINE_MAX:
            yield Complaint(source.path, number, f"{len(line)} characters; break at {LINE_MAX}")


def files_are_small(source: Source) -> Iterator[Complaint]:
    limit = PAGE_MAX.get(source.path) or FILE_MAX.get(source.room)
    is_list = source.suffix == ".txt"
    if limit and not is_list and len(source.lines) > limit:
        what = f"{len(source.lines)} lines of at most {limit}; split it by idea"
        yield Complaint(source.path, limit + 1, what)


def functions_are_small(source: Source) -> Iterator[Complaint]:
    limit = FUNCTION_MAX.get(source.room)
    for node in source.nodes:
        if limit and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = _last_line(node) - node.lineno + 1
            if length > limit:
                what = f"{node.name} has {length} lines of at most {limit}; split it by idea"
                yield Complaint(source.path, node.lineno, what)


def names_use_our_words(source: Source) -> Iterator[Complaint]:
    if source.room != "src" or source.suffix != ".py":
        return
    forced = FORCED_WORDS.get(source.path, set())
    for name, line in _names(source):
        for word in _words(name) - forced:
            if advice := UNUSED_WORDS.get(word):
                yield Complaint(source.path, line, f"{name}: not the word {word!r}; {advice}")
        if name.endswith("Service"):
            yield Complaint(source.path, line, f"{name}: not a service class; name what it does")


def prose_uses_our_words(source: Source) -> Iterator[Complaint]:
    return _matches(source, PHRASES)


def nothing_is_left_unfinished(source: Source) -> Iterator[Complaint]:
    yield from _matches(source, RESIDUE)
    for node in source.nodes:
        if isinstance(node, ast.Raise) and "NotImplemented" in ast.unparse(node):
            yield Complaint(source.path, node.lineno, "implement it, or leave it out")


def no_place_is_named(source: Source) -> Iterator[Complaint]:
    return _matches(source, PLACES)


def tests_do_not_sleep(source: Source) -> Iterator[Complaint]:
    if source.room != "tests":
        return
    nodes = (node for node in source.nodes if isinstance(node, ast.ImportFrom | ast.Call))
    for line in (node.lineno for node in nodes if _sleeps(node)):
        if VIRTUAL not in source.lines[line - 1]:
            what = f"wait for an event; on the virtual clock, end the line with {VIRTUAL!r}"
            yield Complaint(source.path, line, what)


def core_is_pure(source: Source) -> Iterator[Complaint]:
    if not source.is_core:
        return
    for name, line in _imports(source):
        top = name.split(".")[0]
        if top == "landed":
            stays = name == "landed.core" or name.startswith("landed.core.")
        else:
            stays = top in sys.stdlib_module_names and top not in IMPURE
        if not stays:
            what = f"imports {name}; core has the standard library without clock, chance and I/O"
            yield Complaint(source.path, line, what)
    for node in source.nodes:
        if isinstance(node, ast.Call) and _reads_the_clock(node):
            yield Complaint(
                source.path, node.lineno, "core reads no clock; take the time as a value"
            )


def core_has_no_any(source: Source) -> Iterator[Complaint]:
    for node in source.nodes:
        if source.is_core and isinstance(node, ast.Name) and node.id == "Any":
            yield Complaint(source.path, node.lineno, "name the type; core has no `Any`")


def constraints_are_bare_pins(source: Source) -> Iterator[Complaint]:
    if source.path != "constraints.txt":
        return
    for number, line in enumerate(source.lines, 1):
        if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line):
            yield Complaint(source.path, number, "only `name==version`: no host, link or hash")


RULES: tuple[Rule, ...] = (
    opens_with_a_sentence,
    lines_are_short,
    files_are_small,
    functions_are_small,
    names_use_our_words,
    prose_uses_our_words,
    nothing_is_left_unfinished,
    no_place_is_named,
    tests_do_not_sleep,
    core_is_pure,
    core_has_no_any,
    constraints_are_bare_pins,
)


# All files together.


def dead_modules(every: Iterable[Source]) -> list[str]:
    """Return the modules of `src` that nobody imports, starts or names in a page.

    Tests do not count: what only its own test imports is dead. A whole string such as
    "landed.assemble" counts, since the lazy package imports by name.
    """
    every = list(every)
    modules = {one.module: one for one in every if one.room == "src" and one.suffix == ".py"}
    alive = {"landed", "landed.__main__"}
    for one in every:
        if one.room == "tests":
            continue
        if one.suffix == ".py":
            alive |= _reached(one)
        else:
            alive |= set(re.findall(r"\blanded(?:\.\w+)+", one.text))
    packages = {name for name, one in modules.items() if one.path.endswith("__init__.py")}
    return sorted(modules.keys() - alive - packages)


def median_function_lines(every: Iterable[Source]) -> float:
    """Return the median length of the functions of `src`, signatures and docstrings left out."""
    lengths = [
        _last_line(node)
        - node.body[bool(ast.get_docstring(node)) and len(node.body) > 1].lineno
        + 1
        for one in every
        if one.room == "src"
        for node in one.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return median(lengths)


# What the rules look at.


def _is_ours(path: Path) -> bool:
    return "__pycache__" not in path.parts and not path.name.startswith(".")


def _last_line(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _words(name: str) -> set[str]:
    """Return the words of a snake_case or CamelCase name, in the singular."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)
    return {word.lower().removesuffix("s") for word in words}


def _names(source: Source) -> Iterator[tuple[str, int]]:
    """Yield the names that a file gives: its own, and those of classes, functions and fields."""
    yield PurePosixPath(source.path).stem, 1
    for node in source.nodes:
        match node:
            case ast.ClassDef(name=name, body=body, lineno=line):
                yield name, line
                yield from _fields(body)
            case (
                ast.FunctionDef(name=name, lineno=line)
                | ast.AsyncFunctionDef(name=name, lineno=line)
            ):
                if name not in FORCED_NAMES:
                    yield name, line


def _fields(body: Iterable[ast.stmt]) -> Iterator[tuple[str, int]]:
    for statement in body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), lineno=line):
                yield name, line


def _matches(source: Source, patterns: dict[str, str]) -> Iterator[Complaint]:
    if source.path in THEMSELVES:
        return
    for pattern, advice in patterns.items():
        # Over the whole text, so that a phrase cannot hide in a line break.
        for match in re.finditer(pattern, source.text, re.IGNORECASE):
            line = source.text.count("\n", 0, match.start()) + 1
            yield Complaint(source.path, line, f"{match.group()!r}: {advice}")


def _imports(source: Source) -> Iterator[tuple[str, int]]:
    for node in source.nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "", node.lineno


def _reached(source: Source) -> set[str]:
    """Return the modules that a file imports by statement or by name, and itself if it starts."""
    reached = {name for name, _ in _imports(source)}
    for node in source.nodes:
        if isinstance(node, ast.ImportFrom):
            reached |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            reached.add(node.value)
    if "__main__" in reached:
        reached.add(source.module)
    return reached


def _sleeps(node: ast.ImportFrom | ast.Call) -> bool:
    match node:
        case ast.ImportFrom(module=owner, names=names):
            return owner in SLEEPERS and any(alias.name == "sleep" for alias in names)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="sleep"), args=args):
            # `sleep(0)` only lets others run.
            return owner in SLEEPERS and [ast.unparse(one) for one in args] != ["0"]
    return False


def _reads_the_clock(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(value=ast.Name(id="datetime" | "date"), attr=attr):
            return attr in CLOCK_READS
    return False
