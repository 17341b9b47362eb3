# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on the output of lspci, nvidia-smi and apt."""

from __future__ import annotations

from collections.abc import Iterator

from ..documents.dumps import PackageOutput, PciListing, SmiGpu, TopologyTable
from ..host import HostView
from ..model import Hit, Severity
from ..registry import rule

_REDIRECT = frozenset(("ReqRedir", "CmpltRedir"))
# The key that signs NVIDIA's CUDA repositories since April 2022, and the one before it.
_CUDA_KEYS = ("A4B469963BF863CC", "3BF863CC")
_OLD_CUDA_KEYS = ("F60F4B3D7FA2AF80", "7FA2AF80")
_TOOLKIT = (
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
    "libnvidia-container-tools",
    "libnvidia-container1",
)


@rule(
    "lspci-acs-redirects",
    "A PCIe switch redirects traffic between GPUs through the root complex",
    Severity.WARNING,
    reads=PciListing,
    reason="With ACS on the ports of a switch, peer traffic goes up to the processor and the "
    "IOMMU: "
    "P2P copies and NCCL get slow or hang on bare metal. Under a hypervisor ACS is needed.",
    fix="On bare metal switch ACS (or VT-d, AMD IOMMU) off in the firmware, or clear it at each "
    "boot; "
    "leave it on where GPUs are passed to virtual machines.",
    sources=("NCCL troubleshooting, PCI access control services", "NVIDIA/nccl issue 2079"),
    row="11",
    cases=("TP-001",),
)
def acs(listing: PciListing, host: HostView) -> Iterator[Hit]:
    """Ports of switches that redirect; only where the host does not say that it is virtual."""
    gpus = sum(entry.is_nvidia_gpu for entry in listing.entries)
    others = sum(entry.is_display for entry in listing.entries)
    for entry in listing.entries:
        if entry.acs is None or not entry.is_switch or not entry.acs >= _REDIRECT:
            continue
        # A listing with one GPU or none but with display devices has no peers to speak of.
        alone = others > 0 and gpus < 2
        yield Hit(
            entry.acs_at or entry.at,
            f"{entry.address} ({entry.name}) has {' '.join(sorted(entry.acs & _REDIRECT))} on",
            commands=(f"setpci -s {entry.address} ECAP_ACS+6.w=0000",),
            severity=Severity.INFO if alone else None,
            assumed=("the host is bare metal, and GPUs sit below this switch",),
        )


@rule(
    "lspci-no-nvidia-gpu",
    "The listing has no NVIDIA GPU",
    Severity.INFO,
    reads=PciListing,
    reason="Without an NVIDIA card --gpus and the NVIDIA toolkit have nothing to work with.",
    fix="Leave out --gpus on this host, or use one with an NVIDIA GPU; installing the toolkit does "
    "not help.",
    sources=("fboulnois/stable-diffusion-docker issue 82",),
    cases=("TK-003",),
)
def no_nvidia(listing: PciListing, host: HostView) -> Iterator[Hit]:
    """A listing of display devices, none of NVIDIA."""
    shown = [entry for entry in listing.entries if entry.is_display]
    if shown and not any(entry.is_nvidia_gpu for entry in shown):
        names = "; ".join(entry.name for entry in shown[:3])
        yield Hit(shown[0].at, f"no NVIDIA GPU found; the display devices are: {names}")


@rule(
    "lspci-nouveau-in-use",
    "nouveau has an NVIDIA card",
    Severity.WARNING,
    reads=PciListing,
    reason="The NVIDIA driver cannot take a card over that nouveau was given, mostly from the "
    "initramfs; CUDA does not work with nouveau.",
    fix="Blacklist nouveau (modeset=0), rebuild the initramfs, reboot.",
    sources=("NVIDIA/gpu-operator issue 8",),
)
def nouveau(listing: PciListing, host: HostView) -> Iterator[Hit]:
    """NVIDIA cards that nouveau drives."""
    for entry in listing.entries:
        if entry.is_nvidia_gpu and entry.driver == "nouveau":
            yield Hit(
                entry.at,
                f"{entry.address} ({entry.name}) is driven by nouveau",
                commands=(
                    "printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' "
                    ">/etc/modprobe.d/blacklist-nouveau.conf",
                    "update-initramfs -u || dracut --force",
                ),
            )


@rule(
    "smi-mig-without-devices",
    "MIG is on and no MIG device exists",
    Severity.WARNING,
    reads=SmiGpu,
    reason="The mode outlives a reboot, the devices do not. Until they are created nothing can use "
    "the GPU, the device plugin announces nothing, and a CDI spec cannot be made.",
    fix="Create the devices, and have them created at each boot before the CDI refresh and the "
    "device "
    "plugin (steadygpu mig, nvidia-mig-manager.service).",
    sources=("NVIDIA/k8s-device-plugin issues 225 and 343",),
    cases=("MG-001",),
)
def mig_without_devices(gpu: SmiGpu, host: HostView) -> Iterator[Hit]:
    """On now, and not about to be switched off."""
    if gpu.mig and gpu.mig_pending and not gpu.mig_devices:
        yield Hit(
            gpu.at,
            f"{gpu.name}: MIG is enabled and the list of MIG devices is empty",
            commands=("steadygpu mig show", "steadygpu mig apply LAYOUT"),
        )


@rule(
    "smi-mig-pending",
    "A change of the MIG mode waits for a reset",
    Severity.WARNING,
    reads=SmiGpu,
    reason="The current and the pending mode differ: the GPU was not reset, mostly because a "
    "client "
    "(nvidia-persistenced, DCGM, a monitoring container, a display server) holds it.",
    fix="Stop all clients of the GPU, then reset it or reboot.",
    sources=("NVIDIA/gpu-operator issues 118 and 1845",),
    cases=("MG-002",),
)
def mig_pending(gpu: SmiGpu, host: HostView) -> Iterator[Hit]:
    """Two modes that differ."""
    if gpu.mig is not None and gpu.mig_pending is not None and gpu.mig != gpu.mig_pending:
        now, then = ("Enabled", "Disabled") if gpu.mig else ("Disabled", "Enabled")
        yield Hit(
            gpu.at,
            f"{gpu.name}: MIG is {now} now and {then} after the next reset",
            commands=("fuser -v /dev/nvidia*", "nvidia-smi --gpu-reset"),
        )


@rule(
    "smi-gpu-error",
    "A GPU answers with an error",
    Severity.ERROR,
    reads=SmiGpu,
    reason="A GPU that is lost, hangs or asks for a reset serves no job and may stop others.",
    fix="Drain the GPU, look at the kernel log for its Xid and follow that one's action.",
    sources=("NVIDIA Xid documentation",),
)
def gpu_error(gpu: SmiGpu, host: HostView) -> Iterator[Hit]:
    """Where nvidia-smi printed an error in place of a value."""
    if gpu.error:
        yield Hit(gpu.at, f"{gpu.name}: {gpu.error}", commands=("dmesg | grep Xid | tail",))


@rule(
    "topo-flat",
    "The virtual machine hides the real topology",
    Severity.WARNING,
    reads=TopologyTable,
    reason="Every path is PHB: the hypervisor shows no switches and no NUMA. NCCL builds its graph "
    "from that view and picks poor pairs of GPUs and network cards.",
    fix="Give NCCL the real layout by NCCL_TOPO_FILE (cloud images ship one for their instances) "
    "and "
    "mount it into containers.",
    sources=("NVIDIA/nccl issues 1843 and 1464", "NVIDIA/nccl-tests issue 86"),
    row="111",
    cases=("TP-004",),
)
def flat(table: TopologyTable, host: HostView) -> Iterator[Hit]:
    """Four GPUs and more, all pairs PHB; without a network card it is worth a note only."""
    if table.gpus < 4 or table.words != {"PHB"} or table.nic_words - {"PHB"}:
        return
    cards = f" and {table.nics} network card(s)" if table.nics else ""
    yield Hit(
        table.at,
        f"all pairs of {table.gpus} GPUs{cards} are PHB",
        commands=("systemd-detect-virt", "export NCCL_TOPO_FILE=/etc/nccl/topo.xml"),
        severity=None if table.nics else Severity.INFO,
        assumed=("the host is a virtual machine",),
    )


@rule(
    "apt-cuda-key-rotated",
    "NVIDIA's CUDA repository is signed by a key that is not installed",
    Severity.ERROR,
    reads=PackageOutput,
    reason="NVIDIA replaced the key in April 2022. Hosts and images from before trust the old "
    "one, and "
    "apt ignores the repository.",
    fix="Install the package cuda-keyring of the repository and remove the old list and key.",
    sources=("NVIDIA/nvidia-docker issue 1631", "NVIDIA/cuda-repo-management issue 4"),
    cases=("PA-002",),
)
def cuda_key(output: PackageOutput, host: HostView) -> Iterator[Hit]:
    """The new or the old key by its number."""
    if output.what == "key" and any(n.endswith(_CUDA_KEYS + _OLD_CUDA_KEYS) for n in output.names):
        yield Hit(
            output.at,
            f"the key {' '.join(output.names)} of the CUDA repository is not known",
            commands=("apt-get install ./cuda-keyring_1.1-1_all.deb", "apt-get update"),
        )


@rule(
    "apt-key-missing",
    "The key of a repository is not installed",
    Severity.WARNING,
    reads=PackageOutput,
    reason="apt cannot verify the repository and ignores it: packages stay old or are not found.",
    fix="Install the repository's key where its signed-by says, readable for all.",
    sources=("apt-secure(8)",),
)
def other_key(output: PackageOutput, host: HostView) -> Iterator[Hit]:
    """Any other key."""
    if output.what == "key" and not any(
        name.endswith(_CUDA_KEYS + _OLD_CUDA_KEYS) for name in output.names
    ):
        yield Hit(output.at, f"the key {' '.join(output.names)} is not known")


@rule(
    "apt-held-packages-change",
    "Held packages stop the installation",
    Severity.ERROR,
    reads=PackageOutput,
    reason="Another package wants a newer version of packages that are held; with -y apt refuses "
    "to "
    "change them.",
    fix="Unhold the whole set, upgrade it in one transaction, hold it again; or ask for the held "
    "version by name.",
    sources=("vanzod/ccslurm4ai issue 5", "GoogleCloudDataproc/initialization-actions PR 1323"),
    cases=("PA-011",),
)
def held(output: PackageOutput, host: HostView) -> Iterator[Hit]:
    """What apt says, with the packages it names."""
    if output.what != "held":
        return
    names = output.names or ("PACKAGES",)
    # The toolkit's packages go together: one alone makes a mixed set.
    packages = " ".join(_TOOLKIT if set(names) & set(_TOOLKIT) else names)
    named = " ".join(output.names) or "apt does not name them here"
    yield Hit(
        output.at,
        f"held packages would be changed: {named}",
        commands=(
            f"apt-mark unhold {packages}",
            f"apt-get install --only-upgrade {packages}",
            f"apt-mark hold {packages}",
        ),
    )


@rule(
    "apt-signed-by-conflict",
    "One repository is listed twice with different keys",
    Severity.ERROR,
    reads=PackageOutput,
    reason="An old list file and a new one name the same source with different signed-by: apt "
    "reads "
    "none of its lists.",
    fix="Remove the old list file.",
    sources=("NVIDIA/nvidia-container-toolkit issue 170",),
)
def signed_by(output: PackageOutput, host: HostView) -> Iterator[Hit]:
    """What apt names the source."""
    if output.what == "signed-by":
        yield Hit(
            output.at,
            f"two list files name {output.names[0]}",
            commands=(f"grep -rln '{output.names[0]}' /etc/apt/sources.list.d",),
        )


@rule(
    "apt-conflicting-packages",
    "Packages cannot be installed together",
    Severity.WARNING,
    reads=PackageOutput,
    reason="Two driver branches, one package of a set that goes together, or Docker's own packages "
    "beside the distribution's.",
    fix="Remove the old branch or set in the same transaction; name all packages of the set.",
    sources=("NVIDIA/ansible-role-nvidia-driver PR 33", "NVIDIA/nvidia-docker issue 1492"),
)
def conflict(output: PackageOutput, host: HostView) -> Iterator[Hit]:
    """What apt says."""
    if output.what == "conflict":
        yield Hit(output.at, output.said, commands=("apt-mark showhold", "dpkg -l | grep nvidia"))
