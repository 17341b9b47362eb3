# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host and the files that configure it in, the host as these files say it is out. Pure.

What the running daemons say of themselves counts more than what a file says: a file fills in only
what is not known. The toolkit has no daemon, so its file is what counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ..engine.daemon_keys import key_of_flag
from .documents.commands import CommandLine
from .documents.daemon import DaemonConfig
from .documents.kernel import AptSource, AptSources, KernelCmdline
from .documents.toolkit import ToolkitConfig
from .documents.units import UnitFile
from .host import HostView


def refine(host: HostView, documents: Iterable[Any]) -> HostView:
    """``host`` with what the documents add: they must be files of that one host."""
    found = list(documents)
    for document in found:
        if isinstance(document, DaemonConfig):
            host = _with_daemon_config(host, document)
        elif isinstance(document, ToolkitConfig) and document.broken is None:
            host = _with_toolkit(host, document)
        elif isinstance(document, KernelCmdline) and host.cmdline is None:
            host = replace(host, cmdline=_cmdline(document))
    host = _with_daemon_flags(host, _daemon_lines(found))
    sources = tuple(s for d in found if isinstance(d, AptSources) for s in d.sources)
    return _with_evidence(host, "apt_sources", _apt(sources)) if sources else host


def _with_daemon_config(host: HostView, doc: DaemonConfig) -> HostView:
    if doc.broken is not None:
        return host
    default = doc.value("default-runtime")
    live = doc.value("live-restore")
    cdi = doc.value("features", "cdi")
    return replace(
        host,
        cgroup_driver=host.cgroup_driver or doc.cgroup_driver,
        default_runtime=host.default_runtime or (default if isinstance(default, str) else None),
        live_restore=_first(host.live_restore, live if isinstance(live, bool) else None),
        cdi_enabled=_first(host.cdi_enabled, cdi if isinstance(cdi, bool) else None),
    )


def _first(known: bool | None, said: bool | None) -> bool | None:
    return said if known is None else known


def _with_toolkit(host: HostView, doc: ToolkitConfig) -> HostView:
    """The runtime's mode. A file in somebody's home is not the one of the root engine."""
    if doc.is_user_file:
        return host
    return replace(host, toolkit_mode=doc.mode or host.toolkit_mode or "auto")


def _cmdline(doc: KernelCmdline) -> str:
    return " ".join(
        f"{given.spelled}={given.value}" if given.value else given.spelled
        for given in doc.parameters
    )


def _daemon_lines(documents: Iterable[Any]) -> list[CommandLine]:
    """Dockerd as its unit starts it: that of the last file with an ExecStart counts."""
    units = [d for d in documents if isinstance(d, UnitFile) and d.unit in ("docker.service", "")]
    units.sort(key=lambda unit: (unit.drop_in, unit.at.file))
    lines: list[CommandLine] = []
    for unit in units:
        if unit.named("dockerd"):
            lines = list(unit.named("dockerd"))
    return lines


def _with_daemon_flags(host: HostView, lines: list[CommandLine]) -> HostView:
    if not lines:
        return host
    flags: dict[str, str] = {}
    for line in lines:
        for name, given in line.flags.items():
            key = key_of_flag(name)
            words = [g.value or "true" for g in given]
            repeated = key is not None and key.kind.startswith("a list")
            flags[f"--{name}"] = ",".join(words) if repeated else words[-1]
    docker = host.facts.get("docker")
    known = docker.get("flags") if isinstance(docker, dict) else None
    if isinstance(known, dict):
        return host  # the unit that runs was asked
    return _with_evidence(host, "dockerd_flags", flags)


def _apt(sources: tuple[AptSource, ...]) -> tuple[AptSource, ...]:
    return tuple(sorted(sources, key=lambda source: source.at))


def _with_evidence(host: HostView, name: str, value: Any) -> HostView:
    return replace(host, evidence={**host.evidence, name: value})
