"""The id-coverage plugin tells the truth: in one process, under xdist, and for part of a suite."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.coverage_ids import IDS_DIR, LISTS, Ids
from tests.sampling import sampled

CHECKOUT = Path(__file__).parents[1]
LISTED = {
    "requirements.txt": "S0-01\nS0-02\nS1-01\nF0-01\nK1\n",
    "field_reports.txt": "A1\nA2\nB1\n",
    "faults.txt": "X01\nX02\nX03\n",
}
SUITE = """
    import pytest

    @pytest.mark.req("S0-01", "K1")
    @pytest.mark.fault("X01", "X02")
    def test_one():
        pass

    @pytest.mark.services
    @pytest.mark.field("A1")
    def test_two():
        pass

    @pytest.mark.skip(reason="proves nothing")
    @pytest.mark.field("A2")
    def test_three():
        pass
"""
Run = Callable[..., pytest.RunResult]
WAYS = sampled([(), ("-n", "2")], every=2)
WAYS_NAMED = ["one process", "xdist"]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a suite of its own, with its own id lists; xdist in processes of its own."""
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    markers = "\n".join(f"    {name}: x" for name in (*LISTS, "services"))
    pytester.makeini(f"[pytest]\nids_dir = ids\ntestpaths = tests\nmarkers =\n{markers}\n")

    def run_suite(*args: str, suite: str = SUITE, due: str = "") -> pytest.RunResult:
        for name, text in {**LISTED, "due.txt": due}.items():
            path = pytester.path / "ids" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        (pytester.path / "tests").mkdir()
        pytester.makepyfile(
            **{"tests/test_suite": suite, "tests/test_other": "def test_it(): pass"}
        )
        start = pytester.runpytest_subprocess if "-n" in args else pytester.runpytest_inprocess
        return start("-p", "tests.coverage_ids", "-p", "no:cacheprovider", *args)

    return run_suite


@pytest.mark.parametrize("workers", WAYS, ids=WAYS_NAMED)
def test_the_summary_is_printed_once_and_counts_right(run: Run, workers: tuple[str, ...]) -> None:
    result = run(*workers, "-m", "not services", due="S0-01\nX01\nA1\n")

    assert result.ret == pytest.ExitCode.OK
    summary = [
        "*- ids with a test -*",
        "requirements     S0 1/2 · S1 0/1",
        "failure variants F0 0/1",
        "decisions        K 1/1",
        "field reports    A 1/2 · B 0/1",
        "faults           X 2/3",
        "due              3/3",
    ]
    result.stdout.fnmatch_lines(summary, consecutive=True)
    assert result.stdout.str().count("ids with a test") == 1


@pytest.mark.parametrize(
    "workers", sampled([(), ("-n", "2")], every=2), ids=["one process", "xdist"]
)
def test_a_due_id_without_a_test_fails_the_run(run: Run, workers: tuple[str, ...]) -> None:
    result = run(*workers, due="S0-01\nX03\nA2\n")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["ERROR X03 is due (due.txt) and has no test", "ERROR A2 is due (due.txt) and has no test"]
    )
    result.stdout.no_fnmatch_line("*S0-01 is due*")


@pytest.mark.parametrize(
    "part", [("tests/test_other.py",), ("-k", "it"), ("--deselect", "tests/test_other.py")]
)
def test_part_of_the_suite_owes_nothing(run: Run, part: tuple[str, ...]) -> None:
    assert run(*part, due="X03\n").ret == pytest.ExitCode.OK


@pytest.mark.parametrize("whole", [(), ("tests",), ("tests/",), (".",)])
def test_the_whole_suite_owes_what_is_due(run: Run, whole: tuple[str, ...]) -> None:
    assert run(*whole, due="X03\n").ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize(
    "workers", sampled([(), ("-n", "2")], every=2), ids=["one process", "xdist"]
)
@pytest.mark.parametrize("mark", ['req("S9-99")', 'fault("A1")', "field"])
def test_a_marker_with_an_unknown_id_fails_the_run(
    run: Run, workers: tuple[str, ...], mark: str
) -> None:
    result = run(*workers, suite=f"import pytest\n@pytest.mark.{mark}\ndef test_one(): pass\n")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["ERROR tests/test_suite.py::test_one: *(*) is not in *.txt"])


def test_an_unlisted_due_id_fails_the_run(run: Run) -> None:
    result = run("tests/test_other.py", due="Y1\n")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["ERROR due.txt names 'Y1', which is in no list"])


def test_the_missing_ids_are_listed_when_asked_for(run: Run) -> None:
    result = run("--ids-missing")

    result.stdout.fnmatch_lines(
        [
            "no test yet, requirements:",
            "  S0-02 S1-01",
            "no test yet, failure variants:",
            "  F0-01",
        ],
        consecutive=True,
    )


def test_our_own_lists_name_each_id_once() -> None:
    ids = Ids.read(IDS_DIR)
    every = [one for marker in LISTS for one in ids.known[marker]]

    assert len(every) == len(set(every)) > 500
    assert ids.unlisted_due() == []
