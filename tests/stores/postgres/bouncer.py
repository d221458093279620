"""A PgBouncer in transaction mode before the embedded server; installed where it is missing."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.stores.postgres.embedded import Server

POOL = 2
"""Server connections for each database: fewer than a store opens, so that they are shared."""

CONFIG = """
[databases]
* = host={server} port=5432

[pgbouncer]
listen_port = 5432
unix_socket_dir = {directory}
auth_type = trust
auth_file = {directory}/users
pool_mode = transaction
default_pool_size = {pool}
max_client_conn = 500
"""

INSTALL = ("apt-get", "-o", "DPkg::Lock::Timeout=120")


def program() -> str:
    """Return where PgBouncer is. As root it is installed if need be; a test is never left out."""
    places = f"{os.environ.get('PATH', '')}:/usr/sbin"
    if shutil.which("pgbouncer", path=places) is None:
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            raise RuntimeError("these tests need PgBouncer: apt-get install pgbouncer")
        for step in (("update",), ("install", "-y", "--no-install-recommends", "pgbouncer")):
            subprocess.run([*INSTALL, *step], check=True, capture_output=True, timeout=50)
    found = shutil.which("pgbouncer", path=places)
    assert found is not None
    return found


@contextmanager
def bouncing(server: Server) -> Iterator[Path]:
    """Start it before the server; yields the directory of its socket."""
    directory = Path(tempfile.mkdtemp(prefix="landed-pgb-"))
    config = directory / "pgbouncer.ini"
    socket = server.socket.parent
    config.write_text(CONFIG.format(server=socket, directory=directory, pool=POOL))
    (directory / "users").write_text('"postgres" ""\n')
    command = [program(), str(config)]
    if os.geteuid() == 0:  # It does not run as root; the server does not either.
        user = pwd.getpwuid(server.socket.stat().st_uid).pw_name
        for place in (directory, *directory.iterdir()):
            shutil.chown(place, user)
        command[1:1] = ["-u", user]
    try:
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            try:
                _wait_until_up(process)
                yield directory
            finally:
                process.kill()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _wait_until_up(process: "subprocess.Popen[str]") -> None:
    assert process.stderr is not None
    said: list[str] = []
    for line in process.stderr:
        said.append(line)
        if "process up" in line:
            return
    raise RuntimeError("".join(said))
