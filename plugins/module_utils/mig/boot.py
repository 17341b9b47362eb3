# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layout that comes back at boot, and the unit that brings it, before any engine starts.

MIG mode outlives a reboot on Ampere only and instances outlive none (MIG user guide). The
unit only orders itself before the engines: when it fails, they start all the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass

from .. import boot_unit, vouched
from ..atomic import read_text
from ..boot_unit import COMMAND
from ..process import CommandMissingError, run
from . import cdi, targets
from .model import MigError

CONFIG = "/etc/steadygpu/mig.json"
# How long the unit waits for the driver, and for each of its answers.
DEADLINE_S = 60
# When the run ends itself, in good order. systemd, which would end it anywhere, comes later.
BUDGET_S = 150
_TIMEOUT_S = 180
_VERSION = 1

# Who must not run, or not see the GPUs, before the instances are there.
_BEFORE = (
    f"{boot_unit.ENGINES} "
    "nvidia-cdi-refresh.service nvidia-persistenced.service nvidia-dcgm.service dcgm.service "
    "display-manager.service slurmd.service"
)
_TEXT = f"""\
# Written by steadygpu.host.mig_layout, which also removes it.
[Unit]
Description=Bring back the MIG layout of the GPUs
Documentation=man:nvidia-smi(1)
ConditionPathExists={CONFIG}
After=local-fs.target systemd-modules-load.service systemd-udev-settle.service
Before={_BEFORE}

[Service]
Type=oneshot
# A second start of multi-user.target must not change GPUs that work by then.
RemainAfterExit=yes
TimeoutStartSec={_TIMEOUT_S}
ExecStart={COMMAND} mig apply --boot

[Install]
WantedBy=multi-user.target
"""
_UNIT = boot_unit.BootUnit("steadygpu-mig.service", _TEXT)


@dataclass(frozen=True)
class Config:
    """``/etc/steadygpu/mig.json``: what to bring back, and the specification to refresh."""

    gpus: tuple[targets.Target, ...]
    cdi: cdi.Settings | None = None


def read_config(root: str = "/") -> Config | None:
    """None without the file. Raises MigError for one that is not ours."""
    path = _below(root, CONFIG)
    text = read_text(path)
    if text is None:
        return None
    try:
        document = json.loads(text)
        if document["version"] != _VERSION:
            raise ValueError(f"version {document['version']!r}, this reads {_VERSION}")
        settings = document["cdi"]
        kept = None if settings is None else cdi.Settings(**settings)
        return Config(targets.from_json(path, document["gpus"]), kept)
    except (ValueError, KeyError, TypeError) as error:
        raise MigError(
            f"{path} is not what this program writes ({type(error).__name__}: {error}); write it "
            "anew with steadygpu.host.mig_layout"
        ) from error


def merged(former: Config | None, gpus: Sequence[targets.Target]) -> tuple[targets.Target, ...]:
    """The GPUs of a change over those of earlier ones, which it did not touch. Pure."""
    kept = {} if former is None else {one.uuid: one for one in former.gpus}
    kept.update({one.uuid: one for one in gpus})
    return tuple(kept[uuid] for uuid in sorted(kept))


def persist(config: Config, check_mode: bool, root: str = "/") -> list[str]:
    """Write the file and the unit, and enable it.

    Returns the actions; raises MigError for a unit that is not ours, and OSError.
    """
    document = {
        "version": _VERSION,
        "cdi": None if config.cdi is None else dict(vars(config.cdi)),
        "gpus": targets.to_json(config.gpus),
    }
    text = json.dumps(document, indent=2, sort_keys=True) + "\n"
    refuse_foreign(root)
    actions = []
    if read_text(_below(root, CONFIG)) != text:
        actions.append(f"write {CONFIG}")
        if not check_mode:
            vouched.write(_below(root, CONFIG), text, mode=0o644, root=root)
    return actions + boot_unit.install(_UNIT, check_mode, root)


def refuse_foreign(root: str = "/") -> None:
    """Raises MigError where the boot unit is not ours: to be asked before a GPU is changed."""
    try:
        boot_unit.refuse_foreign(_UNIT, root)
    except boot_unit.ForeignUnitError as error:
        raise MigError(str(error)) from error


def forget(check_mode: bool, root: str = "/") -> list[str]:
    """Nothing comes back at the next boot. Returns the actions; raises OSError."""
    actions = boot_unit.remove(_UNIT, check_mode, root)
    if os.path.exists(_below(root, CONFIG)):
        actions.append(f"remove {CONFIG}")
        if not check_mode:
            vouched.remove(_below(root, CONFIG), root)
    return actions


def start_later() -> list[str]:
    """Once Docker runs, let ``steadygpu mig resume`` start what a killed change left stopped.

    What went wrong, in words.
    """
    unit = ["--unit=steadygpu-mig-resume", "--property=After=docker.service"]
    try:
        done = run(["systemd-run", "--no-block", "--collect", *unit, COMMAND, "mig", "resume"])
    except CommandMissingError as error:
        return [f"run yourself: steadygpu mig resume ({error})"]
    return [] if done.ok else [f"run yourself: steadygpu mig resume ({done.said})"]


def _below(root: str, path: str) -> str:
    return os.path.join(root, path.lstrip("/"))
