# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""grubby keeps one value of a key: what it would take from others is not asked of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.boot import generated, manage
from ansible_collections.steadygpu.host.plugins.module_utils.boot.grubby import Grubby
from ansible_collections.steadygpu.host.plugins.module_utils.boot.model import BootError, Wish
from ansible_collections.steadygpu.host.plugins.module_utils.settings import record

from .boot_tree import Tree


class Replacing(Tree):
    """Its grubby puts a value in the place of another one of the same key, as the real one does.

    Where ``careless``, also of a key that only ends alike.
    """

    careless = False

    def _grubby(self, rest: Sequence[str]) -> None:
        given = dict(one.lstrip("-").split("=", 1) for one in rest)
        gone = given.get("remove-args", "").split()
        for entry in self.entries:
            entry[:] = [word for word in entry if word not in gone]
            for word in given.get("args", "").split():
                self._put(entry, word)

    def _put(self, entry: list[str], word: str) -> None:
        name = word.partition("=")[0] + "="
        found = [
            place
            for place, one in enumerate(entry)
            if (name in one if self.careless else one.startswith(name))
        ]
        for place in found:
            entry[place] = entry[place].partition(name)[0] + word
        entry += [] if found else [word]


@pytest.fixture
def tree(tmp_path: Path) -> Replacing:
    tree = Replacing(tmp_path, programs=["grubby"])
    tree.programs.remove("update-grub")
    tree.entries = [["ro", "rd.lvm.lv=rhel/root"], ["ro", "rd.lvm.lv=rhel/root"]]
    return tree


@pytest.mark.parametrize("check_mode", [True, False])
def test_the_root_of_others_is_not_replaced(tree: Replacing, check_mode: bool) -> None:
    wish = Wish(parameters=("rd.lvm.lv=vg/data",), modules=("loop",))
    with pytest.raises(BootError, match=r"have, or would have, rd\.lvm\.lv=rhel/root"):
        manage.ensure(wish, check_mode, tree.machine)
    assert tree.entries == [["ro", "rd.lvm.lv=rhel/root"]] * 2
    assert not any(one.startswith(("grubby", "modprobe loop")) for one in tree.ran)


def test_two_values_of_one_key_are_not_both_given(tree: Replacing) -> None:
    with pytest.raises(BootError, match="keeps one console"):
        manage.ensure(Wish(parameters=("console=tty0", "console=ttyS0")), False, tree.machine)
    assert not any(one.startswith("grubby") for one in tree.ran)


def test_a_value_of_ours_may_be_changed(tree: Replacing) -> None:
    manage.ensure(Wish(parameters=("console=tty0",)), False, tree.machine)
    manage.ensure(Wish(parameters=("console=ttyS0",)), False, tree.machine)
    assert tree.entries == [["ro", "rd.lvm.lv=rhel/root", "console=ttyS0"]] * 2
    manage.ensure(Wish(), False, tree.machine)
    assert tree.entries == [["ro", "rd.lvm.lv=rhel/root"]] * 2


def test_what_grubby_took_away_is_told_with_the_entry_as_it_was(tree: Replacing) -> None:
    tree.careless = True
    tree.entries = [["ro", "intel_iommu=on"]]
    with pytest.raises(
        BootError, match=r"took intel_iommu=on away.*this entry had: ro intel_iommu"
    ):
        Grubby(tree.machine).apply(["iommu=pt"], [])


@pytest.mark.parametrize("kexec", [True, False])
def test_an_undone_change_takes_the_words_out_of_the_entries(tree: Replacing, kexec: bool) -> None:
    manage.ensure(Wish(parameters=("iommu=pt",)), False, tree.machine)
    then = record.load("kernel", str(tree.root))
    manage.ensure(Wish(parameters=("iommu=pt", "nvme.poll_queues=8")), False, tree.machine)
    now = record.load("kernel", str(tree.root))
    if kexec:
        tree.write("proc/cmdline", "ro\n")
    run = "run grubby --update-kernel=ALL --remove-args="
    assert generated.go_back(now, then, tree.machine) == ([run + "nvme.poll_queues=8"], [])
    assert generated.go_back(now, None, tree.machine) == ([run + "iommu=pt"], [])
    assert tree.entries == [["ro", "rd.lvm.lv=rhel/root"]] * 2
    done, left = generated.go_back(None, then, tree.machine)
    assert (done, left) == (["run grubby --update-kernel=ALL --args=iommu=pt"], [])


def test_entries_that_cannot_be_changed_are_told(tree: Replacing) -> None:
    manage.ensure(Wish(parameters=("iommu=pt",)), False, tree.machine)
    now = record.load("kernel", str(tree.root))
    tree.broken.add("grubby")
    done, (left,) = generated.go_back(now, None, tree.machine)
    assert done == []
    assert "entries still have iommu=pt" in left
