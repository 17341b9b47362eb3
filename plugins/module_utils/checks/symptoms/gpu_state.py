# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A GPU that is slow, hot, full, hung, or that the switches complain of. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from . import holds
from .causes import SICK_GPU
from .fabric import FM_VERSION
from .xid import LINK, MEMORY

_THROTTLE = "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER,CLOCK"

HOT = Cause(
    id="gpu-too-hot",
    title="The GPU is too hot",
    why="Passive cards need the server's air; dust, a failed fan or a blocked slot make the driver "
    "lower the clocks.",
    proof=_THROTTLE,
    shows="HW Thermal Slowdown or SW Thermal Slowdown: Active",
    fix="Restore the air flow (fans, shrouds, inlet temperature); lower the power limit meanwhile.",
    commands=("nvidia-smi -q -d TEMPERATURE", "nvidia-smi -pl WATTS"),
    sources=("nvidia-smi(1), clocks event reasons",),
    hints=(r"thermal|temperature|hot|overheat",),
)

POWER = Cause(
    id="gpu-power-limited",
    title="Power is limited",
    why="SW Power Cap is the card's own limit and normal under load; HW Power Brake comes from the "
    "server (a failed supply, its power budget), HW Slowdown from a cable that is missing.",
    proof=_THROTTLE,
    shows="the reason that is Active",
    fix="SW Power Cap needs nothing. For a power brake look at the supplies and the BMC's power "
    "policy; "
    "check the power cables.",
    commands=("nvidia-smi -q -d POWER", "ipmitool sdr type 'Power Supply'"),
    sources=("nvidia-smi(1), clocks event reasons",),
    hints=(r"power|brake",),
)

CLOCKS = Cause(
    id="gpu-clocks-locked",
    title="The clocks are locked, or the GPU is idle",
    why="nvidia-smi -lgc or an application clock stays until it is reset; an idle GPU runs "
    "slowly on "
    "purpose.",
    proof="nvidia-smi -q -d CLOCK,PERFORMANCE",
    shows="Applications Clocks below the maximum, or Idle: Active",
    fix="Reset the clocks.",
    commands=("nvidia-smi -rgc", "nvidia-smi -rac"),
    sources=("nvidia-smi(1)",),
    hints=(r"lock|-lgc|idle",),
)

HUNG = Cause(
    id="driver-unresponsive",
    title="The driver hangs",
    why="A dead GSP, a GPU that fell off the bus, or a process in an uninterruptible call holds "
    "the "
    "driver's lock; everything that opens a GPU waits.",
    proof="dmesg -T | grep -E 'Xid|NVRM|hung task|blocked for more' | tail; ps -eo "
    "pid,stat,wchan:30,"
    "args | awk '$2 ~ /D/'",
    shows="an Xid, a hung task in nvidia, or processes in state D",
    fix="Drain the host and reset the GPU, or reboot; power cycle if that hangs, too.",
    commands=("dmesg -T | grep -E 'Xid|NVRM' | tail", "nvidia-bug-report.sh"),
    sources=("NVIDIA Xid documentation, Xid 119 and 79",),
    hints=(r"\bD\b state|uninterruptible|hung task|xid|never",),
    holds=holds.driver_status("unresponsive"),
)

NO_PERSISTENCE = Cause(
    id="gpu-persistence-off",
    title="The driver initialises every GPU anew at each start",
    why="Without nvidia-persistenced state is lost when the last client goes: seconds per GPU, "
    "half a "
    "minute on large hosts.",
    proof="nvidia-smi --query-gpu=index,persistence_mode --format=csv; systemctl is-active "
    "nvidia-persistenced",
    shows="Disabled, and the service not active",
    fix="Enable nvidia-persistenced.",
    commands=("systemctl enable --now nvidia-persistenced",),
    sources=("NVIDIA driver persistence documentation",),
    hints=(r"seconds|slow|first|takes|timed out",),
)

ORPHAN = Cause(
    id="gpu-memory-orphaned",
    title="A process of an ended container still holds the GPU",
    why="A worker outlived its parent (no init in the container, a kill of the shim), or it "
    "waits in "
    "the driver.",
    proof="fuser -v /dev/nvidia*; nvidia-smi --query-compute-apps=pid,name,used_memory "
    "--format=csv; ps "
    "-eo pid,ppid,stat,args | grep -E 'defunct|python'",
    shows="processes whose container is gone, or defunct ones whose parent lives",
    fix="End those processes; run containers with --init; reset the GPU if memory stays without "
    "any "
    "process.",
    commands=("fuser -v /dev/nvidia*", "nvidia-smi --gpu-reset -i INDEX"),
    sources=("docker run --init documentation",),
    hints=(r"zombie|defunct|not released|after (the )?(container )?(stop|kill|crash)",),
)

ECC = Cause(
    id="xid-memory-error",
    title=MEMORY.title,
    why=MEMORY.why,
    proof="nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT",
    shows="uncorrectable errors, pending rows, or a remapping failure",
    fix=MEMORY.fix,
    commands=MEMORY.commands,
    sources=("NVIDIA GPU memory error management",),
    hints=(r"uncorrect|remap|retire",),
)

SXID = Cause(
    id="nvswitch-sxid",
    title="An NVSwitch reports an error",
    why="Fatal SXids take a link or the switch down; the fabric manager decides about the GPUs. "
    "Non-fatal "
    "ones are counted.",
    proof="dmesg | grep SXid | tail; journalctl -u nvidia-fabricmanager -n 30 --no-pager; "
    "nvidia-smi "
    "nvlink -s",
    shows="Fatal or Non-fatal, and the link",
    fix="For a fatal one: drain, reset all GPUs and NVSwitches together (or reboot), look at "
    "that link's "
    "hardware if it comes again.",
    commands=LINK.commands,
    sources=("NVIDIA fabric manager user guide, SXid errors",),
    hints=(r"SXid",),
)

ORDER = Cause(
    id="cuda-device-order",
    title="CUDA counts GPUs in another order than nvidia-smi",
    why="CUDA puts the fastest first unless CUDA_DEVICE_ORDER=PCI_BUS_ID; NVML and nvidia-smi "
    "count by "
    "PCI address; in a container numbers begin at 0.",
    proof="nvidia-smi -L; python3 -c 'import torch; [print(i, "
    "torch.cuda.get_device_properties(i)) for "
    "i in range(torch.cuda.device_count())]'",
    shows="two orders",
    fix="Set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name GPUs by UUID.",
    commands=("export CUDA_DEVICE_ORDER=PCI_BUS_ID",),
    sources=("CUDA programming guide, environment variables",),
    hints=(r"order|index",),
)

_NOT_SUPPORTED = Cause(
    id="cuda-feature-not-supported",
    title="This GPU, driver mode or virtualisation does not have the feature",
    why="Managed memory and peer access are missing under vGPU and WSL, cuMem handles in "
    "containers "
    "without the right nodes, some calls on MIG.",
    proof="nvidia-smi -q | grep -iE 'virtualization|mig mode|product name'; systemd-detect-virt",
    shows="VGPU, MIG or WSL",
    fix="Switch the feature off in the program (NCCL_P2P_DISABLE=1, NCCL_CUMEM_ENABLE=0), or use "
    "passthrough.",
    commands=("export NCCL_CUMEM_ENABLE=0",),
    sources=("CUDA driver API, errors 800 and 801",),
    hints=(r"vgpu|wsl|mig|managed",),
)

SYMPTOMS = (
    Symptom(
        id="gpu-throttled",
        title="The GPU's clocks are lowered",
        patterns=(
            r"(HW|SW) (Thermal |Power Brake )?Slowdown",
            r"(thermal|power)[- ](throttl|slowdown|violation|brake|cap)",
            r"(clocks?_?(event|throttle)_?reasons?).{0,60}active",
            r"GPU.{0,40}(overheat\w*|too hot|temperature (is )?(high|too high))",
            r"GPU clocks? (are |is )?(stuck|locked|low|capped)",
            r"GPU (is |runs )(very |too )?slow\b",
        ),
        causes=(HOT, POWER, CLOCKS),
        tell_apart=_THROTTLE,
        sources=("nvidia-smi(1), clocks event reasons",),
    ),
    Symptom(
        id="driver-hangs",
        title="nvidia-smi or a GPU container hangs",
        patterns=(
            r"nvidia-smi (hangs?|is stuck|gets stuck|never returns|blocks|does not return|takes)",
            r"docker run .{0,60}--gpus.{0,60}(hangs?|stuck)|docker run hangs",
            r"(container|start) .{0,40}(takes|took) "
            r".{0,20}(seconds|minutes).{0,60}(gpu|driver|nvidia)",
            r"driver rpc error: timed out",
            r"task \S{0,80}nvidia\S{0,80} blocked for more than",
            r"(takes|took) \d+ s(ec\w*)? to (start|initiali[sz]e)",
        ),
        causes=(HUNG, NO_PERSISTENCE, SICK_GPU),
        tell_apart="dmesg -T | grep -E 'Xid|NVRM|hung|blocked' | tail; systemctl is-active "
        "nvidia-persistenced; time timeout 60 nvidia-smi -L",
        sources=("NVIDIA driver persistence documentation",),
    ),
    Symptom(
        id="gpu-memory-stays",
        title="GPU memory stays taken after a container ended",
        patterns=(
            r"GPU memory (is |was )?not (released|freed)",
            r"(zombie|defunct|orphan\w*).{0,60}(GPU|cuda|nvidia)",
            r"(GPU|VRAM|memory).{0,40}(still|remains|stays) (in "
            r"use|used|allocated|occupied).{0,40}(after|no "
            r"process)",
            r"memory.{0,20}used.{0,30}no (running )?process",
        ),
        causes=(ORPHAN, SICK_GPU),
        tell_apart="fuser -v /dev/nvidia*; nvidia-smi; ps -eo pid,ppid,stat,args | grep -E "
        "'defunct|python'",
        sources=("docker run --init documentation",),
    ),
    Symptom(
        id="gpu-ecc",
        title="ECC errors or remapped rows",
        patterns=(
            r"(uncorrectable|double.?bit) (ECC|memory) error",
            r"ECC errors?.{0,30}uncorrect",
            r"row remap\w*.{0,40}(fail|pending)",
            r"(pending|retired) pages?.{0,30}(yes|pending|[1-9])",
            r"Remapping Failure Occurred.{0,6}Yes",
        ),
        causes=(ECC,),
        tell_apart="nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT; dmesg | grep Xid | tail",
        sources=("NVIDIA GPU memory error management",),
    ),
    Symptom(
        id="smi-err",
        title="nvidia-smi shows ERR!",
        patterns=(r"(nvidia-smi|\|).{0,80}(?<!npm )\bERR!",),
        causes=(SICK_GPU, HUNG),
        tell_apart="dmesg -T | grep -E 'Xid|NVRM' | tail; nvidia-smi -q",
        sources=("NVIDIA Xid documentation",),
    ),
    Symptom(
        id="nvswitch-sxid",
        title="SXid: an error of an NVSwitch",
        patterns=(r"\bSXid\b",),
        causes=(SXID, FM_VERSION),
        tell_apart="dmesg | grep SXid | tail; journalctl -u nvidia-fabricmanager -n 30 --no-pager",
        sources=("NVIDIA fabric manager user guide, SXid errors",),
    ),
    Symptom(
        id="gpu-order",
        title="A program uses another GPU than was meant",
        patterns=(
            r"CUDA_DEVICE_ORDER",
            r"(wrong|another|different) GPU (is )?(used|selected|index|order)",
            r"(index|order|number\w*) .{0,40}(differs?|different|does not "
            r"match).{0,40}(nvidia-smi|CUDA)",
        ),
        causes=(ORDER,),
        tell_apart="nvidia-smi -L; env | grep -E 'CUDA_(DEVICE|VISIBLE)'",
        sources=("CUDA programming guide, environment variables",),
    ),
    Symptom(
        id="cuda-not-supported",
        title="CUDA: operation not supported or not permitted (800, 801)",
        patterns=(
            r"CUDA_ERROR_NOT_(SUPPORTED|PERMITTED)",
            r"cudaErrorNot(Supported|Permitted)",
            r"\bCUDA error:? (operation not (supported|permitted)|80[01]\b)",
        ),
        causes=(_NOT_SUPPORTED,),
        tell_apart="nvidia-smi -q | grep -iE 'virtualization|mig mode'; systemd-detect-virt; ls "
        "/dev/nvidia-caps-imex-channels",
        sources=("CUDA driver API, errors 800 and 801",),
    ),
)
