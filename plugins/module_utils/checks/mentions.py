# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Versions that somebody names in a text: ``docker version``, ``dpkg -l``, "runc 1.1.5". Pure.

``find`` reads them, ``view`` makes them a host that the rules about versions judge: hand it to
``judge`` as a document. Such a view is not live, so rules say nothing of what it does not know.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..packages import TOOLKIT_PACKAGES
from .host import Gpu, HostPackage, HostView
from .model import Given, Position
from .place import MENTIONS
from .versions.components import PACKAGES_OF

_LIMIT = 1 << 17  # characters: what is pasted is shorter, and versions stand at the beginning


@dataclass(frozen=True)
class Mentioned:
    """What a text says of a host, each with its place.

    ``versions`` are by component (and ``image_cuda``, ``require_cuda``: what an image has and
    asks for), ``packages`` by package name. ``words`` has ``cgroup_driver``, ``os``,
    ``rootless``, ``virtual``, ``gpu`` (a model), ``amd`` and ``nvidia`` (a vendor).
    """

    versions: Mapping[str, Given] = field(default_factory=dict)
    packages: Mapping[str, Given] = field(default_factory=dict)
    words: Mapping[str, Given] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.versions or self.packages)


_END = r"(?![\w.]*\d)"
_BUILD = r"(?:[+~-][\w.+~:-]{0,60})?"
# Forms of versions: dotted; a driver's (570.124.06), also its branch alone (535, 535.x); and
# Docker's, also its major alone (29).
_DOTTED = r"v?(\d{1,4}(?:\.\d{1,5}){1,3}" + _BUILD + ")" + _END
_DRIVER = r"v?([3-9]\d\d(?:\.\d{1,3}){0,2})(?:\.[xX*])?(?![\w%])"
_DRIVER_WHOLE = r"v?(\d{3}(?:\.\d{1,3}){1,2})" + _END
_DOCKER = r"v?((?:1[789]|[234]\d)(?:\.\d{1,2}){0,2}" + _BUILD + r")(?![\w%])"
_CUDA = r"(\d{1,2}\.\d)(?!\w)"
# What may stand between a name and its version.
_GAP = r"(?:[\s\"'`:=@,()\[\]]|version|release|driver|cli\b|engine|package|is\b|-community){0,8}"
_START = r"(?<![\w./-])"

# Component, what people call it, and the form of its version.
_NAMES: tuple[tuple[str, str, str], ...] = (
    ("compose", r"docker[ _-]compose(?:-plugin|-v2)?", _DOTTED),
    ("docker", r"docker(?:[ _-](?:engine|ce|server)|_version|d|\.io)?", _DOCKER),
    ("docker_cli", r"docker(?:[ -]|_)cli", _DOTTED),
    (
        "containerd",
        r"containerd(?:_\w{1,20})?(?: containerd\.io| github\.com/containerd/containerd(?:/v2)?)?",
        _DOTTED,
    ),
    ("runc", r"runc(?:_\w{1,20})?", _DOTTED),
    ("toolkit", r"(?:nvidia[ _-])?container[ _-]toolkit|nvidia-ctk|NCT", _DOTTED),
    ("libnvidia_container", r"libnvidia[_-]container1?(?:_version)?|lib-version", _DOTTED),
    ("gpu_operator", r"gpu[ _-]operator", _DOTTED),
    ("device_plugin", r"(?:k8s[ _-]|nvidia[ _-])?device[ _-]plugin", _DOTTED),
    ("mig_manager", r"(?:k8s[ _-])?mig[ _-](?:manager|parted)", _DOTTED),
    ("dcgm_exporter", r"dcgm[ _-]exporter", _DOTTED),
    ("dcgm", r"dcgm", _DOTTED),
    ("fabric_manager", r"(?:nvidia[ _-])?fabric[ _-]?manager", _DOTTED),
    (
        "nvidia_kernel_module",
        r"kernel[ _]module(?: for x86_64)?|module version",
        _DRIVER_WHOLE,
    ),
    (
        "library",
        r"NVML library(?: version)?|user[ _-]space(?: driver)?|libnvidia[_-]ml(?:_in_image|\.so)?",
        _DRIVER_WHOLE,
    ),
    ("driver", r"(?:nvidia[ _-])?driver(?:[ _]version)?|NVIDIA-SMI", _DRIVER),
    ("cuda", r"CUDA Version|driver[_ ]cuda", _CUDA),
    ("image_cuda", r"image[_ ]cuda|nvidia/cuda", r"(\d{1,2}\.\d)"),
    (
        "require_cuda",
        r"(?:NVIDIA_REQUIRE_CUDA\W{1,6}|unsatisfied condition: )cuda>",
        r"(\d{1,2}\.\d)",
    ),
    ("nccl", r"NCCL", r"v?(\d\.\d{1,2}\.\d{1,2})(?!\w)"),
    ("podman", r"podman", _DOTTED),
    ("systemd", r"systemd", r"v?(\d{3}(?:\.\d{1,2})?)" + _END),
    (
        "kernel",
        r"(?:linux )?kernel(?: version)?|Linux version",
        r"v?(\d\.\d{1,2}(?:\.\d{1,3})?(?:-[\w.+-]{1,40})?)",
    ),
    ("cgroup", r"cgroup(?:s)?(?:[ _]version)?", r"v?([12])(?![\w.])"),
)
_PATTERNS = tuple(
    (component, re.compile(_START + "(?:" + name + ")" + _GAP + version, re.I | re.A))
    for component, name, version in _NAMES
)
# The blocks of ``docker version``: a heading, and below it "Version:".
_BLOCK = re.compile(
    r"^[ \t]*(client|engine|containerd|runc):[^\n]{0,60}\n[ \t]+version:[ \t]+v?(\d[\w.+~-]{2,60})",
    re.IGNORECASE | re.MULTILINE,
)
_BLOCKS = {"client": "docker_cli", "engine": "docker", "containerd": "containerd", "runc": "runc"}
_SERVER = re.compile(r"^[ \t]*server version:[ \t]+(\d[\w.+~-]{2,60})", re.I | re.M)
_KNOWN_PACKAGES = sorted(
    {*TOOLKIT_PACKAGES, *(name for names in PACKAGES_OF.values() for name in names)},
    key=len,
    reverse=True,
)
# ``ii  runc  1.1.5+ds1-1 amd64``, ``"runc": "1.1.12-1"``, ``runc-1.1.12-1.el9.x86_64``.
_PACKAGE = re.compile(
    r"(?<![\w./-])("
    + "|".join(re.escape(name) for name in _KNOWN_PACKAGES)
    + r")(?::amd64|:arm64)?(?:[\s\"':=,(]{1,40}|-|/\w{1,20} )"
    + r"((?:\d:)?\d{1,4}\.[\w.+~:]{1,60}-[\w.+~]{1,40})"
)
_WORDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("cgroup_driver", re.compile(r"cgroup[ _]?driver[\s\"':=]{1,4}(systemd|cgroupfs)", re.I)),
    ("cgroup_driver", re.compile(r"native\.cgroupdriver=(systemd|cgroupfs)")),
    ("rootless", re.compile(r"(docker[- ]rootless|rootless[- ]docker|dockerd-rootless)", re.I)),
    ("virtual", re.compile(r"(?<![\w])(LXC)(?![\w/])")),
    ("amd", re.compile(r"\"(amd)\"|(?<![\w/])(rocm)/", re.I)),
    ("nvidia", re.compile(r"\"(nvidia)\"", re.I)),
    ("os", re.compile(r"(Debian GNU/Linux \d+|Ubuntu \d\d\.\d\d|debian \d+|rhel \d)", re.I)),
    ("gpu", re.compile(r"((?:GeForce )?(?:GTX|RTX) ?\d{3,4}(?: (?:Ti|SUPER))*|TITAN [XV]p?)")),
    (
        "gpu",
        re.compile(
            r"(?<![\w-])((?:NVIDIA |Tesla |Quadro )?"
            r"(?:[ABHKLMPTV]\d{2,3}|H200|GB200)(?:-\w{2,8})*)(?!\w)"
        ),
    ),
)
_NOT_PART = ".,;:)-+~"


def find(text: str, file: str = "text") -> Mentioned:
    """Every version that ``text`` names, the first of each component; never raises."""
    text = text[:_LIMIT]
    starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def given(match: re.Match[str], group: int, name: str) -> Given:
        line = bisect_right(starts, match.start(group)) - 1
        at = Position(file, line + 1, match.start(group) - starts[line] + 1)
        return Given(match.group(group).rstrip(_NOT_PART), at, name)

    versions: dict[str, Given] = {}
    for match in _BLOCK.finditer(text):
        versions.setdefault(_BLOCKS[match.group(1).lower()], given(match, 2, match.group(1)))
    for match in _SERVER.finditer(text):
        versions.setdefault("docker", given(match, 1, "Server Version"))
    for component, pattern in _PATTERNS:
        found = None if component in versions else pattern.search(text)
        if found:
            versions[component] = given(found, 1, component)
    packages: dict[str, Given] = {}
    for match in _PACKAGE.finditer(text):
        packages.setdefault(match.group(1), given(match, 2, match.group(1)))
    words: dict[str, Given] = {}
    for name, pattern in _WORDS:
        found = None if name in words else pattern.search(text)
        if found:
            words[name] = given(found, found.lastindex or 1, name)
    return Mentioned(dict(_with_packages(versions, packages)), packages, words)


def _with_packages(
    versions: Mapping[str, Given], packages: Mapping[str, Given]
) -> Iterator[tuple[str, Given]]:
    """The versions, those of a package in place of what was read from the same words."""
    for component, names in PACKAGES_OF.items():
        named = next((packages[name] for name in names if name in packages), None)
        if named is not None and component not in versions:
            yield component, named
    yield from versions.items()


def view(found: Mentioned, host: HostView | None = None) -> HostView:
    """A host that has what the text names, and nothing else.

    Of ``host``, where one is known, it takes the distribution and the cgroup driver: they decide
    how a version is judged.
    """
    known = host or HostView()
    word = {name: given.value for name, given in found.words.items()}
    versions = {component: given.value for component, given in found.versions.items()}
    if "nvidia_kernel_module" in versions:
        versions.setdefault("driver", versions["nvidia_kernel_module"])
    places = {component: given.at for component, given in found.versions.items()}
    gpus = (Gpu(0, name=word["gpu"]),) if "gpu" in word else None
    return HostView(
        versions=versions,
        packages={name: HostPackage(given.value) for name, given in found.packages.items()},
        os=_os(word["os"]) if "os" in word else known.os,
        gpus=gpus,
        # That NVIDIA is named alone says nothing here: most of what is pasted names it.
        vendors=frozenset(word) & {"amd", "nvidia"} if "amd" in word else frozenset(),
        cgroup_driver=word.get("cgroup_driver") or known.cgroup_driver,
        rootless=True if "rootless" in word else None,
        evidence={MENTIONS: places, **({"virtual": "lxc"} if "virtual" in word else {})},
    )


def _os(words: str) -> str:
    return words.lower().replace("gnu/linux ", "")
