"""What the console ships of others is what its list says, and the wheel has it."""

import io
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from scripts import vendor

CHECKOUT = Path(__file__).parents[2]
ROWS = tomllib.loads((vendor.STATIC / vendor.LIST).read_text("utf-8"))["file"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_a_file_on_disk_is_the_one_that_is_listed(row: dict[str, str]) -> None:
    held = (vendor.STATIC / row["name"]).read_bytes()

    assert sha256(held).hexdigest() == row["sha256"]
    assert (row["package"], row["version"]) == (vendor.PACKAGE, vendor.VERSION)


def test_no_script_of_others_is_unlisted() -> None:
    minified = {path.name for path in vendor.STATIC.glob("*.min.*")}

    assert minified == {row["name"] for row in ROWS} == set(vendor.FILES)


def test_a_package_is_unpacked_and_listed(tmp_path: Path) -> None:
    held = {name: f"// {name}".encode() for name in vendor.FILES}
    package = io.BytesIO()
    with tarfile.open(fileobj=package, mode="w:gz") as tar:
        for name, inside in vendor.FILES.items():
            member = tarfile.TarInfo(inside)
            member.size = len(held[name])
            tar.addfile(member, io.BytesIO(held[name]))

    files = vendor.files_of(package.getvalue())
    vendor.write(files, tmp_path)

    assert files == held
    rows = tomllib.loads((tmp_path / vendor.LIST).read_text("utf-8"))["file"]
    assert {row["name"]: row["sha256"] for row in rows} == {
        name: sha256((tmp_path / name).read_bytes()).hexdigest() for name in vendor.FILES
    }


def test_the_wheel_has_pages_styles_and_scripts(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=CHECKOUT, check=True, capture_output=True, timeout=60)
    (wheel,) = tmp_path.glob("*.whl")
    console = CHECKOUT / "src" / "landed" / "console"
    shown = [p for p in console.rglob("*") if p.is_file() and p.suffix in {".html", ".css", ".js"}]

    shipped = set(zipfile.ZipFile(wheel).namelist())

    missing = [p.name for p in shown if p.relative_to(CHECKOUT / "src").as_posix() not in shipped]
    assert shown
    assert not missing
