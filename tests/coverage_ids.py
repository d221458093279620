"""A pytest plugin that says which requirement, field-report and fault ids have a test.

A test names what it proves with `@pytest.mark.req("S4-03")`, `@pytest.mark.field("A1")` or
`@pytest.mark.fault("X19")`. The lists of all ids are plain files in `tests/ids`. The run fails

* when a marker names an id that is in no list, and
* when an id in `due.txt` (what the finished issues cover) has no test, if the whole suite was
  collected: a run of one file says nothing about the others.

A test counts once it is collected, also when `-m` leaves it out of this run, but not when it is
marked `skip` or `xfail`. Under xdist only the workers collect, so each sends home what it found.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

LISTS = {"req": "requirements.txt", "field": "field_reports.txt", "fault": "faults.txt"}
DUE = "due.txt"
GROUPS = {
    "req:S": "requirements",
    "req:F": "failure variants",
    "req:K": "decisions",
    "field": "field reports",
    "fault": "faults",
}
# Options that leave part of the suite uncollected, or drop tests before they could be counted.
NARROWING = ("keyword", "deselect", "ignore", "ignore_glob", "lf", "stepwise")
PER_LINE = 12
IDS_DIR = Path(__file__).parent / "ids"


@dataclass(frozen=True)
class Ids:
    """The lists of `tests/ids`: every id of a marker, in the order of the list, and what is due."""

    known: Mapping[str, tuple[str, ...]]
    due: tuple[str, ...]

    @classmethod
    def read(cls, folder: Path) -> "Ids":
        known = {marker: _lines(folder / name) for marker, name in LISTS.items()}
        return cls(known=known, due=_lines(folder / DUE))

    def unlisted_due(self) -> list[str]:
        listed = {one for ids in self.known.values() for one in ids}
        return [
            f"{DUE} names {one!r}, which is in no list" for one in self.due if one not in listed
        ]


@dataclass
class Found:
    """What one collection saw: the ids named per marker, and what is wrong with the markers."""

    named: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    problems: set[str] = field(default_factory=set)
    collected: bool = False

    def add(self, item: pytest.Item, ids: Ids) -> None:
        skipped = any(item.get_closest_marker(name) for name in ("skip", "xfail"))
        for marker in LISTS:
            for one in _named(item, marker):
                if one not in ids.known[marker]:
                    self.problems.add(f"{item.nodeid}: {marker}({one!r}) is not in {LISTS[marker]}")
                elif not skipped:
                    self.named[marker].add(one)

    def packed(self) -> dict[str, list[str]]:
        """The same in the plain types that a worker may send to its controller."""
        named = {marker: sorted(ids) for marker, ids in self.named.items()}
        return {**named, "problems": sorted(self.problems)}

    def merge(self, packed: Mapping[str, Iterable[str]]) -> None:
        self.collected = True
        self.problems.update(packed["problems"])
        for marker in LISTS:
            self.named[marker].update(packed.get(marker, ()))

    def missing(self, ids: Ids) -> list[str]:
        named = {one for found in self.named.values() for one in found}
        return [one for one in ids.due if one not in named]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--ids-missing", action="store_true", help="also list the ids without a test")
    parser.addini("ids_dir", "the folder of the id lists", default=str(IDS_DIR))


def pytest_configure(config: pytest.Config) -> None:
    ids = Ids.read(Path(config.getini("ids_dir")))
    worker = hasattr(config, "workeroutput")
    config.pluginmanager.register(_Worker(ids) if worker else _Controller(ids), "landed-ids")


class _Worker:
    """Collects; in an xdist worker the controller does the rest."""

    def __init__(self, ids: Ids) -> None:
        self.ids = ids
        self.found = Found()

    # First, so that it sees the tests that `-m` is about to leave out.
    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: Any, items: list[pytest.Item]) -> None:
        for item in items:
            self.found.add(item, self.ids)
        self.found.collected = True
        if hasattr(config, "workeroutput"):
            config.workeroutput["landed_ids"] = self.found.packed()


class _Controller(_Worker):
    """Judges and prints, once; without xdist it collects as well."""

    errors: tuple[str, ...] = ()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        packed = getattr(node, "workeroutput", {}).get("landed_ids")
        if packed is not None:
            self.found.merge(packed)

    # Last, so that xdist's workers have all come home.
    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not self.found.collected:
            return
        self.errors = (*self.ids.unlisted_due(), *sorted(self.found.problems))
        if _whole(session.config):
            missing = self.found.missing(self.ids)
            self.errors += tuple(f"{one} is due ({DUE}) and has no test" for one in missing)
        if self.errors and session.exitstatus in (pytest.ExitCode.OK, 5):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.found.collected:
            return
        write = terminalreporter.write_line
        terminalreporter.write_sep("-", "ids with a test")
        for line in _table(self.ids, self.found):
            write(line)
        if terminalreporter.config.getoption("ids_missing"):
            for line in _without(self.ids, self.found):
                write(line)
        for error in self.errors:
            write(f"ERROR {error}", red=True)


def _lines(path: Path) -> tuple[str, ...]:
    return tuple(line.strip() for line in path.read_text("utf-8").splitlines() if line.strip())


def _named(item: pytest.Item, marker: str) -> Iterator[str]:
    for mark in item.iter_markers(marker):
        # A bare marker proves nothing; it is reported like an id that does not exist.
        yield from map(str, mark.args or ("",))


def _whole(config: pytest.Config) -> bool:
    """Whether this run collected everything: no path but the suite's own, and nothing left out."""
    roots = {config.rootpath, *(config.rootpath / name for name in config.getini("testpaths"))}
    asked = {Path(config.invocation_params.dir, arg) for arg in config.args}
    narrowed = any(config.getoption(name, None) for name in NARROWING)
    return asked <= roots and not narrowed


def _theme(one: str) -> str:
    return one.split("-")[0] if "-" in one else one[0]


def _groups(ids: Ids) -> Iterator[tuple[str, str, dict[str, list[str]]]]:
    """Yield (marker, title, theme → ids) for each line of the summary."""
    for group, title in GROUPS.items():
        marker, _, prefix = group.partition(":")
        themes: dict[str, list[str]] = defaultdict(list)
        for one in ids.known[marker]:
            if one.startswith(prefix):
                themes[_theme(one)].append(one)
        if themes:
            yield marker, title, themes


def _table(ids: Ids, found: Found) -> Iterator[str]:
    for marker, title, themes in _groups(ids):
        counts = (
            f"{theme} {len(found.named[marker].intersection(members))}/{len(members)}"
            for theme, members in themes.items()
        )
        yield f"{title:<17}{' · '.join(counts)}"
    met = len(ids.due) - len(found.missing(ids))
    yield f"{'due':<17}{met}/{len(ids.due)}"


def _without(ids: Ids, found: Found) -> Iterator[str]:
    for marker, title, themes in _groups(ids):
        bare = [one for ids_ in themes.values() for one in ids_ if one not in found.named[marker]]
        yield f"no test yet, {title}:"
        for start in range(0, len(bare), PER_LINE):
            yield "  " + " ".join(bare[start : start + PER_LINE])
