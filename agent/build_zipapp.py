#!/usr/bin/env python
# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Build ``steadygpu.pyz``: the agent, the collection's core and its dependencies in one file.

The same sources and dependencies give the same bytes on every machine and at any time:
names sorted, one fixed timestamp and mode, nothing deflated (zlib builds differ).

    python agent/build_zipapp.py --dependencies DIR --output build/steadygpu.pyz

DIR is what ``pip install --target DIR`` made from requirements-agent.lock.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
SHEBANG = b"#!/usr/bin/env python3\n"
MANIFEST = "MANIFEST.json"
# The oldest time a zip entry can have.
TIMESTAMP = (1980, 1, 1, 0, 0, 0)

CORE = "ansible_collections/steadygpu/host/plugins/module_utils"
# A package `ansible_collections` anywhere on the host's path would hide a mere directory of
# that name in the archive, so every level becomes a package of its own.
NAMESPACES = [CORE.rsplit("/", depth)[0] for depth in range(1, CORE.count("/") + 1)]

# The importable names that are used of each dependency; nvidia-ml-py also installs an
# `example.py` into everybody's way.
MODULES = {"nvidia-ml-py": ("pynvml",), "pyyaml": ("yaml",)}
# Compiled code that a dependency does without: PyYAML's `yaml` has a pure loader, and uses the
# compiled one only where it can be imported.
DISPENSABLE = ("yaml/_yaml.",)

MAIN = b"""import sys

from steadygpu_agent.cli import main

sys.exit(main())
"""
Modules = Mapping[str, Sequence[str]]

_VERSION = re.compile(r"^version:\s*(\S+)\s*$", re.MULTILINE)
_LICENCE = re.compile(r"(licen[sc]e|copying|notice|authors)", re.IGNORECASE)


class BuildError(Exception):
    """Something the artifact needs is missing; the message says what to do."""


def build(checkout: Path, dependencies: Path, modules: Modules | None = None) -> bytes:
    """The whole artifact. ``modules``: what of each dependency, MODULES when None.

    Raises BuildError.
    """
    version = collection_version(checkout)
    files = {"__main__.py": MAIN, "steadygpu_agent/VERSION": f"{version}\n".encode()}
    files.update(python_files(checkout / "agent" / "steadygpu_agent", "steadygpu_agent"))
    files.update(python_files(checkout / "plugins" / "module_utils", CORE))
    files.update({f"{package}/__init__.py": b"" for package in NAMESPACES})
    vendored = dependency_files(dependencies, MODULES if modules is None else modules)
    files.update(vendored)
    manifest = {
        "name": "steadygpu",
        "version": version,
        "dependencies": dependency_versions(vendored),
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    }
    files[MANIFEST] = json.dumps(manifest, indent=1, sort_keys=True).encode() + b"\n"
    return SHEBANG + archive(files)


def collection_version(checkout: Path) -> str:
    """``version`` of galaxy.yml, read without a YAML library."""
    match = _VERSION.search((checkout / "galaxy.yml").read_text(encoding="utf-8"))
    if match is None:
        raise BuildError(f"{checkout / 'galaxy.yml'} has no line 'version: X.Y.Z'")
    return match.group(1).strip("\"'")


def python_files(directory: Path, package: str) -> dict[str, bytes]:
    """Archive name to content of every Python file below ``directory``."""
    return {
        f"{package}/{path.relative_to(directory).as_posix()}": path.read_bytes()
        for path in directory.rglob("*.py")
    }


def dependency_files(directory: Path, modules: Modules) -> dict[str, bytes]:
    """The wanted modules of a pip target directory, each distribution's METADATA and licence.

    Raises BuildError for a dependency that is missing, unknown or compiled code.
    """
    found = {_distribution(record): record for record in directory.glob("*.dist-info/RECORD")}
    if set(found) != set(modules):
        raise BuildError(
            f"{directory} holds {', '.join(sorted(found)) or 'no distribution'}; wanted "
            f"{', '.join(sorted(modules))}, as 'pip install --target {directory} --no-deps "
            "--require-hashes -r requirements-agent.lock' makes it. A new dependency is entered "
            "in MODULES of agent/build_zipapp.py"
        )
    files: dict[str, bytes] = {}
    for distribution, record in found.items():
        for name in _recorded(record):
            if name.startswith(DISPENSABLE):
                continue
            if not _travels(name, record.parent.name, modules[distribution]):
                continue
            if name.endswith((".so", ".pyd")):
                raise BuildError(f"{name} is compiled code; wanted are pure Python dependencies")
            files[name] = (directory / name).read_bytes()
    return files


def _distribution(record: Path) -> str:
    """``nvidia-ml-py`` of ``nvidia_ml_py-13.615.71.dist-info``, in its normal form (PEP 503)."""
    return record.parent.name.rsplit("-", 2)[0].replace("_", "-").lower()


def _recorded(record: Path) -> Iterator[str]:
    """The installed files, first column of RECORD."""
    for line in record.read_text(encoding="utf-8").splitlines():
        yield line.rsplit(",", 2)[0].strip('"')


def _travels(name: str, metadata: str, modules: Sequence[str]) -> bool:
    top, _slash, rest = name.partition("/")
    if top == metadata:
        return rest == "METADATA" or bool(_LICENCE.search(rest))
    return top.partition(".")[0] in modules and "__pycache__" not in rest


def dependency_versions(files: dict[str, bytes]) -> dict[str, str]:
    """Distribution name to version, from the head of each METADATA."""
    versions = {}
    for name, data in files.items():
        if name.endswith(".dist-info/METADATA"):
            head = data.decode("utf-8").partition("\n\n")[0]
            fields = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
            versions[fields["Name"]] = fields["Version"]
    return versions


def archive(files: dict[str, bytes]) -> bytes:
    """A stored zip whose bytes depend on ``files`` alone.

    Directories are entries too: packages without ``__init__.py`` cannot be imported from
    an archive otherwise.
    """
    directories = {
        "/".join(name.split("/")[:depth]) + "/"
        for name in files
        for depth in range(1, name.count("/") + 1)
    }
    entries = {**dict.fromkeys(directories, b""), **files}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as target:
        for name in sorted(entries):
            entry = zipfile.ZipInfo(name, TIMESTAMP)
            entry.create_system = 3  # Unix, whatever this machine is
            entry.external_attr = (0o40755 << 16) | 0x10 if name.endswith("/") else 0o100644 << 16
            target.writestr(entry, entries[name])
    return buffer.getvalue()


def main() -> int:
    """Write the artifact and say its digest."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dependencies", type=Path, required=True, metavar="DIR")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE")
    arguments = parser.parse_args()
    try:
        data = build(CHECKOUT, arguments.dependencies)
    except (BuildError, OSError) as error:
        print(f"build_zipapp: {error}", file=sys.stderr)
        return 1
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    # Another process may be running or shipping the old file: it is replaced, not rewritten.
    temporary = arguments.output.with_name(f".{arguments.output.name}.{os.getpid()}")
    temporary.write_bytes(data)
    temporary.chmod(0o755)
    temporary.replace(arguments.output)
    print(f"{arguments.output}  {len(data) // 1024} KiB  sha256 {hashlib.sha256(data).hexdigest()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
