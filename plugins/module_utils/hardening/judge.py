# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Running GPU containers against the rules that checks hold run lines against. Pure.

What runs is known by its OCI specification, which every engine writes, Docker, containerd, Podman
and CRI-O alike. It is told as the flags that would make such a container, so that a rule is
written once.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..checks.documents.container import ContainerSpec
from ..checks.host import HostView
from ..checks.model import Given, Hit, Position
from ..checks.rules import run_security
from ..settings.model import EFFECTIVE, INERT, UNSUPPORTED, Setting, Target
from .model import Bundle, Finding, HardeningError, Host, Wish, allows_everything, mapping

_RULES: tuple[tuple[str, Callable[[Any, Any], Iterable[Hit]], str], ...] = (
    (
        "privileged",
        run_security.privileged,
        "Start it with single devices (gpus, device) and single capabilities (cap-add).",
    ),
    (
        "cap-sys-admin",
        run_security.cap_sys_admin,
        "Start it without SYS_ADMIN: of GPU tools only DCGM's profiling metrics need it.",
    ),
    (
        "seccomp-unconfined",
        run_security.seccomp_unconfined,
        "Start it with the engine's default profile; NUMA policies need cap-add SYS_NICE only.",
    ),
)
_SELINUX_MODULE = "nvidia-container"


def findings(bundles: Sequence[Bundle], accepted: Sequence[str]) -> list[Finding]:
    """What these containers may do that GPU work does not need."""
    found = []
    for bundle in bundles:
        spec = container_spec(bundle)
        for name, judge, fix in _RULES:
            for hit in judge(spec, HostView()):
                found.append(
                    Finding(
                        container=bundle.name,
                        rule=name,
                        seen=hit.seen,
                        fix=fix,
                        accepted=any(fnmatch.fnmatchcase(bundle.name, p) for p in accepted),
                    )
                )
    return found


def container_spec(bundle: Bundle) -> ContainerSpec:
    """The container as if it had been asked for on a command line."""
    at = Position(bundle.name)
    flags: dict[str, tuple[Given, ...]] = {}
    everything = allows_everything(bundle.spec)
    if everything:
        flags["privileged"] = (Given("true", at, "--privileged"),)
    if "CAP_SYS_ADMIN" in _bounding(bundle.spec):
        flags["cap-add"] = (Given("SYS_ADMIN", at, "--cap-add"),)
    linux = mapping(bundle.spec.get("linux"))
    # privileged switches it off too, which is one finding and not two.
    if not mapping(linux.get("seccomp")) and not everything:
        flags["security-opt"] = (Given("seccomp=unconfined", at, "--security-opt"),)
    nodes = [mapping(one) for one in linux.get("devices") or []]
    fuse = any(node.get("path") == "/dev/fuse" for node in nodes)
    if fuse:
        flags["device"] = (Given("/dev/fuse", at, "--device"),)
    return ContainerSpec(at=at, how="run", name=bundle.name, flags=flags)


def refusals(wish: Wish, host: Host, found: Sequence[Finding]) -> list[str]:
    """Why nothing is done, one sentence each, with names and what to do."""
    said = []
    if wish.audit == "refuse":
        said += [
            f"container {one.container}: {one.seen} {one.fix}" for one in found if not one.accepted
        ]
    profile = seccomp_profile(host)
    if wish.keep_seccomp and profile == "unconfined":
        said.append(
            "Docker's default seccomp profile is unconfined: every container that does not ask for "
            "one runs without a filter. Take seccomp-profile out of daemon.json, or "
            "--seccomp-profile out of the unit"
        )
    if wish.env_injection is False and not host.envvar_off and not wish.losers_accepted:
        if host.docker not in ("running", "absent"):
            said.append(
                f"Docker is {host.docker} ({host.reason or 'no reason given'}), so it is not known "
                "which of its containers would lose their GPU without the environment variable; "
                "start it and run again"
            )
        losers = [
            f"{name} ({'runs' if runs else 'stopped'})"
            for name, runs in sorted(host.asking.items())
        ]
        if losers:
            said.append(
                "without the environment variable these containers lose their GPU at their next "
                f"start: {', '.join(losers)}. Start them with CDI (--device nvidia.com/gpu=…), or "
                "allow it (hardening_env_injection_losers_accepted)"
            )
    return said


def seccomp_profile(host: Host) -> str | None:
    """``builtin``, ``unconfined``, a path; "" for a kernel without seccomp; None: not known."""
    if host.security_options is None:
        return None
    for option in host.security_options:
        parts = dict(part.partition("=")[::2] for part in option.split(","))
        if parts.get("name") == "seccomp":
            # Before Docker 23 the built-in profile was called default.
            profile = parts.get("profile", "builtin")
            return "builtin" if profile == "default" else profile
    return ""


def settings(wish: Wish, host: Host) -> list[Setting]:
    """What the engine itself says of the settings that are asked for."""
    found = []
    if wish.keep_seccomp:
        profile = seccomp_profile(host)
        if profile is None:
            why = f"Docker is {host.docker}, so its profile is not known"
            found.append(Setting(_SECCOMP, _ANY, None, INERT, why, _INFO))
        elif profile == "":
            why = "the engine or this kernel has no seccomp"
            found.append(Setting(_SECCOMP, _ANY, "none", UNSUPPORTED, why, _INFO))
        else:
            found.append(Setting(_SECCOMP, _ANY, profile, EFFECTIVE, "", _INFO))
    return found


_SECCOMP = "Docker seccomp profile"
_INFO = "docker info"
_ANY = "a filter"


def selinux_target(wish: Wish, host: Host) -> Target | None:
    """What is to be remembered of the SELinux type; None where it can be used, or is not asked."""
    if not wish.selinux_type:
        return None
    name = f"SELinux type {wish.selinux_type}"
    if host.selinux == "disabled":
        why = "SELinux does not run on this host, so a type has no effect"
        return Target(name, INERT, host.selinux, "usable", why)
    if host.selinux_modules is None:
        why = "the policy's modules cannot be listed (semodule -l)"
        return Target(name, UNSUPPORTED, "", "usable", why)
    if not any(one.startswith(_SELINUX_MODULE) for one in host.selinux_modules):
        why = (
            f"the policy has no module {_SELINUX_MODULE}, and a container of that type would not "
            "start: install the module, or keep container_t with setsebool -P "
            "container_use_devices on"
        )
        return Target(name, UNSUPPORTED, "no module", "usable", why)
    return None


def daemon_config(wish: Wish) -> dict[str, Any]:
    """Keys of Docker's configuration to set."""
    if wish.no_new_privileges is None:
        return {}
    return {"no-new-privileges": wish.no_new_privileges}


def toolkit_config(wish: Wish) -> dict[str, Any]:
    """Keys of the toolkit's configuration to set."""
    if wish.env_injection is None:
        return {}
    return {"accept-nvidia-visible-devices-envvar-when-unprivileged": wish.env_injection}


def parse_wish(options: Mapping[str, Any]) -> Wish:
    """The wish of a module's options. Raises HardeningError."""
    kind = str(options.get("selinux_type") or "")
    if kind and not kind.replace("_", "").isalnum():
        raise HardeningError(f"selinux_type is {kind!r}, wanted a type such as nvidia_container_t")
    return Wish(
        audit=str(options.get("audit") or "report"),
        accepted=tuple(map(str, options.get("accepted") or [])),
        keep_seccomp=bool(options.get("keep_seccomp", True)),
        env_injection=options.get("env_injection"),
        losers_accepted=bool(options.get("env_injection_losers_accepted")),
        no_new_privileges=options.get("no_new_privileges"),
        selinux_type=kind,
    )


def _bounding(spec: Mapping[str, Any]) -> frozenset[str]:
    capabilities = mapping(mapping(spec.get("process")).get("capabilities"))
    return frozenset(map(str, capabilities.get("bounding") or []))
