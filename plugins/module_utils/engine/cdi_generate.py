# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A CDI specification from ``nvidia-ctk cdi generate``, kept only when an engine can use it.

The tool is not trusted to know: without ``/dev/nvidia-caps`` nodes it writes a spec that
silently lacks them, and its exit status is 0 for a spec that the engine cannot read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import vouched
from ..atomic import read_text
from ..process import find_program, run
from .cdi import Spec, docker_reads, parse_spec


class SpecError(Exception):
    """No usable spec could be made; the file is as it was."""


@dataclass(frozen=True)
class SpecPlan:
    """``after`` is None when the file is to go, or when ``unknown`` (only the tool could say)."""

    path: str
    before: str | None
    after: str | None
    actions: tuple[str, ...]
    devices: tuple[str, ...] = ()
    unknown: bool = False

    @property
    def changed(self) -> bool:
        """Would the file be written or removed?"""
        return self.unknown or self.before != self.after


def plan_present(
    path: str, ctk: str, strategies: Sequence[str], docker_version: str | None, deadline_s: float
) -> SpecPlan:
    """Generate, judge, compare. Raises SpecError."""
    before = read_text(path)
    text = generate(ctk, strategies, "json" if path.endswith(".json") else "yaml", deadline_s)
    spec = parse_spec(path, text)
    problem = refuse(spec, docker_version)
    if problem:
        raise SpecError(f"{path} was left as it is: {problem}")
    verb = "create" if before is None else "replace"
    actions = () if before == text else (f"{verb} {path} with {len(spec.devices)} device names",)
    return SpecPlan(path, before, text, actions, tuple(spec.devices))


def plan_without_tool(path: str, ctk: str) -> SpecPlan:
    """What check mode can say before the toolkit is installed."""
    before = read_text(path)
    action = f"generate {path} once {ctk} is installed"
    return SpecPlan(path, before, before, (action,), unknown=True)


def plan_absent(path: str) -> SpecPlan:
    """Remove the file, if it is there."""
    before = read_text(path)
    return SpecPlan(path, before, None, () if before is None else (f"remove {path}",))


def carry_out(plan: SpecPlan, root: str = "/") -> None:
    """Bring the file to ``plan.after``, atomically. Raises OSError.

    ``root`` is the tree that the file is in.
    """
    if plan.before == plan.after:
        return
    if plan.after is None:
        vouched.remove(plan.path, root)
    else:
        vouched.write(plan.path, plan.after, root=root)


def generate(ctk: str, strategies: Sequence[str], form: str, deadline_s: float) -> str:
    """The spec as the tool prints it in ``form`` (``yaml``, ``json``).

    Raises SpecError with what the tool said.
    """
    argv = [ctk, "cdi", "generate", f"--format={form}"]
    argv.extend(f"--device-name-strategy={strategy}" for strategy in strategies)
    done = run(argv, deadline_s)
    if not done.ok:
        raise SpecError(
            f"{' '.join(argv)} failed: {done.said}. Does the driver answer? Try: nvidia-smi -L"
        )
    return done.stdout


def refuse(spec: Spec, docker_version: str | None) -> str | None:
    """Why this spec must not be written; None when it may be.

    ``all`` alone is no device: the tool adds it to an empty list as well.
    """
    if spec.status != "valid":
        return f"the generated spec is not usable: {spec.reason}"
    if not set(spec.devices) - {"all"}:
        return "the tool found no device. Is the driver loaded? Try: nvidia-smi -L"
    version = spec.cdi_version or ""
    if docker_version is not None and not docker_reads(docker_version, version):
        return (
            f"the spec has CDI version {version}, which Docker {docker_version} does not read; "
            "upgrade Docker (25.0 reads CDI at all, 26.1 reads 0.7.0)"
        )
    return None


def available(ctk: str) -> bool:
    """Is the tool on this host?"""
    return find_program(ctk) is not None
