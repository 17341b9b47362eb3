# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Xids: the driver's error reports in the kernel log, and what to do about each. Data."""

from __future__ import annotations

from dataclasses import dataclass

from ..explain import Cause, Symptom
from ..model import Severity
from . import holds
from .nvml_refused import GSP_FIRMWARE, INIT_FAILED, NO_WINDOW

_CATALOGUE = "NVIDIA Xid documentation"
_LOG = "dmesg -T | grep -E 'NVRM|Xid' | tail -20"


@dataclass(frozen=True)
class Action:
    """What a class of Xids asks for. ``severity`` is that of a finding in a log."""

    id: str
    title: str
    why: str
    fix: str
    severity: Severity
    commands: tuple[str, ...]


PROGRAM = Action(
    "xid-program",
    "The program did something illegal, mostly",
    "The same Xid with one program only, on any GPU, is a fault of the program or its libraries; "
    "with many programs on one GPU it is the GPU.",
    "Note the pid of the line and look at that program. Test the GPU when others fail on it too.",
    Severity.INFO,
    ("compute-sanitizer PROGRAM", "dcgmi diag -r 3"),
)
FOLLOWS = Action(
    "xid-follow-up",
    "A follow-up of another event",
    "The driver cleaned up after a program was killed or after an earlier Xid.",
    "Look for the Xid before it. Alone, with a program that was ended, it needs nothing.",
    Severity.INFO,
    (_LOG,),
)
RETIRED = Action(
    "xid-memory-repair",
    "Bad memory was recorded for replacement",
    "A row is remapped (a page is retired) at the next reset. Nothing is broken; the GPU asks "
    "for a "
    "reset at leisure.",
    "Drain the GPU when convenient and reset it; watch the count of remapped rows.",
    Severity.INFO,
    ("nvidia-smi -q -d ROW_REMAPPER,PAGE_RETIREMENT", "nvidia-smi --gpu-reset -i INDEX"),
)
MEMORY = Action(
    "xid-memory-error",
    "An uncorrectable error of the GPU's memory",
    "The affected program was ended (contained) or everything on the GPU is in doubt "
    "(uncontained).",
    "Drain the GPU and reset it. Replace it when rows can no longer be remapped, or when the error "
    "comes again (NVIDIA's field diagnostics).",
    Severity.ERROR,
    ("nvidia-smi -q -d ECC,ROW_REMAPPER", "nvidia-smi --gpu-reset -i INDEX"),
)
BUS = Action(
    "xid-79-off-bus",
    "The GPU has fallen off the bus",
    "Power, heat, seating, a riser, the slot or the SBIOS. No software brings it back, and "
    "starting "
    "containers again makes it worse.",
    "Drain the host, power cycle it (a warm reboot is often not enough), check power cables, "
    "seating and temperature; replace the GPU if it comes again.",
    Severity.ERROR,
    ("nvidia-smi -q -d TEMPERATURE,POWER", "lspci -vv -d 10de: | grep -E 'LnkSta|NVIDIA'"),
)
FIRMWARE = Action(
    "xid-gsp",
    "The GPU's firmware (GSP) does not answer or has failed",
    "The processor that runs the driver's firmware hangs or crashed. Calls to the GPU block until "
    "it is reset.",
    "Drain the GPU, reset it (or reboot), and update the driver. Collect nvidia-bug-report.sh "
    "first. On proprietary modules NVreg_EnableGpuFirmware=0 is a way round where it is allowed.",
    Severity.ERROR,
    ("nvidia-bug-report.sh", "nvidia-smi --gpu-reset -i INDEX"),
)
LINK = Action(
    "xid-nvlink",
    "An NVLink failed",
    "A link between GPUs or to an NVSwitch has errors. Other GPUs of the fabric may be affected; a "
    "bridge or tray may be loose.",
    "Drain the host, reset all GPUs of the fabric together, look at the link counters and the "
    "fabric manager's log; reseat or replace what fails again.",
    Severity.ERROR,
    ("nvidia-smi nvlink -s", "nvidia-smi nvlink -e", "journalctl -u nvidia-fabricmanager -n 50"),
)
RESET = Action(
    "xid-needs-reset",
    "The GPU is in a state that only a reset clears",
    "An engine of the GPU stopped, or the driver decided that it must be recovered.",
    "Drain the GPU and reset it (all GPUs of an NVLink fabric together), or reboot as the Xid 154 "
    "line says.",
    Severity.ERROR,
    ("nvidia-smi -q | grep -i 'recovery action'", "nvidia-smi --gpu-reset -i INDEX"),
)

# (Xid, what it is called, its action). Source: NVIDIA's Xid catalogue, r560 to r595.
XIDS: tuple[tuple[int, str, Action], ...] = (
    (8, "GPU stopped processing, a channel timed out", RESET),
    (13, "graphics engine exception", PROGRAM),
    (31, "GPU memory page fault", PROGRAM),
    (32, "invalid or corrupted push buffer stream", PROGRAM),
    (38, "driver firmware error", FIRMWARE),
    (43, "GPU stopped processing for this program", PROGRAM),
    (44, "graphics engine fault during context switch", RESET),
    (45, "preemptive clean-up after earlier errors", FOLLOWS),
    (46, "GPU stopped processing, timeout", RESET),
    (48, "double bit ECC error", MEMORY),
    (54, "auxiliary power is not connected to the board", BUS),
    (56, "display engine error", RESET),
    (61, "internal micro-controller breakpoint", RESET),
    (62, "internal micro-controller halt", RESET),
    (63, "row remapping or page retirement recorded", RETIRED),
    (64, "row remapping or page retirement could not be recorded", MEMORY),
    (68, "video processor exception", PROGRAM),
    (69, "graphics engine class error", PROGRAM),
    (74, "NVLink error", LINK),
    (78, "vGPU start error", RESET),
    (79, "GPU has fallen off the bus", BUS),
    (92, "high rate of single bit ECC errors", RETIRED),
    (93, "non-fatal violation of provisioned InfoROM wear limit", FOLLOWS),
    (94, "contained memory error", MEMORY),
    (95, "uncontained memory error", MEMORY),
    (109, "context switch timeout", RESET),
    (110, "security fault", RESET),
    (119, "GSP RPC timeout", FIRMWARE),
    (120, "GSP error", FIRMWARE),
    (121, "C2C link corrected error", FOLLOWS),
    (122, "SPI RMW failure", RESET),
    (123, "SPI PMU RPC write failure", RESET),
    (136, "fatal link training failure", LINK),
    (137, "NVLink privileged or remote access fault", PROGRAM),
    (140, "unrecovered ECC error", MEMORY),
    (143, "GPU initialisation error", RESET),
    (144, "NVLink: SAW error", LINK),
    (145, "NVLink: RLW error", LINK),
    (146, "NVLink: TLW error", LINK),
    (147, "NVLink: TREX error", LINK),
    (148, "NVLink: NVLPW_CTRL error", LINK),
    (149, "NVLink: NETIR error", LINK),
    (150, "NVLink: MSE error", LINK),
    (151, "key rotation error", RESET),
    (154, "the GPU's recovery action changed", RESET),
    (155, "NVLink: software defined error", LINK),
    (156, "a resource was retired", RETIRED),
    (157, "a resource could not be retired", MEMORY),
    (158, "GPU fatal timeout", RESET),
    (160, "channel retirement event", RETIRED),
    (161, "channel retirement failure", MEMORY),
    (163, "GPU memory poison, contained", MEMORY),
    (171, "uncorrectable DRAM error, additional to 48", MEMORY),
    (172, "uncorrectable SRAM error, additional to 48", MEMORY),
)

_MORE_CASES = {79: ("DR-017",)}


def _cause(number: int, name: str, action: Action) -> Cause:
    return Cause(
        id=action.id,
        title=f"Xid {number}, {name}: {action.title[0].lower()}{action.title[1:]}",
        why=action.why,
        proof=_LOG,
        shows=f"Xid {number} with the PCI address of the GPU, and what came before it",
        fix=action.fix,
        commands=action.commands,
        sources=(f"{_CATALOGUE}, Xid {number}",),
        cases=_MORE_CASES.get(number, ()),
        holds=holds.xid_seen(number),
        severity=action.severity,
    )


def _symptom(number: int, name: str, action: Action) -> Symptom:
    more = (r"GPU has fallen off the bus", r"GPU vanishes until power cycle")
    return Symptom(
        id=f"xid-{number}",
        title=f"Xid {number}: {name}",
        patterns=(
            rf"\bXid(s)?( error)?( ?\((PCI:)?[0-9a-f:.]+\))?[:=,]? {{0,2}}{number}\b(?![.:]\d)",
            *(more if number == 79 else ()),
        ),
        causes=(_cause(number, name, action),),
        tell_apart=_LOG,
        sources=(f"{_CATALOGUE}, Xid {number}",),
        cases=_MORE_CASES.get(number, ()),
    )


_PCIE = Cause(
    id="pcie-errors",
    title="The PCIe link has errors",
    why="A riser, a cable, the slot, or a link that trained at a lower speed or width.",
    proof="dmesg | grep -iE 'aer|pcieport' | tail; nvidia-smi "
    "--query-gpu=index,pcie.link.gen.current,"
    "pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max --format=csv",
    shows="AER messages for the port above the GPU, or a narrower link under load",
    fix="Reseat or replace riser and cable; drain the host when errors are uncorrectable. "
    "Corrected "
    "ones in a burst come before a GPU that falls off the bus.",
    sources=("kernel PCIe AER documentation",),
    hints=(r"uncorrect", r"aer"),
)

SYMPTOMS = (
    *(_symptom(*entry) for entry in XIDS),
    Symptom(
        id="gpu-is-lost",
        title="A GPU is lost",
        patterns=(
            r"\bGPU is lost\b",
            r"NVMLError_GpuIsLost",
            r"Unable to determine the device handle for (the )?gpu",
            r"GPU .{0,40}requires? (a )?reset",
            r"GPU (recovery|needs to be reset)|ERROR_RESET_REQUIRED",
        ),
        causes=(
            _cause(79, "GPU has fallen off the bus", BUS),
            _cause(119, "GSP timeout", FIRMWARE),
        ),
        tell_apart=_LOG,
        sources=(_CATALOGUE,),
    ),
    Symptom(
        id="pcie-aer",
        title="PCIe errors near a GPU",
        patterns=(
            r"AER: (Multiple )?(Uncorrect|Correct)\w+ (\(\w+\) )?error",
            r"PCIe Bus Error: severity=\w+",
            r"pcie.{0,30}(replay|link (is )?down|Link Down)",
        ),
        causes=(_PCIE,),
        tell_apart="dmesg -T | grep -iE 'aer|pcieport|xid' | tail -20; lspci -tv",
        sources=("kernel PCIe AER documentation",),
    ),
    Symptom(
        id="gpu-bar-invalid",
        title="The GPU's memory window is invalid",
        patterns=(
            r"This PCI I/O region assigned to your NVIDIA device is invalid",
            r"NVRM: BAR\d is \d+M @ 0x0",
            r"BAR \d+.{0,60}(no space for|failed to assign|can.?t assign)",
        ),
        causes=(NO_WINDOW,),
        tell_apart="lspci -vv -d 10de: | grep Region; dmesg | grep -iE 'NVRM|BAR' | tail",
        sources=("NVIDIA driver README, BAR address invalid",),
    ),
    Symptom(
        id="gpu-init-failed",
        title="The driver could not initialise a GPU",
        patterns=(
            r"RmInitAdapter failed",
            r"rm_init_adapter failed",
            r"(failed to load|unable to find|direct firmware "
            r"load).{0,60}nvidia/\S{0,80}gsp\S{0,80}",
            r"GPU \S{1,80} GSP RM(?! version)|kgsp\w+: .{0,40}(failed|error|timeout)",
            r"probe of [0-9a-f:.]+ failed with error -1",
        ),
        causes=(GSP_FIRMWARE, INIT_FAILED, NO_WINDOW),
        tell_apart="dmesg | grep -E 'NVRM|nvidia' | tail -20; lspci -vv -d 10de: | grep Region",
        sources=("NVIDIA driver README",),
    ),
    Symptom(
        id="nvlink-down",
        title="NVLinks are down",
        patterns=(
            r"nvlink.{0,40}(inactive|down|<inactive>)",
            r"NVLink.{0,40}(not (up|active|trained)|training (failed|error))",
        ),
        causes=(_cause(74, "NVLink error", LINK),),
        tell_apart="nvidia-smi nvlink -s; nvidia-smi nvlink -e; nvidia-smi topo -m",
        sources=("nvidia-smi(1), nvlink",),
    ),
)
