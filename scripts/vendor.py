"""Puts the browser code that the console ships into its place, and writes down what it is.

    python -m scripts.vendor

asks `npm pack` for the package below, at that version, and copies single files of it to
`src/landed/console/static`; `vendored.toml` beside them says where each is from, under which
licence, and what its bytes are. Where npm gets packages is npm's own configuration.
"""

import io
import json
import subprocess
import sys
import tarfile
import tempfile
from hashlib import sha256
from pathlib import Path

PACKAGE, VERSION = "htmx.org", "4.0.1"
LICENCE = "0BSD"
FILES = {
    "htmx.min.js": "package/dist/htmx.min.js",
    "hx-sse.min.js": "package/dist/ext/hx-sse.min.js",
}
"""What we ship, and where it is in the package."""

STATIC = Path(__file__).parents[1] / "src" / "landed" / "console" / "static"
LIST = "vendored.toml"
PACK_MAX_S = 120
HEAD = "# What here is not ours; written by `python -m scripts.vendor`.\n"


def packed() -> bytes:
    """Return the package as npm hands it out. Raises `CalledProcessError` where it does not."""
    with tempfile.TemporaryDirectory(prefix="landed-vendor-") as place:
        command = ["npm", "pack", f"{PACKAGE}@{VERSION}", "--json", "--pack-destination", place]
        said = subprocess.run(command, check=True, capture_output=True, timeout=PACK_MAX_S)
        (row,) = json.loads(said.stdout)
        return Path(place, row["filename"]).read_bytes()


def files_of(package: bytes) -> dict[str, bytes]:
    """Return the files that we ship. Raises `KeyError` for one that the package does not have."""
    with tarfile.open(fileobj=io.BytesIO(package), mode="r:gz") as tar:
        members = {name: tar.extractfile(inside) for name, inside in FILES.items()}
        return {name: member.read() for name, member in members.items() if member is not None}


def listed(files: dict[str, bytes]) -> str:
    """Return what `vendored.toml` says of them."""
    rows = [
        f'\n[[file]]\nname = "{name}"\npackage = "{PACKAGE}"\nversion = "{VERSION}"\n'
        f'path = "{FILES[name]}"\nlicence = "{LICENCE}"\nsha256 = "{sha256(held).hexdigest()}"\n'
        for name, held in sorted(files.items())
    ]
    return HEAD + "".join(rows)


def write(files: dict[str, bytes], place: Path = STATIC) -> None:
    """Put the files and their list in place."""
    place.mkdir(parents=True, exist_ok=True)
    for name, held in files.items():
        (place / name).write_bytes(held)
    (place / LIST).write_text(listed(files), "utf-8")


def main() -> None:
    """Vendor what the table names, and say what came of it."""
    files = files_of(packed())
    write(files)
    sys.stdout.write(listed(files))


if __name__ == "__main__":
    main()
