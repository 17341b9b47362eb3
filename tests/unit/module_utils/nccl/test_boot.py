# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The unit that withdraws a stale topology file at boot, as systemd reads it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.nccl import boot, carrier

TEXT = boot.unit(carrier.FILE_PATH, carrier.SPEC_PATH).text


def _values(text: str, key: str) -> list[str]:
    return [line.partition("=")[2] for line in text.splitlines() if line.startswith(f"{key}=")]


def test_the_unit_runs_before_every_engine_and_cannot_keep_one_from_starting() -> None:
    before = _values(TEXT, "Before")[0].split()
    for engine in ("docker", "containerd", "podman", "crio", "kubelet"):
        assert f"{engine}.service" in before
    for key in ("Requires", "BindsTo", "RequiredBy", "PartOf"):
        assert _values(TEXT, key) == []
    assert _values(TEXT, "WantedBy") == ["multi-user.target"]


def test_a_withdrawal_is_no_failure_and_a_hang_ends() -> None:
    assert _values(TEXT, "ExecStart") == ["/usr/local/bin/steadygpu nccl --withdraw"]
    assert _values(TEXT, "SuccessExitStatus") == ["3"]
    settle = int(_values(TEXT, "ExecStartPre")[0].rpartition("=")[2])
    assert settle < int(_values(TEXT, "TimeoutStartSec")[0])


def test_without_the_command_or_a_specification_systemd_skips_it() -> None:
    assert _values(TEXT, "ConditionPathExists") == [carrier.SPEC_PATH, "/usr/local/bin/steadygpu"]


def test_other_places_are_told_as_systemd_unquotes_them() -> None:
    text = boot.unit('/srv/a "b"/50%/$x.xml', "/srv/50%.json").text
    assert _values(text, "ConditionPathExists")[0] == "/srv/50%%.json"
    assert _values(text, "ExecStart") == [
        "/usr/local/bin/steadygpu nccl --withdraw "
        r'--path "/srv/a \"b\"/50%%/$$x.xml" --spec-path "/srv/50%%.json"'
    ]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_has_no_complaint(tmp_path: Path) -> None:
    path = tmp_path / boot.UNIT
    # verify wants the programs to be there, which on this machine they are not.
    path.write_text(TEXT.replace("/usr/local/bin/steadygpu nccl", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    # It loads the engines' units of this machine too; only what it says of this one counts.
    said = [
        line for line in done.stderr.splitlines() if boot.UNIT in line and "udevadm" not in line
    ]
    assert said == []
