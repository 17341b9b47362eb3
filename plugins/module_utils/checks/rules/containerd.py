# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on containerd's config.toml as such: version, names of tables, imports. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ...containerd.config import (
    CRI_IMAGES_V3,
    CRI_V1,
    CRI_V2,
    CRI_V3,
    NEEDS_RELEASE,
    NEWEST_VERSION,
    covers,
)
from ...containerd.dropin import is_ours
from ...versions import at_least, parse
from ..documents.containerd import ContainerdConfig
from ..host import HostView
from ..model import Hit, Needs, Severity
from ..registry import rule

_OLD = "containerd services/server/config/config.go at v1.7.24"
_NEW = "containerd cmd/containerd/server/config/config.go at v2.3.4"
_MIGRATE = "sudo containerd config migrate"


@rule(
    "containerd-config-syntax",
    "containerd's config.toml is not TOML",
    Severity.FATAL,
    reads=ContainerdConfig,
    reason="containerd does not start with it, and Docker not without containerd.",
    fix="Correct the file at the place named, then let containerd itself read it.",
    sources=(_OLD, _NEW),
)
def containerd_config_syntax(doc: ContainerdConfig, host: HostView) -> Iterator[Hit]:
    """The file, or one that it imports, cannot be read."""
    commands = ("containerd config dump > /dev/null",)
    if doc.broken is not None:
        seen = f"The file cannot be read here: {doc.broken.said}."
        yield Hit(doc.broken.at, seen, commands=commands)
    for path, error in doc.config.broken:
        where = f"{path}:{error.line}:{error.column}"
        yield Hit(doc.key_place("imports"), f"It imports {where}: {error.said}.", commands=commands)


@rule(
    "containerd-config-version",
    "This containerd does not read this version of its file",
    Severity.FATAL,
    reads=ContainerdConfig,
    reason="containerd refuses a file of a version that it does not know and does not start: 1.x "
    "reads up to version 2, 2.0 to 2.2 up to 3, 2.3 up to 4.",
    fix="Write the version that this containerd has: containerd config default shows it.",
    sources=(_OLD + " ValidateV2", _NEW + " ValidateVersion", "containerd RELEASES.md"),
    row="P9",
)
def containerd_config_version(doc: ContainerdConfig, host: HostView) -> Iterator[Hit]:
    """Too new, or said in the wrong type."""
    node = doc.get("version")
    if node is None:
        return
    release, place = host.version("containerd"), doc.place(node)
    if not isinstance(node.value, int) or isinstance(node.value, bool) or node.value < 0:
        yield Hit(place, f"version is {node.text or 'no number'}, wanted is a whole number.")
    elif node.value > NEWEST_VERSION:
        yield Hit(place, f"version is {node.value}; the newest there is, is {NEWEST_VERSION}.")
    elif node.value > 2:
        wanted = NEEDS_RELEASE[node.value]
        seen = f"version is {node.value}, which needs containerd {wanted}"
        if release is None:
            assumed = (f"containerd <{wanted}",)
            yield Hit(place, f"{seen}.", severity=Severity.INFO, assumed=assumed)
        elif not at_least(release, wanted):
            yield Hit(place, f"{seen}; this is {release}.")


@rule(
    "containerd-config-migrated",
    "containerd translates this file at every start",
    Severity.INFO,
    reads=ContainerdConfig,
    reason="A file of an older version still works; what a later release can set is not in it.",
    fix="Let containerd write it anew once, and compare.",
    sources=("containerd docs/containerd-2.0.md", _NEW),
    needs=(Needs("containerd", ">=2.0"),),
    row="P9",
)
def containerd_config_migrated(doc: ContainerdConfig, host: HostView) -> Iterator[Hit]:
    """A file of version 1 or 2 for a containerd that is known to be newer."""
    release = host.version("containerd")
    if release is not None and doc.version < 3 and doc.root.value and not doc.is_drop_in:
        seen = f"The file is of version {doc.version}; containerd is {release}."
        yield Hit(doc.at, seen, commands=(_MIGRATE,))


@rule(
    "containerd-plugin-uri",
    "containerd refuses this name of a plugin",
    Severity.FATAL,
    reads=ContainerdConfig,
    reason="From version 2 of the file on, disabled_plugins and required_plugins hold whole names; "
    "containerd does not start with a short one: invalid disabled plugin URI.",
    fix='Write the whole name: "io.containerd.grpc.v1.cri" for cri.',
    sources=(_OLD + " ValidateV2", _NEW + " ValidateVersion"),
)
def containerd_plugin_uri(doc: ContainerdConfig, host: HostView) -> Iterator[Hit]:
    """Cri where the whole name is wanted."""
    if doc.version < 2:
        return
    for key in ("disabled_plugins", "required_plugins"):
        for node in doc.config.main.texts(key):
            if "." not in node.value:
                full = CRI_V2 if node.value == "cri" else f"io.containerd.….v1.{node.value}"
                seen = f'{key} has "{node.value}", the file is of version {doc.version}.'
                yield Hit(doc.place(node), seen, f'Write "{full}".')


@rule(
    "containerd-section-of-other-version",
    "A table named as in another version of the file",
    Severity.ERROR,
    reads=ContainerdConfig,
    reason="The table for Kubernetes is called plugins.cri in version 1, "
    'plugins."io.containerd.grpc.v1.cri" in version 2 and plugins."io.containerd.cri.v1.runtime" '
    "from version 3 on. A table of another version is ignored without an error (containerd 1.x "
    "refuses plugins.cri in a file of version 2): pods run as if it were not there.",
    fix="Name the table as the version of the file wants it, or change the version.",
    sources=(
        "containerd docs/cri/config.md",
        "containerd issues 3843, 4806 and 5042",
        _OLD,
        _NEW,
    ),
    cases=("RT-012",),
    row="P9",
)
def containerd_section_of_other_version(doc: ContainerdConfig, host: HostView) -> Iterator[Hit]:
    """Settings that nobody reads."""
    plugins = doc.get("plugins")
    if plugins is None or doc.config.main.version > NEWEST_VERSION:
        return
    version = doc.version
    release = parse(host.version("containerd"))
    for key, node in plugins.items():
        if key.name not in (CRI_V1, CRI_V2, CRI_V3, CRI_IMAGES_V3) or not node.is_map:
            continue
        severity, assumed = _misplaced(key.name, version, release, frozenset(node.value))
        if severity is None:
            continue
        if doc.is_fragment:
            severity = min(severity, Severity.INFO)
        wanted = {1: CRI_V1, 2: CRI_V2}.get(version, CRI_V3)
        said = f"of version {version}" if doc.get("version") else "of version 1, as it says none"
        yield Hit(
            doc.key_place("plugins", key.name),
            f'The file is {said} and has plugins."{key.name}".',
            f'Name it plugins."{wanted}", or set the version that goes with the name.',
            (_MIGRATE,) if release >= (2,) else (),
            severity,
            assumed,
        )


# Settings of the old table that stayed in it when the others moved.
_STAYED = frozenset(
    [
        "disable_tcp_service",
        "stream_server_address",
        "stream_server_port",
        "stream_idle_timeout",
        "enable_tls_streaming",
        "x509_key_pair_streaming",
    ]
)


def _misplaced(
    table: str, version: int, release: tuple[int, ...], keys: frozenset[str]
) -> tuple[Severity | None, tuple[str, ...]]:
    """How bad a table of this name is in a file of this version for this containerd."""
    if table == CRI_V1:
        return (Severity.ERROR if version > 1 else None), ()
    if table == CRI_V2 and version == 1:
        if not release:
            return Severity.WARNING, ("containerd <2.0",)
        return (Severity.ERROR if release < (2,) else None), ()
    if table == CRI_V2 and version >= 3:
        if keys <= _STAYED:
            return None, ()
        # 2.3 translates from 3 to 4 and takes the old table along.
        if version == 3 and release >= (2, 3):
            return Severity.INFO, ()
        return (Severity.ERROR if release or version > 3 else Severity.WARNING), ()
    if table in (CRI_V3, CRI_IMAGES_V3) and version < 3:
        if not release:
            return Severity.INFO, ("containerd <2.0",)
        return (Severity.ERROR if release < (2,) else None), ()
    return None, ()


@rule(
    "containerd-cri-disabled",
    "The plugin for Kubernetes is switched off",
    Severity.WARNING,
    reads=ContainerdConfig,
    reason="The config.toml of Docker's containerd.io package disables it. On a host that runs "
    "only Docker that is right; a kubelet cannot use such a containerd, and settings of runtimes "
    "for Kubernetes have no effect.",
    fix="On nodes of Kubernetes remove cri from disabled_plugins and restart containerd.",
    sources=("NVIDIA/k8s-device-plugin issue 406", "containerd docs/cri/config.md"),
    cases=("RT-017",),
)
def containerd_cri_disabled(doc: ContainerdConfig, host: HostView) -> Iterator[Hit]:
    """Switched off, and configured all the same."""
    for node in doc.config.main.texts("disabled_plugins"):
        if node.value in (CRI_V1, CRI_V2, CRI_V3, "io.containerd.cri.v1"):
            used = any(doc.get("plugins", table) for table in (CRI_V1, CRI_V2, CRI_V3))
            also = ", and the file configures it" if used else ""
            severity = None if used else Severity.INFO
            seen = f'disabled_plugins has "{node.value}"{also}.'
            yield Hit(doc.place(node), seen, severity=severity)


@rule(
    "containerd-dropin-not-imported",
    "A drop-in that containerd does not read",
    Severity.ERROR,
    reads=ContainerdConfig,
    reason="containerd reads further files only where imports names them. Toolkit 1.18.0 wrote "
    "its file to /etc/containerd/config.d by mistake, and releases after it write to conf.d: "
    'what is in a file that is not imported is not there (no runtime for "nvidia" is configured).',
    fix='Add the directory: imports = ["/etc/containerd/conf.d/*.toml"], or move the file.',
    sources=("NVIDIA/nvidia-container-toolkit issue 1404 and PR 1407",),
    cases=("RT-015",),
)
def containerd_dropin_not_imported(doc: ContainerdConfig, host: HostView) -> Iterator[Hit]:
    """A file that is there and not covered, or a toolkit that wrote to the wrong directory."""
    if doc.is_drop_in or doc.broken is not None:
        return
    patterns = doc.config.imports
    texts = host.evidence.get("texts")
    lost = sorted(
        path
        for path in (texts if isinstance(texts, dict) else ())
        if path.startswith(("/etc/containerd/conf.d/", "/etc/containerd/config.d/"))
        and not any(covers(pattern, path) for pattern in patterns)
    )
    place = doc.key_place("imports") if doc.get("imports") else doc.at
    if lost:
        yield Hit(place, f"{', '.join(lost)}: no import of this file finds it.")
    elif patterns and not host.live and not any(r.name == "nvidia" for r in doc.config.runtimes()):
        wrong = "/etc/containerd/config.d/99-nvidia.toml"
        toolkit = host.version("toolkit")
        if not any(covers(pattern, wrong) for pattern in patterns):
            if toolkit is not None and parse(toolkit)[:3] == (1, 18, 0):
                seen = f"Toolkit {toolkit} writes {wrong}, which no import finds."
                yield Hit(place, seen, severity=Severity.WARNING)
            elif toolkit is None:
                seen = f"Toolkit 1.18.0 would write {wrong}, which no import finds."
                assumed = ("toolkit ==1.18.0",)
                yield Hit(place, seen, severity=Severity.INFO, assumed=assumed)


@rule(
    "containerd-import-version",
    "An imported file of a higher version than the first",
    Severity.FATAL,
    reads=ContainerdConfig,
    reason="containerd refuses it and does not start: drop-in config version higher than root "
    "config version.",
    fix="Give both files the same version (containerd config migrate).",
    sources=(_NEW + " LoadConfigWithPlugins",),
    needs=(Needs("containerd", ">=2.3"),),
    unknown=Severity.WARNING,
)
def containerd_import_version(doc: ContainerdConfig, host: HostView) -> Iterator[Hit]:
    """Version 3 imported by version 2."""
    for file in doc.config.files[1:]:
        if file.version > doc.version:
            seen = f"{file.path} is of version {file.version}, this file of {doc.version}."
            yield Hit(doc.key_place("imports"), seen)


@rule(
    "containerd-import-replaces",
    "An imported file replaces a whole table",
    Severity.WARNING,
    reads=ContainerdConfig,
    reason="containerd 1.x does not merge tables of plugins: the one of the file imported last "
    "counts whole, and what the first file has in it is gone (SystemdCgroup, the sandbox image, "
    "registries).",
    fix="Have the table in one file only, or repeat everything in the imported one.",
    sources=(_OLD + " mergeConfig",),
    needs=(Needs("containerd", "<2.0"),),
    unknown=Severity.INFO,
)
def containerd_import_replaces(doc: ContainerdConfig, host: HostView) -> Iterator[Hit]:
    """The same plugin in the first file and an imported one."""
    own = doc.get("plugins")
    for file in doc.config.files[1:]:
        # Our drop-in repeats all that it replaces.
        if is_ours(file.path):
            continue
        theirs = file.root.get("plugins")
        for key, _node in theirs.items() if theirs is not None and own is not None else ():
            if doc.get("plugins", key.name) is not None:
                seen = f'{file.path} has plugins."{key.name}" too.'
                yield Hit(doc.key_place("plugins", key.name), seen)
