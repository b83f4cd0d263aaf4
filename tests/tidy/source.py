"""Where the project's files are."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "epicast"


def python_files() -> list[Path]:
    return sorted(SRC.rglob("*.py"))


def project_files() -> list[Path]:
    """What git tracks or would track; nothing where this is not a git work tree (an unpacked archive)."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        names = subprocess.run(listing, cwd=ROOT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    return [path for name in sorted(names.decode().split("\0")) if name and (path := ROOT / name).is_file()]


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
