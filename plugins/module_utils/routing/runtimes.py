# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Is a runtime of ``daemon.json`` fit to run containers? Its definition, program and version. Pure.

Versions are judged by the tables of the checks, as a distribution ships them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..checks.host import HostPackage, HostView
from ..checks.model import Severity
from ..checks.versions.components import TITLES
from ..checks.versions.matrix import Exposure, Standing, exposures

# What the first line of ``--version`` says, and the component of the version tables; "" for a
# runtime of whose faults we have no table.
_KINDS = (
    (re.compile(r"NVIDIA Container Runtime\S* version v?(\d\S*)"), "toolkit"),
    (re.compile(r"^runc version v?(\d\S*)", re.MULTILINE), "runc"),
    (re.compile(r"^crun version v?(\d\S*)", re.MULTILINE), ""),
    (re.compile(r"^youki (?:version )?v?(\d\S*)", re.MULTILINE), ""),
    (re.compile(r"^runsc version (\S+)", re.MULTILINE), ""),
    (re.compile(r"^kata-runtime\s*:\s*v?(\d\S*)", re.MULTILINE), ""),
)
# Flags of runc's create and run. Docker puts runtimeArgs before the subcommand.
_OF_CREATE = ("--no-pivot", "--no-new-keyring", "--preserve-fds", "--bundle", "-b", "--pid-file")
# Shims that containerd 2.0 removed (containerd docs/containerd-2.0.md).
_GONE_SHIMS = ("io.containerd.runtime.v1.linux", "io.containerd.runc.v1")
_SHIM = re.compile(r"io\.containerd\.([a-z0-9-]+)\.(v\d+)")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


@dataclass(frozen=True)
class Program:
    """A runtime's program: where it was found (None: nowhere), and what it said of itself.

    ``package`` with its ``package_version`` owns the file, "" for one put there by hand.
    """

    asked: str
    path: str | None = None
    said: str = ""
    package: str = ""
    package_version: str = ""
    writable: bool = False


@dataclass(frozen=True)
class Verdict:
    """What is said of one runtime. ``refused`` forbid it, ``unsafe`` do unless they are allowed."""

    name: str
    program: str | None = None
    component: str = ""
    version: str | None = None
    package: str = ""
    missing: bool = False
    refused: tuple[str, ...] = ()
    unsafe: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    containers: tuple[str, ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """As JSON types."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in vars(self).items()}


def program_of(definition: Mapping[str, Any]) -> str | None:
    """The program that runs a runtime's containers; None where the definition names none."""
    path = definition.get("path")
    if isinstance(path, str) and path:
        return path
    shim = definition.get("runtimeType")
    if not isinstance(shim, str) or not shim:
        return None
    options = definition.get("options")
    binary = options.get("BinaryName") if isinstance(options, Mapping) else None
    if isinstance(binary, str) and binary:
        return binary
    match = _SHIM.fullmatch(shim)
    return "containerd-shim-{}-{}".format(*match.groups()) if match else shim


def judge(
    name: str,
    definition: Any,
    program: Program | None,
    os: str | None = None,
    containers: Sequence[str] = (),
) -> Verdict:
    """What is to be said of a runtime; ``os`` is the distribution's key (``debian 13``)."""
    refused = tuple(_definition(name, definition))
    if program is None:
        return Verdict(name, refused=refused, containers=tuple(containers))
    if program.path is None:
        said = f"{program.asked}: there is no such program; install it first, or name its path"
        return Verdict(name, missing=True, refused=(*refused, said), containers=tuple(containers))
    if program.writable:
        said = f"{program.path} or its directory can be written by everybody, who would be root "
        refused = (*refused, said + "with the next container; take the right away: chmod o-w")
    unsafe: list[str] = []
    warnings: list[str] = []
    component, version = _version(program.said)
    if component and version:
        for group in _exposures(component, version, program, os):
            words = _words(component, version, group, program)
            (unsafe if group[0].severity >= Severity.ERROR else warnings).append(words)
    elif not program.writable:
        warnings.append(
            f"{program.path} is none of the runtimes whose faults are known here: its version was "
            "not judged"
        )
    return Verdict(
        name,
        program.path,
        component,
        version,
        program.package,
        False,
        refused,
        tuple(unsafe),
        tuple(warnings),
        tuple(containers),
    )


def _version(said: str) -> tuple[str, str | None]:
    """Component and version of a program; the runc that nvidia's names too is the engine's."""
    for pattern, component in _KINDS:
        match = pattern.search(said)
        if match:
            return component, match.group(1)
    return "", None


def _exposures(
    component: str, version: str, program: Program, os: str | None
) -> list[list[Exposure]]:
    """What is open, one list for what is grave and one for the rest, each by standing."""
    packages = {}
    if program.package:
        packages = {program.package: HostPackage(program.package_version)}
    # A file that no package owns may be a copy of a distribution's build. Which one nobody knows,
    # and no package will mend it, so its number alone counts.
    view = HostView(
        versions={component: version}, packages=packages, os=os if program.package else None
    )
    groups: dict[tuple[bool, Standing], list[Exposure]] = {}
    for found in exposures(component, view):
        one = found if program.package else replace(found, severity=found.fault.severity)
        groups.setdefault((one.severity >= Severity.ERROR, one.standing), []).append(one)
    return list(groups.values())


def _words(component: str, version: str, group: Sequence[Exposure], program: Program) -> str:
    cves = ", ".join(sorted({one.cve for one in group}))
    worst = max(group, key=lambda one: (one.fault.severity, one.fault.published))
    goal = worst.fixed
    if program.package and group[0].standing in (Standing.FIX_OUT, Standing.OPEN):
        way = f"upgrade the package {program.package} to {goal} or newer"
    elif program.package:
        way = f"upstream's fix is in {goal}; ask the distribution"
    else:
        way = f"put {goal} or newer there: no package updates it"
    return (
        f"{program.path} is {TITLES.get(component, component)} {version}, open to {cves}: "
        f"{worst.fault.what}; {way}"
    )


def _definition(name: str, definition: Any) -> Iterator[str]:
    if name == "runc":
        yield "the name runc is built into Docker; choose another"
    elif not NAME.fullmatch(name):
        yield f"{name!r} is no name of a runtime; wanted are letters, digits, dots and dashes"
    if not isinstance(definition, Mapping):
        yield "the definition is no mapping; wanted is {path: ...} or {runtimeType: ...}"
        return
    path, shim = definition.get("path"), definition.get("runtimeType")
    if bool(path) == bool(shim):
        what = "both path and runtimeType" if path else "neither path nor runtimeType"
        yield f"it has {what}; dockerd wants one of the two"
    if shim in _GONE_SHIMS:
        yield f"containerd 2.0 removed the shim {shim}; write io.containerd.runc.v2"
    args = definition.get("runtimeArgs") or ()
    if not isinstance(args, (list, tuple)) or not all(isinstance(one, str) for one in args):
        yield "runtimeArgs is no list of texts"
        return
    for word in args:
        flag = word.partition("=")[0]
        if flag == "--systemd-cgroup":
            yield (
                "runtimeArgs has --systemd-cgroup. Docker tells the runtime the cgroup driver "
                "itself, and a second opinion gives cgroup paths of the wrong form; leave it out "
                "and set exec-opts: [native.cgroupdriver=systemd] (engine_config of the role "
                "engine)"
            )
        elif flag in _OF_CREATE:
            yield (
                f"runtimeArgs has {flag}, a flag of runc create. Docker puts runtimeArgs before "
                "the subcommand, where runc does not know it: no container would start; leave it "
                "out"
            )
