# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.probe.sight import (
    DENIED,
    NO_DRIVER,
    SCRIPT,
    SightError,
    parse,
)

SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]


def run_script(shell: str, devices: Path, *numbers: str) -> subprocess.CompletedProcess[str]:
    """The real script, looking into a directory of the test instead of /dev."""
    argv = [shell, "sh"] if shell == "busybox" else [shell]
    text = SCRIPT.replace("/dev/", f"{devices}/")
    return subprocess.run(
        [*argv, "-c", text, "sh", *numbers],
        capture_output=True,
        text=True,
        check=False,
        env={"LC_ALL": "C", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
    )


@pytest.mark.parametrize("shell", SHELLS)
def test_a_host_without_gpus_answers_with_an_empty_sight(shell: str, tmp_path: Path) -> None:
    done = run_script(shell, tmp_path)
    assert (done.stdout, done.stderr) == ("end\n", "")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_node_that_opens_is_called_opened(shell: str, tmp_path: Path) -> None:
    (tmp_path / "nvidia0").symlink_to("/dev/null")
    (tmp_path / "nvidia1").write_text("a file is no device")
    sight = parse(0, run_script(shell, tmp_path).stdout, "")
    assert sight.nodes == {f"{tmp_path}/nvidia0": "opened"}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_made_node_gets_one_of_the_kernels_answers(shell: str, tmp_path: Path) -> None:
    # Major 195 without a driver: "no driver" where mknod is allowed, "denied" where not.
    sight = parse(0, run_script(shell, tmp_path, "195:7").stdout, "")
    assert sight.made["195:7"] in (NO_DRIVER, DENIED, f"mknod: {DENIED}")
    again = parse(0, run_script(shell, tmp_path, "195:7").stdout, "")
    assert again == sight


def test_whole_gpus_are_told_from_the_other_nodes() -> None:
    text = "".join(
        f"node /dev/{name} opened\n" for name in ("nvidia0", "nvidia10", "nvidiactl", "nvidia-uvm")
    )
    assert parse(0, text + "end\n", "").gpus == ["/dev/nvidia0", "/dev/nvidia10"]


@pytest.mark.parametrize(
    ("code", "out", "err", "says"),
    [
        (0, "node /dev/nvidia0 opened\n", "", "node /dev/nvidia0"),
        (126, "", "exec failed: no such file", "no such file"),
        (137, "", "", "said: nothing"),
    ],
)
def test_an_answer_without_its_end_is_no_answer(code: int, out: str, err: str, says: str) -> None:
    with pytest.raises(SightError, match=says):
        parse(code, out, err)
