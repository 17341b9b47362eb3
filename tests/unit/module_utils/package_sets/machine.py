# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host with dpkg and apt, made up: what is installed, what the sources offer, what apt does."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import packages
from ansible_collections.steadygpu.host.plugins.module_utils.engine.services import Service
from ansible_collections.steadygpu.host.plugins.module_utils.package_sets import (
    apply,
    apt,
    archives,
)
from ansible_collections.steadygpu.host.plugins.module_utils.packages import Installed, Package
from ansible_collections.steadygpu.host.plugins.module_utils.process import Completed

POLICY = "usr/sbin/policy-rc.d"


@dataclass
class Machine:
    """``offers`` are versions by name, the newest first, as apt-cache madison prints them.

    ``brings`` and ``drops`` are what a transaction does beyond what it was told; ``fails`` is what
    apt-get says instead of doing it. ``updated`` are the offers after the next ``apt-get update``.
    """

    root: Path
    installed: dict[str, Package] = field(default_factory=dict)
    offers: dict[str, list[str]] = field(default_factory=dict)
    updated: dict[str, list[str]] | None = None
    brings: dict[str, str] = field(default_factory=dict)
    drops: list[str] = field(default_factory=list)
    half_done: list[str] = field(default_factory=list)
    fails: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    policy_said: list[str] = field(default_factory=list)
    victims: list[str] = field(default_factory=list)
    containers: list[str] = field(default_factory=list)
    pids: dict[str, int] = field(default_factory=dict)

    def has(self, held: bool = False, **versions: str) -> None:
        """Installed packages; a dash in a name is written as ``_``."""
        for name, version in versions.items():
            self.installed[name.replace("_", "-")] = Package(version, held)

    @property
    def versions(self) -> dict[str, str]:
        """The versions of what was installed here."""
        return {name: package.version for name, package in self.installed.items()}

    @property
    def held(self) -> set[str]:
        """The names of what is held."""
        return {name for name, package in self.installed.items() if package.held}

    def ran(self, begin: str) -> list[str]:
        """The command lines that begin so."""
        return [line for line in self.asked if line.startswith(begin)]

    def transactions(self) -> list[str]:
        """The runs of apt-get that changed packages."""
        return [
            line
            for line in self.ran("apt-get")
            if " -s " not in line and not line.endswith(" update")
        ]

    def read_installed(self, _root: str = "/", _deadline_s: float = 30.0) -> Installed:
        """In place of :func:`packages.read_installed`."""
        base = {"base-files": Package("13", False)}
        return Installed("dpkg", {**base, **self.installed}, dict.fromkeys(self.half_done, "1"))

    def run(
        self,
        argv: Sequence[str],
        _deadline_s: float = 30.0,
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """In place of :func:`process.run`."""
        line = " ".join(argv)
        self.asked.append(line)
        if argv[0] == "apt-cache":
            names = argv[2:]
            lines = [
                f"{n} | {v} | http://a Packages\n" for n in names for v in self.offers.get(n, [])
            ]
            return Completed(argv, 0, "".join(lines), "")
        if argv[0] == "dpkg-deb":
            name, version, _arch = os.path.basename(argv[-1]).split("_")
            return Completed(argv, 0, f"{name}\t{version}\n", "")
        if line == "dpkg --set-selections":
            for row in (stdin or "").splitlines():
                name, wanted = row.split()
                self.installed[name] = Package(self.versions[name], wanted == "hold")
            return Completed(argv, 0, "", "")
        if argv[0] == "dpkg":
            self._scripts(env)
            for path in (self.root / "var/lib/dpkg/updates").iterdir():
                path.unlink()
            self.half_done.clear()
            return Completed(argv, 0, "", "")
        assert argv[0] == "apt-get", line
        return self._apt_get(argv, env)

    def _apt_get(self, argv: Sequence[str], env: Mapping[str, str] | None) -> Completed:
        if argv[-1] == "update":
            self.offers = self.updated if self.updated is not None else self.offers
            return Completed(argv, 0, "", "")
        verb = "remove" if "remove" in argv else "install"
        words = argv[argv.index(verb) + 1 :]
        going, coming = (list(words), {}) if verb == "remove" else ([], self._resolve(words))
        unknown = [name for name, version in coming.items() if not version]
        if unknown:
            return Completed(argv, 100, "", f"E: Unable to locate package {unknown[0]}\n")
        coming = {n: v for n, v in {**coming, **self.brings}.items() if self.versions.get(n) != v}
        going += self.drops
        if "-s" in argv:
            old = {name: f" [{version}]" for name, version in self.versions.items()}
            text = "".join(f"Remv {name}{old.get(name, '')}\n" for name in going)
            text += "".join(
                f"Inst {n}{old.get(n, '')} ({v} Test:stable [amd64])\nConf {n} ({v} Test)\n"
                for n, v in coming.items()
            )
            text += "".join(f"Conf {name} (1 Test)\n" for name in self.half_done)
            return Completed(argv, 0, text, "")
        if self.fails:
            return Completed(argv, 100, "", self.fails.pop(0))
        self._scripts(env)
        for name in going:
            self.installed.pop(name, None)
        for name, version in coming.items():
            self.installed[name] = Package(version, False)
        return Completed(argv, 0, "", "")

    def _resolve(self, words: Sequence[str]) -> dict[str, str]:
        found = {}
        for word in words:
            name, _equals, version = word.partition("=")
            found[name] = version or next(iter(self.offers.get(name, [])), "")
        return found

    def _scripts(self, env: Mapping[str, str] | None) -> None:
        """What a maintainer script would be told by the host's policy."""
        policy = self.root / POLICY
        if not policy.exists():
            self.policy_said.append("no policy")
            return
        units = ("docker.service", "containerd.service", "cron.service")
        ask = 'for unit in "$@"; do sh "$0" "$unit" restart; echo "$unit $?"; done'
        argv = ["sh", "-c", ask, str(policy), *units]
        done = subprocess.run(
            argv, env=dict(env or {}), check=False, capture_output=True, text=True
        )
        self.policy_said += done.stdout.splitlines()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """An empty host; everything that would look at the real one looks at this."""
    made = Machine(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "var/lib/dpkg/updates").mkdir(parents=True)
    for module in (apt, archives):
        monkeypatch.setattr(module, "run", made.run)
    monkeypatch.setattr(packages, "read_installed", made.read_installed)

    def services(_names: Any) -> dict[str, Service]:
        units = ("docker.service", "containerd.service")
        return {
            unit: Service(
                "loaded", "active" if unit in made.pids else "inactive", True, made.pids[unit]
            )
            if unit in made.pids
            else Service()
            for unit in units
        }

    monkeypatch.setattr(apply, "read_services", services)
    monkeypatch.setattr(apply.Host, "endangered", lambda _self: made.victims)
    monkeypatch.setattr(apply.Host, "containers", lambda _self: made.containers)
    return made


def bring(machine: Machine, wanted: dict[str, str] | None = None, **options: Any) -> apply.Outcome:
    """Carry the wish out."""
    wish = apply.Wish(wanted or {}, **options)
    return apply.carry_out(wish, apply.Host(str(machine.root), "/nowhere"))


def foresee(machine: Machine, wanted: dict[str, str], **options: Any) -> apply.Outcome:
    """What check mode says of the wish."""
    return apply.foresee(apply.Wish(wanted, **options), apply.Host(str(machine.root), "/nowhere"))
