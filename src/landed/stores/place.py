"""What a path stands on: SQLite's log needs a local disk that really locks and really syncs."""

from pathlib import Path

from landed.core.errors import StoreError

MOUNTS = Path("/proc/mounts")
UNKNOWN = "unknown"

_SHARED = ("9p", "afs", "cifs", "davfs", "ncpfs", "nfs", "nfs4", "smb2", "smb3", "smbfs")
_CLUSTER = ("beegfs", "ceph", "gfs2", "glusterfs", "gpfs", "lustre", "ocfs2", "orangefs")
_FUSE = ("davfs2", "gcsfuse", "glusterfs", "rclone", "s3fs", "sshfs")
NETWORK = frozenset([*_SHARED, *_CLUSTER, *(f"fuse.{kind}" for kind in _FUSE)])


def file_system(directory: Path) -> str:
    """Return the type of the file system that a directory is on, or "unknown".

    It is the type of the longest mount point above it; only Linux says so in `/proc/mounts`.
    """
    try:
        lines = MOUNTS.read_text("utf-8", "replace").splitlines()
    except OSError:
        return UNKNOWN
    place = directory.resolve()
    found, depth = UNKNOWN, -1
    for line in lines:
        fields = line.split(" ")
        # Blanks in a mount point are written as octal escapes.
        point = Path(fields[1].encode().decode("unicode_escape"))
        if place.is_relative_to(point) and len(point.parts) >= depth:
            found, depth = fields[2], len(point.parts)
    return found


def require_local(directory: Path) -> str:
    """Return the file system's type; raises `StoreError` when it is on a network."""
    kind = file_system(directory)
    if kind in NETWORK:
        raise StoreError(
            f"{directory} is on a network file system ({kind}), where two machines can damage a "
            "SQLite file; put it on a local disk, or, if only one machine ever opens it, call "
            "landed.stores.sqlite.open_sqlite with allow_network_fs=True"
        )
    return kind
