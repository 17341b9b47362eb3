# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on what the NVIDIA driver wrote into the kernel log."""

from __future__ import annotations

from collections.abc import Iterator

from ..documents.dumps import DriverLog
from ..host import HostView
from ..model import Hit, Judge, Severity
from ..registry import rule
from ..symptoms import xid as table

_CATALOGUE = "NVIDIA Xid documentation"
_ACTIONS = {number: (name, action) for number, name, action in table.XIDS}


def _judge(action: table.Action) -> Judge:
    def judge(log: DriverLog, host: HostView) -> Iterator[Hit]:
        for line in log.xids:
            name, its = _ACTIONS.get(line.number, ("", None))
            if its is not action:
                continue
            times = f", {line.times} times" if line.times > 1 else ""
            said = f": {line.text}" if line.text else ""
            yield Hit(
                line.at,
                f"Xid {line.number} ({name}) of the GPU at {line.slot}{times}{said}",
                commands=action.commands,
            )

    return judge


def _declare() -> None:
    actions = {action.id: action for _number, _name, action in table.XIDS}
    for action in actions.values():
        numbers = ", ".join(str(n) for n, _name, its in table.XIDS if its is action)
        rule(
            action.id,
            f"{action.title} (Xid {numbers})",
            action.severity,
            reads=DriverLog,
            reason=action.why,
            fix=action.fix,
            sources=(_CATALOGUE,),
            cases=("DR-017",) if action is table.BUS else (),
        )(_judge(action))


_declare()


@rule(
    "log-xid-unknown",
    "An Xid that this release does not know",
    Severity.INFO,
    reads=DriverLog,
    reason="The driver reports an error of a GPU by a number that this release does not know.",
    fix="Look the number up in NVIDIA's Xid catalogue, and look at what stands around it.",
    sources=(_CATALOGUE,),
)
def xid_unknown(log: DriverLog, host: HostView) -> Iterator[Hit]:
    """Each number that has no entry."""
    for line in log.xids:
        if line.number not in _ACTIONS:
            yield Hit(line.at, f"Xid {line.number} of the GPU at {line.slot}: {line.text}")


@rule(
    "log-driver-mismatch",
    "Module and libraries of the driver are of two releases",
    Severity.ERROR,
    reads=DriverLog,
    reason="The driver's packages were updated and the old module is still loaded. Every new "
    "client of the driver fails until both are of exactly one release.",
    fix="Reboot, or stop all GPU clients and reload the modules. In a play, reboot before anything "
    "starts a client of the driver (such as nvidia-persistenced).",
    sources=("NVIDIA/nvidia-docker issue 1451", "stackhpc/ansible-slurm-appliance issue 287"),
    row="151",
    cases=("DR-002", "PA-013"),
)
def driver_mismatch(log: DriverLog, host: HostView) -> Iterator[Hit]:
    """Each pair of releases."""
    for found in log.mismatches:
        yield Hit(
            found.at,
            f"the client's libraries are {found.library}, the loaded module is {found.module}",
            commands=(
                "systemctl stop nvidia-persistenced",
                "modprobe -r nvidia_drm nvidia_modeset nvidia_uvm nvidia",
                "modprobe nvidia",
                "nvidia-modprobe -c 0 -u",
            ),
        )


@rule(
    "log-open-module-needs-turing",
    "The open kernel modules do not serve this card",
    Severity.ERROR,
    reads=DriverLog,
    reason="They need a GPU with a GSP: Turing or newer. Older cards need the proprietary modules.",
    fix="Install the proprietary modules of a branch that still knows the card; 580 is the last "
    "for "
    "Maxwell, Pascal and Volta.",
    sources=("zzzhouuu/truenas-nvidia-drivers issue 20", "NVIDIA driver installation guide"),
    cases=("DR-012",),
)
def open_module(log: DriverLog, host: HostView) -> Iterator[Hit]:
    """Each card that the open modules refused."""
    for found in log.refusals:
        if found.why == "open":
            yield Hit(
                found.at,
                f"the open modules refuse the {found.card}",
                commands=("apt-get install nvidia-driver-580",),
            )


@rule(
    "log-legacy-driver-branch",
    "This driver release has left the card behind",
    Severity.ERROR,
    reads=DriverLog,
    reason="A card is served up to the last branch of its generation: 390, 470 or 580.",
    fix="Install the branch that the log names, hold it, and keep upgrades from going past it.",
    sources=("NixOS/nixos-hardware PR 1843", "NVIDIA legacy driver list"),
    cases=("DR-013",),
)
def legacy_branch(log: DriverLog, host: HostView) -> Iterator[Hit]:
    """Each card with the branch it needs."""
    for found in log.refusals:
        if found.why not in ("legacy", "unsupported"):
            continue
        number = found.branch.partition(".")[0]
        branch = f"; its last branch is {found.branch}" if found.branch else ""
        commands = (
            (f"apt-get install nvidia-driver-{number}", f"apt-mark hold nvidia-driver-{number}")
            if number
            else ()
        )
        yield Hit(found.at, f"the driver ignores the {found.card}{branch}", commands=commands)


@rule(
    "log-new-card-needs-open-module",
    "The card needs the open kernel modules",
    Severity.ERROR,
    reads=DriverLog,
    reason="Blackwell and newer cards have no proprietary kernel modules.",
    fix="Install the open flavour of the same branch.",
    sources=("NVIDIA driver installation guide, kernel modules",),
)
def needs_open(log: DriverLog, host: HostView) -> Iterator[Hit]:
    """Each card that asks for them."""
    for found in log.refusals:
        if found.why == "needs-open":
            yield Hit(
                found.at,
                f"the {found.card} requires the open modules",
                commands=("apt-get install nvidia-driver-580-open",),
            )


@rule(
    "log-gpu-init-failed",
    "The driver could not initialise a GPU",
    Severity.ERROR,
    reads=DriverLog,
    reason="Missing firmware, a GPU in a bad state, too little power, a passthrough without reset, "
    "or no memory window for its BARs.",
    fix="Power cycle the host; look at the driver's lines before it; install the firmware of "
    "exactly "
    "the driver's release; switch on Above 4G Decoding.",
    sources=("NVIDIA driver README",),
)
def init_failed(log: DriverLog, host: HostView) -> Iterator[Hit]:
    """Each GPU once, with the driver's code."""
    seen: set[str] = set()
    for found in log.failed:
        if found.slot not in seen:
            seen.add(found.slot)
            yield Hit(found.at, f"RmInitAdapter failed for the GPU at {found.slot} ({found.text})")


@rule(
    "log-module-rejected",
    "The kernel refuses the unsigned module",
    Severity.ERROR,
    reads=DriverLog,
    reason="With Secure Boot a module must be signed with a key that the firmware knows.",
    fix="Enrol the key that DKMS signs with and reboot, or install modules that the distribution "
    "has "
    "signed.",
    sources=("Ubuntu UEFI SecureBoot and DKMS",),
)
def rejected(log: DriverLog, host: HostView) -> Iterator[Hit]:
    """The first line that says so."""
    for at in log.rejected[:1]:
        yield Hit(
            at,
            "the kernel rejects a module for want of a known signature",
            commands=("mokutil --sb-state", "mokutil --import /var/lib/dkms/mok.pub"),
        )
