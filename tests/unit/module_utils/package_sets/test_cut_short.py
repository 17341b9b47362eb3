# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The process ends before or after any of its changes; the same task again ends as wanted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import vouched
from ansible_collections.steadygpu.host.plugins.module_utils.package_sets import (
    apt,
    guard,
    source_files,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.package_sets.machine import (
    Machine,
    bring,
)

WANTED = {"docker.io": "28", "runc": "1.3"}
KEY = "-----BEGIN PGP PUBLIC KEY BLOCK-----"


class CutError(BaseException):
    """The process ends here. Nothing that catches errors catches a kill."""


class Cuts:
    """Ends the process at the change number ``when``, before or after it."""

    def __init__(self, when: int, after: bool) -> None:
        self._left = when
        self._after = after

    def around(self, change: Callable[..., Any]) -> Callable[..., Any]:
        """The change, which may be the last one."""

        def act(*arguments: Any, **more: Any) -> Any:
            if arguments and isinstance(arguments[0], list) and not _changes(arguments[0]):
                return change(*arguments, **more)
            self._left -= 1
            last = self._left == 0
            if last and not self._after:
                raise CutError
            try:
                return change(*arguments, **more)
            finally:
                if last:
                    raise CutError

        return act


def _changes(argv: list[str]) -> bool:
    return argv[0] in ("apt-get", "dpkg") and "-s" not in argv


def _files(root: Path) -> dict[str, str]:
    """All of /etc, the programs and our records, but not the ledger."""
    found = {}
    for top in ("etc", "usr", "var/lib/steadygpu/owned"):
        for directory, _names, files in os.walk(root / top):
            for name in files:
                path = Path(directory, name)
                found[str(path.relative_to(root))] = path.read_text()
    return found


def _come(machine: Machine) -> None:
    bring(machine, WANTED, guard_upgrades=True)


def _go(machine: Machine) -> None:
    bring(machine, present=False)


def _start(machine: Machine) -> None:
    shutil.rmtree(machine.root / "etc", ignore_errors=True)
    shutil.rmtree(machine.root / "var/lib/steadygpu", ignore_errors=True)
    machine.installed.clear()
    machine.has(runc="1.1")
    machine.offers = {"docker.io": ["28"], "runc": ["1.3"]}
    machine.brings = {"tini": "1"}


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("act", [_come, _go])
def test_a_set_of_packages(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    act: Callable[[Machine], None],
    after: bool,
) -> None:
    policy = machine.root / "usr/sbin/policy-rc.d"
    policy.parent.mkdir(parents=True)
    policy.write_text("#!/bin/sh\nexit 0\n")
    _start(machine)
    if act is _go:
        _come(machine)
    act(machine)
    wanted = (dict(machine.installed), _files(machine.root))
    for count in range(1, 100):
        cuts = Cuts(count, after)
        _start(machine)
        if act is _go:
            _come(machine)
        with monkeypatch.context() as patch:
            patch.setattr(vouched, "write_atomic", cuts.around(vouched.write_atomic))
            patch.setattr(vouched, "remove_file", cuts.around(vouched.remove_file))
            patch.setattr(apt, "run", cuts.around(machine.run))
            for name in ("link", "replace", "unlink"):
                patch.setattr(guard.os, name, cuts.around(getattr(os, name)))
            try:
                act(machine)
                break
            except CutError:
                pass
        act(machine)
        assert (dict(machine.installed), _files(machine.root)) == wanted, count
    assert count > (10 if act is _come else 5)


@pytest.mark.parametrize("after", [False, True])
def test_a_source_and_what_it_replaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    theirs = tmp_path / "etc/apt/sources.list.d/theirs.list"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("deb https://packages.example.com/deb /\n")
    source = source_files.Source(
        "x", ("https://packages.example.com/deb",), ("/",), key=KEY, replace=True, pins={"a": "1"}
    )
    gone = source_files.Source("x", present=False)

    def act(one: source_files.Source) -> None:
        source_files.carry_out(source_files.plan(one, str(tmp_path)), str(tmp_path))

    act(source)
    wanted = _files(tmp_path)
    act(gone)
    bare = _files(tmp_path)
    count = 0
    while True:
        count += 1
        cuts = Cuts(count, after)
        with monkeypatch.context() as patch:
            patch.setattr(vouched, "write_atomic", cuts.around(vouched.write_atomic))
            patch.setattr(vouched, "remove_file", cuts.around(vouched.remove_file))
            try:
                act(source)
                act(gone)
                break
            except CutError:
                pass
        named = [path for path, text in _files(tmp_path).items() if "\ndeb http" in f"\n{text}"]
        ours = "etc/apt/sources.list.d/steadygpu-x.sources" in _files(tmp_path)
        assert not (named and ours), "two entries for one address stop apt"
        act(source)
        assert _files(tmp_path) == wanted, count
        act(gone)
        assert _files(tmp_path) == bare, count
    assert count == 9
