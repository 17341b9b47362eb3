# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Versions that do not go together."""

from __future__ import annotations

from collections.abc import Iterator

from ...engine.cdi import docker_reads
from ...versions import at_least, parse
from ..host import Gpu, HostView
from ..inside import entries, text_at
from ..model import Hit, Severity
from ..place import place
from ..registry import rule
from ..versions.components import TITLES
from ..versions.pairs import (
    CDI_0_7,
    GONE_FROM_CUDA_13,
    architecture_of,
    cuda_level,
    driver_for,
    first_for,
    last_branch,
    mig_driver,
)

# The first toolkit that writes CDI 0.7.0 by itself.
_WRITES_0_7 = "1.19.0"


@rule(
    "toolkit-containerd-config-3",
    "This toolkit cannot read the configuration of this containerd",
    Severity.ERROR,
    reads=HostView,
    reason="containerd 2.0 writes configuration version 3, which the toolkit understands from "
    "1.17.4 on: unable to load config: unsupported config version: 3.",
    fix="Upgrade the toolkit; 1.19.1 is the first release without a known escape.",
    sources=("nvidia-container-toolkit issue 803", "containerd docs/containerd-2.0.md"),
    cases=("RT-013",),
)
def toolkit_containerd_config_3(host: HostView, known: HostView) -> Iterator[Hit]:
    """Only nvidia-ctk runtime configure is stopped; a Docker host does not need it."""
    containerd, toolkit = host.version("containerd"), host.version("toolkit")
    if at_least(containerd, "2.0") and toolkit and not at_least(toolkit, "1.17.4"):
        docker = host.live and host.version("docker") is not None
        yield Hit(
            at=place(host, "toolkit"),
            seen=f"containerd is {containerd} and the toolkit is {toolkit}",
            severity=Severity.INFO if docker else None,
            assumed=("containerd is configured for the toolkit",) if docker else (),
        )


@rule(
    "cdi-spec-newer-than-engine",
    "This engine cannot read the CDI specs of this host",
    Severity.ERROR,
    reads=HostView,
    reason="An engine refuses a CDI spec of a version that it does not know, and with it every "
    "device of that file. nvidia-ctk 1.19 and newer write 0.7.0.",
    fix="Upgrade Docker to 26.1.0 or newer, or generate the spec with "
    "--feature-flag no-additional-gids-for-device-nodes.",
    sources=("NVIDIA container toolkit release notes 1.19.1", "moby vendored CDI by release"),
)
def cdi_spec_newer_than_engine(host: HostView, known: HostView) -> Iterator[Hit]:
    """The specs themselves on a live host; elsewhere the toolkit that writes them."""
    yield from _written_for_others(host)
    docker = host.version("docker")
    if not docker:
        return
    for spec in entries(host.facts, "cdi", "specs"):
        version = str(spec.get("cdi_version") or "")
        if text_at(host.evidence, str(spec.get("path"))) is not None:
            continue  # judged as a file, with the line
        if parse(version) and not docker_reads(docker, version):
            yield Hit(
                at=place(host, "docker"),
                seen=f"{spec.get('path')} is CDI {version}, which Docker {docker} does not read",
            )


def _written_for_others(host: HostView) -> Iterator[Hit]:
    """What is not seen in specs: other engines, and versions that a text names."""
    toolkit = host.version("toolkit")
    if not at_least(toolkit, _WRITES_0_7):
        return
    for engine, first in CDI_0_7.items():
        version = host.version(engine)
        seen_in_specs = host.live and engine == "docker"
        if version and not seen_in_specs and not at_least(version, first):
            # A Docker host has a containerd that never reads a CDI spec.
            unsure = engine == "containerd" and (host.live or host.version("docker") is not None)
            yield Hit(
                at=place(host, "toolkit"),
                seen=f"the toolkit {toolkit} writes CDI 0.7.0, which {TITLES[engine]} {version} "
                "does not read",
                severity=Severity.INFO if unsure else Severity.WARNING,
                assumed=(f"{TITLES[engine]} is asked for GPUs by CDI",),
            )


@rule(
    "gpus-flag-without-amd",
    "--gpus does not reach AMD GPUs on this Docker",
    Severity.INFO,
    reads=HostView,
    reason="Docker before 28.3.0 knows NVIDIA behind --gpus only; on a host without NVIDIA it "
    'answers: could not select device driver "" with capabilities: [[gpu]].',
    fix="Use --device /dev/kfd --device /dev/dri, or --device amd.com/gpu=all with CDI.",
    sources=("moby daemon/devices_amd_linux.go", "Docker release notes 28.3"),
    cases=("AI-007",),
)
def gpus_flag_without_amd(host: HostView, known: HostView) -> Iterator[Hit]:
    """Docker 28.3 brought the AMD runtime, 29.3 its CDI."""
    docker = host.version("docker")
    if host.vendors == {"amd"} and docker and not at_least(docker, "28.3"):
        yield Hit(at=place(host, "docker"), seen=f"Docker is {docker} and the GPUs are AMD's")


@rule(
    "driver-older-than-image",
    "The driver is too old for the CUDA of the image",
    Severity.ERROR,
    reads=HostView,
    reason="An image runs on a driver of the same CUDA major version or a newer one. An image "
    "that names a minimum in NVIDIA_REQUIRE_CUDA is refused below it: requirement error: "
    "unsatisfied condition.",
    fix="Upgrade the driver, or use an image with an older CUDA.",
    sources=("CUDA minor version compatibility guide", "libnvidia-container src/cli/configure.c"),
    cases=("TK-014", "TK-016"),
)
def driver_older_than_image(host: HostView, known: HostView) -> Iterator[Hit]:
    """For versions named in a text; run lines and Compose files have rules of their own."""
    driver = host.version("driver")
    level = host.version("cuda") or (cuda_level(driver) if driver else None)
    asked, image = host.version("require_cuda"), host.version("image_cuda")
    if asked and level and not at_least(level, asked):
        yield Hit(
            at=place(host, "require_cuda"),
            seen=f"the image asks for CUDA {asked} and the driver serves {level}",
        )
    first = driver_for(image) if image else None
    if image and driver and first and not at_least(driver, first):
        yield Hit(
            at=place(host, "image_cuda"),
            seen=f"CUDA {image} needs driver {first} or newer, and the driver is {driver}",
        )


@rule(
    "forward-compat-hardware",
    "The compat libraries of an image work on data-centre GPUs only",
    Severity.ERROR,
    reads=HostView,
    reason="An image may bring a newer user-space driver in /usr/local/cuda/compat. On a GeForce "
    "card that ends in error 804: forward compatibility was attempted on non supported HW.",
    fix="Upgrade the driver of the host to the image's CUDA, or use an image with an older CUDA.",
    sources=("CUDA forward compatibility guide",),
    cases=("TK-015",),
)
def forward_compat_hardware(host: HostView, known: HostView) -> Iterator[Hit]:
    """A GeForce card, and an image whose CUDA is newer than what the driver serves."""
    driver, image = host.version("driver"), host.version("image_cuda")
    level = host.version("cuda") or (cuda_level(driver) if driver else None)
    cards = [g.name for g in host.gpus or () if g.name and "GeForce" in g.name]
    if cards and image and level and not at_least(level, image):
        yield Hit(
            at=place(host, "image_cuda"),
            seen=f"the image has CUDA {image}, the driver serves {level}, and {cards[0]} cannot "
            "use the image's own libraries",
        )


@rule(
    "mig-needs-newer-driver",
    "This driver has no MIG for this GPU",
    Severity.ERROR,
    reads=HostView,
    reason="Each model got MIG with a driver of its own.",
    fix="Upgrade the driver to the release named, or newer.",
    sources=("MIG user guide 620, deployment considerations",),
)
def mig_needs_newer_driver(host: HostView, known: HostView) -> Iterator[Hit]:
    """Where MIG is on or is to be on."""
    driver = host.version("driver")
    for gpu in host.gpus or ():
        first = mig_driver(gpu.name) if gpu.name else None
        wanted = gpu.mig or gpu.mig_pending
        if driver and first and wanted and not at_least(driver, first):
            yield Hit(
                at=place(host, "driver"),
                seen=f"MIG of GPU {gpu.index}, {gpu.name}, needs driver {first} and the driver "
                f"is {driver}",
            )


@rule(
    "gpu-dropped-by-driver",
    "This driver no longer serves this GPU",
    Severity.ERROR,
    reads=HostView,
    reason="Each driver branch drops old architectures: 580 is the last for Maxwell, Pascal and "
    "Volta, 470 for Kepler. The kernel log says that the GPU is supported through legacy drivers, "
    "and nvidia-smi finds no devices.",
    fix="Install the last branch that serves the GPU and hold it there.",
    sources=("NVIDIA Unix driver archive, legacy GPUs",),
)
def gpu_dropped_by_driver(host: HostView, known: HostView) -> Iterator[Hit]:
    """By architecture, or by the name of an old model."""
    driver = host.version("driver")
    for gpu in host.gpus or ():
        last = last_branch(_architecture(gpu))
        if driver and last and parse(driver)[:1] > (last,):
            yield Hit(
                at=place(host, "driver"),
                seen=f"{gpu.name or f'GPU {gpu.index}'} is served up to the {last} branch, and "
                f"the driver is {driver}",
            )


def _architecture(gpu: Gpu) -> str | None:
    return gpu.architecture or (architecture_of(gpu.name) if gpu.name else None)


@rule(
    "gpu-dropped-by-cuda",
    "CUDA 13 builds nothing for this GPU",
    Severity.ERROR,
    reads=HostView,
    reason="CUDA 13 has dropped Maxwell, Pascal and Volta: programs built with it end with: no "
    "kernel image is available for execution on the device.",
    fix="Use an image with CUDA 12.",
    sources=("CUDA 13.0 release notes, deprecated architectures",),
)
def gpu_dropped_by_cuda(host: HostView, known: HostView) -> Iterator[Hit]:
    """For an image whose CUDA a text names."""
    image = host.version("image_cuda")
    for gpu in host.gpus or ():
        if at_least(image, "13.0") and _architecture(gpu) in GONE_FROM_CUDA_13:
            yield Hit(
                at=place(host, "image_cuda"),
                seen=f"the image has CUDA {image}, and {gpu.name or f'GPU {gpu.index}'} is "
                f"{_architecture(gpu)}",
            )


@rule(
    "toolkit-without-cgroup-v2",
    "This toolkit does not know cgroup v2",
    Severity.ERROR,
    reads=HostView,
    reason="libnvidia-container has cgroup v2 since 1.8.0. Before, the hook ends with: "
    "nvidia-container-cli: container error: cgroup subsystem devices not found.",
    fix="Upgrade the toolkit (1.19.1 is the first release without a known escape).",
    sources=("libnvidia-container release notes 1.8.0",),
)
def toolkit_without_cgroup_v2(host: HostView, known: HostView) -> Iterator[Hit]:
    """The library decides; the toolkit's own number was 1.7 and 1.8 at that time."""
    version = host.version("libnvidia_container") or host.version("toolkit")
    if host.version("cgroup") == "2" and version and not at_least(version, "1.8"):
        yield Hit(
            at=place(host, "toolkit"),
            seen=f"the toolkit is {version} and the host uses cgroup v2",
        )


@rule(
    "gpu-newer-than-driver",
    "This driver does not know this GPU",
    Severity.ERROR,
    reads=HostView,
    reason="A driver serves the GPUs that were known when its branch was made. With an older one "
    "nvidia-smi says: No devices were found.",
    fix="Install the branch named, or a newer one. Blackwell needs the open kernel modules.",
    sources=("NVIDIA driver release highlights", "NVIDIA driver installation guide"),
)
def gpu_newer_than_driver(host: HostView, known: HostView) -> Iterator[Hit]:
    """Of no live host in practice: a GPU that the driver does not know is not named there."""
    driver = host.version("driver")
    for gpu in host.gpus or ():
        first = first_for(gpu.name) if gpu.name else None
        if driver and first and parse(driver)[:1] < (first[0],):
            yield Hit(
                at=place(host, "driver"),
                seen=f"{gpu.name} needs the driver branch {first[0]}, and the driver is {driver}",
            )


@rule(
    "gpu-newer-than-cuda",
    "The CUDA of the image is older than this GPU",
    Severity.WARNING,
    reads=HostView,
    reason="Programs hold code for the GPUs that their CUDA knew. Without intermediate code (PTX) "
    "for newer ones they end with: no kernel image is available for execution on the device.",
    fix="Use an image with the CUDA named, or a newer one.",
    sources=("CUDA release notes, supported architectures", "CUDA C++ best practices guide, PTX"),
)
def gpu_newer_than_cuda(host: HostView, known: HostView) -> Iterator[Hit]:
    """For an image whose CUDA a text names."""
    image = host.version("image_cuda")
    for gpu in host.gpus or ():
        first = first_for(gpu.name) if gpu.name else None
        if image and first and not at_least(image, first[1]):
            yield Hit(
                at=place(host, "image_cuda"),
                seen=f"{gpu.name} came with CUDA {first[1]}, and the image has {image}",
            )
