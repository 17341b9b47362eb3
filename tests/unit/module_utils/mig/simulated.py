# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host with the lab's simulated NVML library, for the tests of the MIG executor."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("executor_program.py")
CHECKOUT = Path(__file__).resolve().parents[4]


def build(directory: Path, profile: str) -> Path:
    """The library and the state of one recorded machine."""
    command = [sys.executable, str(CHECKOUT / "tests" / "simgpu"), "local"]
    subprocess.run(
        [*command, "--output", str(directory), "--profile", profile],
        check=True,
        capture_output=True,
    )
    return directory


class Host:
    """One host: ``root`` is its file system, ``units`` its systemd, GPUs as ``built`` says."""

    def __init__(self, built: Path, directory: Path) -> None:
        self.root = directory / "root"
        self.state = directory / "state"
        self.built = built
        for path in ("sys/module", "etc", "dev"):
            (self.root / path).mkdir(parents=True)
        shutil.copy(built / "state", self.state)
        # Holders are real processes of this machine.
        (self.root / "proc").symlink_to("/proc")
        self.set_units({})

    def set_units(self, units: Mapping[str, Mapping[str, Any]]) -> None:
        """Replace all units; nothing was done to them yet."""
        document = {"units": units, "log": []}
        (self.root / "units.json").write_text(json.dumps(document))

    @property
    def active(self) -> list[str]:
        """The units that run."""
        units = json.loads((self.root / "units.json").read_text())["units"]
        return sorted(name for name, unit in units.items() if unit["active"])

    @property
    def log(self) -> list[str]:
        """What was done to units: ``stop dcgm.service``."""
        log: list[str] = json.loads((self.root / "units.json").read_text())["log"]
        return log

    def set_state(self, *lines: str) -> None:
        """Add lines to the state of the simulated driver: ``gpu 0 mig_reset reboot``."""
        self.state.write_text(self.state.read_text() + "".join(f"{line}\n" for line in lines))

    def drop_state(self, start: str) -> None:
        """Take the lines away that start so."""
        lines = self.state.read_text().splitlines(keepends=True)
        self.state.write_text("".join(line for line in lines if not line.startswith(start)))

    def reboot(self, identity: str = "second") -> None:
        """Instances are gone, pending modes are there."""
        self.drop_state("boot ")
        self.set_state(f"boot {identity}")

    def do(self, verb: str, layout: Any = None, **job: Any) -> dict[str, Any]:
        """Run one verb of the executor."""
        answer = run_jobs(self.built, [self.job(verb, layout, **job)])[0]
        assert answer is not None, "the run was killed"
        return answer

    def job(self, verb: str, layout: Any = None, **job: Any) -> dict[str, Any]:
        """A job for :func:`run_jobs`."""
        options = dict(job.pop("options", {}))
        if layout is not None:
            options["layout"] = layout
        where = {"root": str(self.root), "state": str(self.state)}
        return {"verb": verb, "options": options, **where, **job}

    def apply(self, layout: Any = None, **job: Any) -> dict[str, Any]:
        """Apply a layout; it must succeed."""
        answer = self.do("apply", layout, **job)
        assert "error" not in answer, answer["error"]
        return answer

    def view(self, **job: Any) -> dict[str, Any]:
        """What ``mig_layout_info`` returns."""
        return self.do("view", **job)

    def places(self, index: int = 0) -> list[str]:
        """``1g.5gb@0`` of every MIG device of a GPU, by place; [] while MIG is off."""
        return [
            f"{device['profile']}@{one['start']}"
            for one in self.view()["gpus"][index]["instances"]
            for device in one["devices"]
        ]

    def uuids(self, index: int = 0) -> dict[str, str]:
        """Place -> UUID of every MIG device of a GPU."""
        return {
            f"{device['profile']}@{one['start']}": device["uuid"]
            for one in self.view()["gpus"][index]["instances"]
            for device in one["devices"]
        }

    def file(self, path: str) -> Path:
        """A path below the root."""
        return self.root / path.lstrip("/")


# One program for each machine: to start one takes as long as several changes.
_programs: dict[Path, subprocess.Popen[str]] = {}


def run_jobs(built: Path, jobs: list[dict[str, Any]]) -> list[dict[str, Any] | None]:
    """Each job's answer, None for one that was killed. See ``executor_program``."""
    program = _programs.get(built) or _started(built)
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write(json.dumps(jobs) + "\n")
    program.stdin.flush()
    line = program.stdout.readline()
    assert line, (built / "stderr").read_text()
    answers: list[dict[str, Any] | None] = json.loads(line)
    return answers


def stop_programs() -> None:
    """End all of them; none is left behind."""
    while _programs:
        with _programs.popitem()[1] as program:
            program.kill()


def _started(built: Path) -> subprocess.Popen[str]:
    with (built / "stderr").open("w") as stderr:
        _programs[built] = subprocess.Popen(
            [sys.executable, "-W", "error", str(PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(sys.path),
                "LD_LIBRARY_PATH": str(built),
            },
            text=True,
        )
    return _programs[built]
