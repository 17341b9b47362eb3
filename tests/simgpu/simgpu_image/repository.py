# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A signed apt repository of the stand-in packages.

deb [signed-by=/path/to/key.asc] http://127.0.0.1:8099/ stable main
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from datetime import datetime, timezone
from pathlib import Path

from . import deb, packages
from .tools import run

SUITE, COMPONENT, ARCHITECTURE = "stable", "main", "amd64"
KEY_OWNER = "steadygpu lab repository (SIMULATION) <lab@steadygpu.invalid>"


def build(output: Path) -> None:
    """Lay the repository and its public key (key.asc) at `output`; BuildError without gpg.

    The key is made for this build and thrown away: whoever rebuilds the image gets a new one.
    """
    index = "\n".join(_add(output, package) for package in packages.all_packages())
    suite = output / "dists" / SUITE
    listing = suite / COMPONENT / f"binary-{ARCHITECTURE}" / "Packages"
    listing.parent.mkdir(parents=True)
    listing.write_text(index, encoding="utf-8")
    (suite / "Release").write_text(_release(suite, listing), encoding="utf-8")
    _sign(suite, output / "key.asc")


def _add(output: Path, package: deb.Package) -> str:
    """Write the package file; returns its paragraph of the index."""
    content = deb.build(package)
    relative = Path("pool") / COMPONENT / package.name / package.filename
    (output / relative).parent.mkdir(parents=True, exist_ok=True)
    (output / relative).write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    return f"{package.control()}Filename: {relative}\nSize: {len(content)}\nSHA256: {digest}\n"


def _release(suite: Path, listing: Path) -> str:
    date = datetime.fromtimestamp(deb.EPOCH, timezone.utc).strftime("%a, %d %b %Y %H:%M:%S UTC")
    content = listing.read_bytes()
    rows = {
        "Origin": "steadygpu lab (SIMULATION)",
        "Label": "steadygpu-lab",
        "Suite": SUITE,
        "Codename": SUITE,
        "Architectures": ARCHITECTURE,
        "Components": COMPONENT,
        "Date": date,
        "Description": "Stand-ins for NVIDIA's Container Toolkit, for lab machines only",
    }
    digest = hashlib.sha256(content).hexdigest()
    return (
        "".join(f"{key}: {value}\n" for key, value in rows.items())
        + f"SHA256:\n {digest} {len(content)} {listing.relative_to(suite)}\n"
    )


def _sign(suite: Path, public_key: Path) -> None:
    """InRelease by a new key. The clock is turned back to EPOCH for it: a lab machine whose clock
    is still behind must not meet a signature of the future. The home is a short path in /tmp
    because gpg-agent's socket lies in it.
    """
    home = tempfile.mkdtemp(prefix="simgpu-gpg-")
    when = datetime.fromtimestamp(deb.EPOCH, timezone.utc).strftime("%Y%m%dT%H%M%S!")
    gpg = ["gpg", "--homedir", home, "--batch", "--quiet", "--yes", "--faked-system-time", when]
    gpg += ["--pinentry-mode", "loopback", "--passphrase", ""]
    try:
        run([*gpg, "--quick-generate-key", KEY_OWNER, "ed25519", "sign", "never"])
        run([*gpg, "--armor", "--output", str(public_key), "--export"])
        signed = str(suite / "InRelease")
        run(
            [
                *gpg,
                "--digest-algo",
                "SHA512",
                "--output",
                signed,
                "--clearsign",
                str(suite / "Release"),
            ]
        )
    finally:
        if shutil.which("gpgconf"):
            subprocess.run(
                ["gpgconf", "--homedir", home, "--kill", "all"], capture_output=True, check=False
            )
        shutil.rmtree(home, ignore_errors=True)
