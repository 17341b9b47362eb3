# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A change of the next boot that is killed anywhere is completed by the next run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import vouched
from ansible_collections.steadygpu.host.plugins.module_utils.boot import manage
from ansible_collections.steadygpu.host.plugins.module_utils.boot.model import Machine, Wish
from ansible_collections.steadygpu.host.tests.unit.module_utils.boot.boot_tree import (
    Tree,
    snapshot,
)


class Killed(BaseException):
    """The program ends here, and nothing of it runs any more."""


STEPS = (
    Wish(parameters=("iommu=pt",), blacklist=("nouveau",), modules=("dummy",)),
    Wish(parameters=("numa_balancing=disable",), options={"nouveau": (("modeset", "0"),)}),
    Wish(),
)


def killed_at(count: int, tree: Tree, wish: Wish, patch: pytest.MonkeyPatch) -> bool:
    """Run until the ``count``-th call that changes something; False when there were fewer."""
    left = [count]

    def counted(real: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            if arguments[0][:1] != ["modprobe"] and arguments[0][:1] != ["lsinitramfs"]:
                left[0] -= 1
                if left[0] == 0:
                    raise Killed
            return real(*arguments, **named)

        return call

    with patch.context() as cut:
        for name in ("write", "remove"):
            cut.setattr(vouched, name, counted(getattr(vouched, name)))
        machine = Machine(str(tree.root), counted(tree.run), tree.machine.find)
        try:
            manage.ensure(wish, False, machine)
        except Killed:
            return True
    return False


@pytest.mark.parametrize("step", range(len(STEPS)))
def test_a_kill_anywhere_is_completed_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    whole = Tree(tmp_path / "whole")
    whole.initramfs_of("nouveau")
    for wish in STEPS[: step + 1]:
        manage.ensure(wish, False, whole.machine)
    cuts = 0
    for count in range(1, 40):
        tree = Tree(tmp_path / f"cut{count}")
        tree.initramfs_of("nouveau")
        for wish in STEPS[:step]:
            manage.ensure(wish, False, tree.machine)
        if not killed_at(count, tree, STEPS[step], monkeypatch):
            break
        cuts += 1
        manage.ensure(STEPS[step], False, tree.machine)
        assert snapshot(tree) == snapshot(whole), f"killed at call {count}"
        assert tree.initramfs == whole.initramfs
        assert manage.ensure(STEPS[step], False, tree.machine).actions == []
    assert cuts >= 4
