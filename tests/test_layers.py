"""Imports follow the arrows and the reading order of core, and a wrong one is noticed."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import landed.core

CHECKOUT = Path(__file__).parents[1]
SETTINGS = CHECKOUT / "pyproject.toml"
UPWARD = {
    "a face": ("arrows", "core/errors.py", "import landed.cli"),
    "a sibling": ("arrows", "stores/extra.py", "import landed.runtime"),
    "for types only": (
        "arrows",
        "core/errors.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import landed.runtime",
    ),
    "a room without a place": ("arrows", "attic/__init__.py", ""),
    "a later file of core": ("reading-order", "core/canonical.py", "import landed.core.operation"),
    "a file of core without a place": ("reading-order", "core/extra.py", ""),
}


def lint(source: Path, *, contract: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run import-linter with our contracts over the package found under `source`."""
    only = ["--contract", contract] if contract else []
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return subprocess.run(
        [sys.executable, "-c", program, "--no-cache", "--no-logo", *only, str(SETTINGS)],
        env={**os.environ, "PYTHONPATH": str(source)},
        cwd=source,
        capture_output=True,
        text=True,
        timeout=50,
    )


def test_our_imports_follow_the_arrows() -> None:
    done = lint(CHECKOUT / "src")

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("contract", "file", "planted"), UPWARD.values(), ids=UPWARD)
def test_an_import_against_the_arrows_is_noticed(
    tmp_path: Path, contract: str, file: str, planted: str
) -> None:
    package = tmp_path / "landed"
    shutil.copytree(CHECKOUT / "src" / "landed", package)
    target = package / file
    target.parent.mkdir(exist_ok=True)
    target.write_text((target.read_text("utf-8") if target.exists() else "") + f"\n{planted}\n")

    done = lint(tmp_path, contract=contract)

    assert done.returncode == 1
    assert "BROKEN" in done.stdout


def test_the_reading_order_is_the_one_that_core_tells() -> None:
    told = (landed.core.__doc__ or "").split("Reading order: ")[1].split(".")[0]
    contracts = tomllib.loads(SETTINGS.read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    (layers,) = (one["layers"] for one in contracts if one["id"] == "reading-order")
    files = {path.stem for path in (CHECKOUT / "src/landed/core").glob("[!_]*.py")}
    kept = [name for name in (layer.strip("()") for layer in reversed(layers)) if name in files]

    assert told.replace("\n", " ").split(" · ") == kept
