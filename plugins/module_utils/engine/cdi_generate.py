# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A CDI specification from ``nvidia-ctk cdi generate``, kept only when an engine can use it.

The tool is not trusted to know: without ``/dev/nvidia-caps`` nodes it writes a spec that
silently lacks them, and its exit status is 0 for a spec that the engine cannot read.

Since toolkit 1.19 it writes version 0.7.0 of the format where it has group ids to add. For an
engine that does not read that, it is asked to leave them out, and then writes an older version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .. import vouched
from ..atomic import read_text
from ..process import find_program, run
from ..versions import parse
from . import cdi_versions
from .cdi import Spec, parse_spec

# What the tool writes since 1.19 unless told otherwise, and how it is told.
WRITES = "0.7.0"
NO_GROUPS = "no-additional-gids-for-device-nodes"
_NAMES = {"docker": "Docker", "podman": "Podman", "crio": "CRI-O"}


class SpecError(Exception):
    """No usable spec could be made; the file is as it was."""


@dataclass(frozen=True)
class SpecPlan:
    """``after`` is None when the file is to go, or when ``unknown`` (only the tool could say).

    ``flags`` are the feature flags that the tool needed, for whoever runs it next time.
    ``unread`` says which engine beside Docker does not read it even so.
    """

    path: str
    before: str | None
    after: str | None
    actions: tuple[str, ...]
    devices: tuple[str, ...] = ()
    unknown: bool = False
    cdi_version: str | None = None
    flags: tuple[str, ...] = ()
    unread: str | None = None

    @property
    def changed(self) -> bool:
        """Would the file be written or removed?"""
        return self.unknown or self.before != self.after


def plan_present(
    path: str,
    ctk: str,
    strategies: Sequence[str],
    docker_version: str | None,
    deadline_s: float,
    others: Mapping[str, str] | None = None,
) -> SpecPlan:
    """Generate, judge, compare. Raises SpecError.

    ``others`` are engines beside Docker that should read it, with their versions
    (:data:`.cdi_versions.ENGINES`). Docker that cannot read it is a refusal, theirs is not.
    """
    docker = {"docker": docker_version} if docker_version else {}
    before = read_text(path)
    form = "json" if path.endswith(".json") else "yaml"
    flags: tuple[str, ...] = ()
    text = generate(ctk, strategies, form, deadline_s)
    spec = parse_spec(path, text)
    if spec.status == "valid" and unread(spec.cdi_version, {**docker, **(others or {})}):
        older = _older(path, ctk, strategies, form, deadline_s)
        if older is not None and parse(older[1].cdi_version) < parse(spec.cdi_version):
            (text, spec), flags = older, (NO_GROUPS,)
    problem = refuse(spec, docker)
    if problem:
        raise SpecError(f"{path} was left as it is: {problem}")
    verb = "create" if before is None else "replace"
    actions = () if before == text else (f"{verb} {path} with {len(spec.devices)} device names",)
    return SpecPlan(
        path,
        before,
        text,
        actions,
        tuple(spec.devices),
        cdi_version=spec.cdi_version,
        flags=flags,
        unread=unread(spec.cdi_version, others or {}),
    )


def _older(
    path: str, ctk: str, strategies: Sequence[str], form: str, deadline_s: float
) -> tuple[str, Spec] | None:
    """The specification without group ids; None where the tool makes none."""
    try:
        text = generate(ctk, strategies, form, deadline_s, (NO_GROUPS,))
    except SpecError:
        # A tool from before 1.19 does not know the flag.
        return None
    spec = parse_spec(path, text)
    return (text, spec) if spec.status == "valid" else None


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


def generate(
    ctk: str, strategies: Sequence[str], form: str, deadline_s: float, flags: Sequence[str] = ()
) -> str:
    """The spec as the tool prints it in ``form`` (``yaml``, ``json``).

    Raises SpecError with what the tool said.
    """
    argv = command(ctk, strategies, flags, form=form)
    done = run(argv, deadline_s)
    if not done.ok:
        raise SpecError(
            f"{' '.join(argv)} failed: {done.said}. Does the driver answer? Try: nvidia-smi -L"
        )
    return done.stdout


def command(
    ctk: str,
    strategies: Sequence[str],
    flags: Sequence[str] = (),
    form: str | None = None,
    output: str | None = None,
) -> list[str]:
    """The words of the command that makes a specification; without ``output`` it is printed."""
    argv = [ctk, "cdi", "generate"]
    argv += [f"--format={form}"] if form else []
    argv += [f"--output={output}"] if output else []
    argv += [f"--device-name-strategy={strategy}" for strategy in strategies]
    return argv + [f"--feature-flag={flag}" for flag in flags]


def refuse(spec: Spec, engines: Mapping[str, str]) -> str | None:
    """Why this spec must not be written; None when it may be.

    ``all`` alone is no device: the tool adds it to an empty list as well.
    """
    if spec.status != "valid":
        return f"the generated spec is not usable: {spec.reason}"
    if not set(spec.devices) - {"all"}:
        return "the tool found no device. Is the driver loaded? Try: nvidia-smi -L"
    return unread(spec.cdi_version, engines)


def unread(cdi_version: str | None, engines: Mapping[str, str]) -> str | None:
    """Which engine does not read this version, and what helps; None when all do."""
    wanted = cdi_version or ""
    for engine, version in engines.items():
        if not cdi_versions.reads(engine, version, wanted):
            name, since = _NAMES.get(engine, engine), cdi_versions.since(engine, wanted)
            known = cdi_versions.highest(engine, version)
            limit = f"it reads up to {known}" if known else "it reads none at all"
            return (
                f"the spec has CDI version {wanted}, which {name} {version} does not read "
                f"({limit}); upgrade {name}" + (f" to {since} or newer" if since else "")
            )
    return None


def available(ctk: str) -> bool:
    """Is the tool on this host?"""
    return find_program(ctk) is not None
