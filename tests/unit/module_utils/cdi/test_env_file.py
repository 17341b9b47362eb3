# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The block of ours in the environment file of the vendor's unit."""

from __future__ import annotations

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.cdi import env_file

THEIRS = "# Options of nvidia-ctk cdi generate\n#NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=/x\nFOO=bar\n"
FLAGS = "NVIDIA_CTK_CDI_GENERATE_FEATURE_FLAGS"
OUTPUT = "NVIDIA_CTK_CDI_OUTPUT_FILE_PATH"


def _block(*lines: str) -> str:
    return "\n".join(
        [
            "# BEGIN steadygpu.host.cdi_spec, which also removes it",
            *lines,
            "# END steadygpu.host.cdi_spec",
            "",
        ]
    )


def test_the_defaults_need_no_line() -> None:
    assert env_file.wanted("/run/cdi/nvidia.yaml", ["uuid", "index"], []) == {}
    assert env_file.wanted("/etc/cdi/n.yaml", ["index"], ["a", "b"]) == {
        OUTPUT: "/etc/cdi/n.yaml",
        "NVIDIA_CTK_CDI_GENERATE_DEVICE_NAME_STRATEGIES": "index",
        FLAGS: "a,b",
    }
    assert not env_file.plan(THEIRS, {}).changed
    assert not env_file.plan(None, {}).changed


@pytest.mark.parametrize("text", [None, "", THEIRS, "NO_NEWLINE=1"])
def test_a_block_is_added_changed_and_taken_back(text: str | None) -> None:
    first = env_file.plan(text, {FLAGS: "a"})
    gap = "\n" if text == "NO_NEWLINE=1" else ""
    assert first.after == (text or "") + gap + _block(f"{FLAGS}=a")
    assert not env_file.plan(first.after, {FLAGS: "a"}).changed
    second = env_file.plan(first.after, {FLAGS: "b"})
    assert second.after == (text or "") + gap + _block(f"{FLAGS}=b")
    assert env_file.plan_absent(second.after).after == ((text or "") + gap or None)


def test_a_block_without_its_end_takes_nothing_of_others_with_it() -> None:
    text = _block(f"{FLAGS}=a").replace("# END steadygpu.host.cdi_spec\n", "") + THEIRS
    assert env_file.plan_absent(text).after == THEIRS


def test_the_value_of_somebody_else_is_not_overridden() -> None:
    theirs = f"{OUTPUT}=/etc/cdi/nvidia.yaml\n"
    assert not env_file.plan(theirs, {OUTPUT: "/etc/cdi/nvidia.yaml"}).changed
    for variables in ({}, {OUTPUT: "/srv/nvidia.yaml"}):
        with pytest.raises(env_file.ForeignValueError, match=OUTPUT):
            env_file.plan(theirs, variables)
    with pytest.raises(env_file.ForeignValueError, match="wanted is x,a"):
        env_file.plan(f"{FLAGS}=x\n", {FLAGS: "a"})
    assert not env_file.plan(f"{FLAGS}=a,x\n", {FLAGS: "a"}).changed
    assert not env_file.plan(f"{OUTPUT}=/run/cdi/nvidia.yaml\n", {}).changed
