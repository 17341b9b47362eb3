# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes Debian binary packages: an ar archive of two tar archives, the same bytes every time.

Format: deb(5). Members are not compressed: compressors differ between machines, and the
packages are a few kilobytes.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from dataclasses import dataclass, field

#: Every time stamp in packages and repository (2026-01-01 00:00:00 UTC): earlier than any clock
#: of a lab machine, so that nothing is "not valid yet".
EPOCH = 1767225600


@dataclass(frozen=True)
class File:
    """A file of a package."""

    content: bytes
    mode: int = 0o644


@dataclass
class Package:
    """What dpkg needs to know. `files`: by absolute path; `scripts`: postinst and the like."""

    name: str
    version: str
    architecture: str
    summary: str
    description: str
    depends: list[str] = field(default_factory=list)
    files: dict[str, File] = field(default_factory=dict)
    conffiles: list[str] = field(default_factory=list)
    scripts: dict[str, bytes] = field(default_factory=dict)

    @property
    def filename(self) -> str:
        """Name of the package file."""
        return f"{self.name}_{self.version}_{self.architecture}.deb"

    def control(self) -> str:
        """The control paragraph, as it stands in the package and in the index."""
        size = sum(len(file.content) for file in self.files.values())
        rows = {
            "Package": self.name,
            "Version": self.version,
            "Architecture": self.architecture,
            "Maintainer": "steadygpu.host contributors <lab@steadygpu.invalid>",
            "Installed-Size": str(size // 1024 + 1),
            "Depends": ", ".join(self.depends),
            "Section": "utils",
            "Priority": "optional",
            "Description": f"{self.summary}\n {self.description}",
        }
        return "".join(f"{key}: {value}\n" for key, value in rows.items() if value)


def build(package: Package) -> bytes:
    """The package file's bytes."""
    members = {
        "debian-binary": b"2.0\n",
        "control.tar": _tar(_control_files(package)),
        "data.tar": _tar(package.files),
    }
    out = io.BytesIO()
    out.write(b"!<arch>\n")
    for name, content in members.items():
        out.write(
            f"{name:<16}{EPOCH:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode("ascii")
        )
        out.write(content + b"\n" * (len(content) % 2))
    return out.getvalue()


def _control_files(package: Package) -> dict[str, File]:
    sums = "".join(
        f"{hashlib.md5(file.content).hexdigest()}  {path.lstrip('/')}\n"
        for path, file in sorted(package.files.items())
    )
    files = {"/control": File(package.control().encode()), "/md5sums": File(sums.encode())}
    if package.conffiles:
        files["/conffiles"] = File("".join(f"{path}\n" for path in package.conffiles).encode())
    files.update({f"/{name}": File(text, 0o755) for name, text in package.scripts.items()})
    return files


def _tar(files: dict[str, File]) -> bytes:
    """Directories first, everything root's, names as dpkg writes them (./usr/bin)."""
    directories = {"."}
    for path in files:
        parts = path.strip("/").split("/")[:-1]
        directories.update("./" + "/".join(parts[: depth + 1]) for depth in range(len(parts)))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name in sorted(directories):
            archive.addfile(_entry(name, 0o755, tarfile.DIRTYPE))
        for path, file in sorted(files.items()):
            entry = _entry("." + path, file.mode, tarfile.REGTYPE)
            entry.size = len(file.content)
            archive.addfile(entry, io.BytesIO(file.content))
    return out.getvalue()


def _entry(name: str, mode: int, kind: bytes) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.mtime = kind, mode, EPOCH
    entry.uname = entry.gname = "root"
    return entry
