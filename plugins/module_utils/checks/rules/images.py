# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on the CUDA release of an image against the host's driver. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...versions import parse
from ..documents.container import ContainerSpec
from ..host import HostView
from ..model import Hit, Severity
from ..registry import rule
from ..versions.pairs import CUDA_MAJOR_DRIVER, cuda_level
from .run_values import image

_NOTES = "CUDA toolkit release notes, CUDA driver versions and minor version compatibility"


def image_cuda(name: str, tag: str) -> tuple[int, ...]:
    """The CUDA release that an image's name and tag tell: ``(12, 4)``, ``(12,)``, or ()."""
    if re.search(r"(^|/)nvidia/cuda$", name):
        match = re.match(r"(\d{2})\.(\d{1,2})", tag)
        return (int(match.group(1)), int(match.group(2))) if match else ()
    text = f"{name.rpartition('/')[2]}:{tag}"
    found = re.search(r"(?:^|[-_.:])cuda[-_]?(1\d)(?:\.(\d{1,2}))?(?![\d])", text)
    found = found or re.search(r"(?:^|[-_.:])cu(1\d)(\d)?(?![\d])", text)
    return tuple(int(part) for part in found.groups() if part is not None) if found else ()


def served_cuda(host: HostView) -> tuple[int, ...]:
    """The newest CUDA release the host's driver serves; () when it is not known."""
    known = host.version("cuda") or cuda_level(host.version("driver") or "")
    return parse(known)[:2]


@rule(
    "image-cuda-newer-than-driver",
    "The image's CUDA is newer than the driver serves",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="The driver comes from the host. An image of a later CUDA release ends with "
    "'unsatisfied condition: cuda>=…', or with error 803 or 804 (forward compatibility, which only "
    "data-centre GPUs have).",
    fix="Update the host's driver, or use an image of an earlier CUDA release.",
    sources=(_NOTES, "NVIDIA/nvidia-container-toolkit#152, #234", "NVIDIA/nvidia-docker#1515"),
    row="118",
    cases=("TK-014", "TK-015", "TK-016"),
)
def image_cuda_newer_than_driver(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """An error across major releases; within one, minor version compatibility often helps."""
    name, tag = image(spec)
    wanted, served = image_cuda(name, tag), served_cuda(host)
    if spec.image is None or not wanted or not served or not spec.asks_nvidia:
        return
    driver = host.version("driver")
    has = ".".join(str(part) for part in served) + (f" (driver {driver})" if driver else "")
    seen = (
        f"{name}:{tag} is built for CUDA {'.'.join(map(str, wanted))}, and the host serves {has}."
    )
    if wanted[0] > served[0]:
        major = CUDA_MAJOR_DRIVER.get(wanted[0], "")
        fix = f"Update the driver to {major} or newer, or use an earlier image." if major else ""
        yield Hit(spec.image.at, seen, fix)
    elif len(wanted) > 1 and wanted[:2] > served[:2]:
        # nvidia/cuda images refuse a GeForce with an older driver by NVIDIA_REQUIRE_CUDA.
        official = bool(re.search(r"(^|/)nvidia/cuda$", name))
        yield Hit(spec.image.at, seen, severity=Severity.WARNING if official else Severity.INFO)


@rule(
    "image-needs-cuda-13",
    "The image needs a driver for CUDA 13",
    Severity.INFO,
    reads=ContainerSpec,
    reason="CUDA 13 runs with driver 580 and newer, and not on GPUs before Turing.",
    fix="Check the driver with nvidia-smi before pulling the image.",
    sources=(_NOTES,),
    cases=("TK-014", "F35"),
)
def image_needs_cuda_13(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Said only where the driver is not known."""
    name, tag = image(spec)
    wanted = image_cuda(name, tag)
    unknown = not host.version("driver") and not host.version("cuda")
    if spec.image and wanted and wanted[0] >= 13 and unknown:
        seen = f"{name}:{tag}: the host must have driver 580 or newer."
        yield Hit(spec.image.at, seen, assumed=("the driver is not known",))


@rule(
    "cuda-image-without-tag",
    "nvidia/cuda has no tag latest",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="NVIDIA removed the tag latest; pulling it ends with 'manifest unknown'.",
    fix="Write the release and the system: nvidia/cuda:12.4.1-base-ubuntu22.04.",
    sources=("hub.docker.com nvidia/cuda, overview",),
)
def cuda_image_without_tag(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """The old habit, still in many documents; somebody may have tagged an image so himself."""
    name, tag = image(spec)
    pinned = spec.image is not None and "@" in spec.image.value
    if spec.image and not pinned and name in ("nvidia/cuda", "docker.io/nvidia/cuda"):
        if tag in ("", "latest"):
            yield Hit(spec.image.at, f"The image is {spec.image.value}.")
        elif re.fullmatch(r"\d+(\.\d+)*(-(base|runtime|devel|cudnn\d+-(runtime|devel)))?", tag):
            seen = f"The tag {tag} does not name a system, as all tags of today do."
            yield Hit(spec.image.at, seen)
