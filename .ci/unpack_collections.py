"""Put the collections that requirements.yml names under DIR/ansible_collections.

They are taken out of the wheel that requirements-collections.lock pins by hash: PyPI's `ansible`
carries them all, so a machine that reaches a Python index but no Galaxy server can work, and
everybody gets the same bytes.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
WANTED = ROOT / "requirements.yml"
LOCK = ROOT / "requirements-collections.lock"


def stamp() -> str:
    """What the unpacked collections were made from."""
    return hashlib.sha256(WANTED.read_bytes() + LOCK.read_bytes()).hexdigest()


def names() -> list[str]:
    """The wanted collections, as `namespace.name`."""
    return [entry["name"] for entry in yaml.safe_load(WANTED.read_text())["collections"]]


def unpack(wheel: Path, destination: Path) -> None:
    """Extract the wanted collections, the only members of the wheel that are used.

    Raises SystemExit when the wheel lacks one.
    """
    with zipfile.ZipFile(wheel) as archive:
        members = archive.namelist()
        for name in names():
            prefix = f"ansible_collections/{name.replace('.', '/')}/"
            found = [member for member in members if member.startswith(prefix)]
            if not found:
                sys.exit(
                    f"collections: {wheel.name} carries no {name}; name one it carries in "
                    f"{WANTED.name}, or pin another release in requirements-collections.in."
                )
            archive.extractall(destination, found)


def main() -> None:
    """Unpack into the directory given as the only argument, unless it is already so."""
    destination = Path(sys.argv[1])
    mark = destination / ".made-from"
    if mark.exists() and mark.read_text() == stamp():
        return
    print(f"collections: {', '.join(names())} into {destination}")
    with tempfile.TemporaryDirectory() as scratch:
        pip = [sys.executable, "-m", "pip", "download", "-qq", "--disable-pip-version-check"]
        pip += ["--no-deps", "--require-hashes", "--only-binary", ":all:"]
        subprocess.run([*pip, "-r", str(LOCK), "-d", scratch], check=True)
        unpack(next(Path(scratch).glob("*.whl")), destination)
    mark.write_text(stamp())


if __name__ == "__main__":
    main()
