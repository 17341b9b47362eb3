# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on commands of NVIDIA's tools and others that do not exist, or do something else. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..documents.commands import CommandLine
from ..host import HostView
from ..model import Given, Hit, Needs, Severity
from ..registry import rule

_NCT = "NVIDIA/nvidia-container-toolkit v1.12 to v1.20, cmd/"
_LNC = "NVIDIA/libnvidia-container src/cli/list.c"


@rule(
    "toolkit-command-flag",
    "No NVIDIA tool has this flag",
    Severity.ERROR,
    reads=CommandLine,
    reason="The tool ends with a usage error; where a hook calls it, every container fails to "
    "start.",
    fix="Leave the flag out.",
    sources=(_NCT, "NVIDIA/k8s-device-plugin cmd/nvidia-device-plugin/main.go"),
    row="23, 32, 152, 158, 166",
)
def toolkit_command_flag(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """Those that articles made up, each with what is meant."""
    if not re.match(
        r"nvidia-(ctk|container-\w+|device-plugin|docker)|k8s-device-plugin", line.name
    ):
        return
    memory = (
        "GPU memory is limited by a MIG device, by MPS, or with driver 615 and newer by "
        "nvidia-smi memory-limits on the container's cgroup."
    )
    instead = {
        "--set-gpu-opts": 'Set runtime_type = "io.containerd.runc.v2" with BinaryName in '
        "containerd's configuration: nvidia-ctk runtime configure --runtime=containerd.",
        "--gpu-memory-limit": memory,
        "--gpu-memory": memory,
        "--require-gpu-uuid": "Name the GPU: --gpus device=GPU-….",
        "--require-uvm": "Load the module before: nvidia-modprobe -u -c 0.",
        "--no-op": "Check with nvidia-container-cli info.",
    }
    if "plugin" in line.name:
        instead["--enable-cdi"] = "Use --device-list-strategy=cdi-cri."
    for word in line.words:
        name = word.value.partition("=")[0]
        if name in instead:
            yield Hit(word.at, f"{line.name} has no {name}.", fix=instead[name])


@rule(
    "nvidia-container-cli-list",
    "nvidia-container-cli list knows no --gpus",
    Severity.ERROR,
    reads=CommandLine,
    reason="list has --device, --libraries, --binaries, --ipcs and a few more, and prints paths; "
    "no version of it shows memory. A usage error here says nothing about the toolkit's age.",
    fix="Use nvidia-container-cli list --device=all, and nvidia-smi for memory.",
    sources=(_LNC,),
    row="153",
)
def nvidia_container_cli_list(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """``list --gpus all``."""
    if line.name == "nvidia-container-cli" and line.starts("list"):
        given = line.has("--gpus")
        if given:
            yield Hit(
                given.at,
                "nvidia-container-cli list has no --gpus.",
                commands=("nvidia-container-cli list --device=all",),
            )


@rule(
    "toolkit-daemon",
    "The toolkit has no daemon",
    Severity.ERROR,
    reads=CommandLine,
    reason="The NVIDIA Container Toolkit is a set of commands and hooks that run when a container "
    "starts; nothing of it listens or is reloaded.",
    fix="Leave it out. What is configured stands in /etc/nvidia-container-runtime/config.toml and "
    "is read at every start of a container.",
    sources=(_NCT,),
    row="41",
)
def toolkit_daemon(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """The command called directly."""
    if line.name == "nvidia-container-toolkit-daemon":
        yield Hit(line.at, f"{line.name} is called.")


@rule(
    "create-dev-char-symlinks-watch",
    "nvidia-ctk create-dev-char-symlinks no longer watches",
    Severity.ERROR,
    reads=CommandLine,
    reason="--watch was removed in the 1.17 releases; the command ends with a usage error.",
    fix="Use nvidia-ctk system create-dev-char-symlinks --create-all, and a udev rule that runs it "
    "when the driver is loaded.",
    sources=("NVIDIA/nvidia-container-toolkit CHANGELOG, 1.17",),
    needs=(Needs("toolkit", ">=1.17"),),
    unknown=Severity.WARNING,
)
def create_dev_char_symlinks_watch(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """Old guides have it in a unit."""
    words = [word.value for word in line.words]
    given = line.has("--watch")
    if line.name == "nvidia-ctk" and "create-dev-char-symlinks" in words and given:
        yield Hit(given.at, "create-dev-char-symlinks is called with --watch.")


@rule(
    "cdi-generate-library-path",
    "The CDI specification will lack the driver's libraries",
    Severity.WARNING,
    reads=CommandLine,
    reason="nvidia-ctk looks for libraries where the dynamic linker does and in the usual "
    "directories. Where the driver lies elsewhere the specification is made without libcuda, or "
    "not at all.",
    fix="Add --library-search-path with that directory, or --driver-root where a whole driver "
    "tree lies below it.",
    sources=("NVIDIA/nvidia-container-toolkit issue 735, cmd/nvidia-ctk/cdi/generate",),
    cases=("TK-030",),
)
def cdi_generate_library_path(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """Only where the line itself says that the driver lies elsewhere."""
    if line.name != "nvidia-ctk" or not line.starts("cdi", "generate"):
        return
    told = re.search(r"(/[\w./-]*nvidia[\w./-]*/lib(64)?|/usr/local/nvidia)\b", line.comment)
    if told and not line.has("--library-search-path", "--driver-root", "--nvidia-driver-root"):
        path = told.group(1)
        yield Hit(
            line.at,
            f"The driver's libraries are said to lie in {path}.",
            fix=f"Add --library-search-path={path}.",
            commands=(f"{line.text()} --library-search-path={path}",),
        )


@rule(
    "crictl-trace",
    "crictl has no command trace",
    Severity.ERROR,
    reads=CommandLine,
    reason="crictl ends with a usage error, and a script with it.",
    fix="Use crictl --enable-tracing with a collector, containerd's OpenTelemetry settings, or "
    "crictl events.",
    sources=("kubernetes-sigs/cri-tools cmd/crictl/main.go",),
    row="35",
)
def crictl_trace(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """``crictl trace POD``."""
    if line.name == "crictl" and line.starts("trace"):
        yield Hit(line.args[0].at, "crictl trace is called.")


@rule(
    "kubectl-run-flag",
    "kubectl run does not have this flag",
    Severity.ERROR,
    reads=CommandLine,
    reason="kubectl run makes a plain pod: --requests and --limits were removed in 1.24, and a CPU "
    "manager is a setting of the kubelet, not of a pod. The command ends with 'unknown flag'.",
    fix="Write resources in a manifest (equal requests and limits with whole CPUs), and set "
    "cpuManagerPolicy: static in the kubelet's configuration.",
    sources=("kubernetes/kubectl pkg/cmd/run/run.go", "kubernetes.io, CPU management policies"),
    row="104",
)
def kubectl_run_flag(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """Before ``--``, behind which words belong to the container."""
    if line.name != "kubectl" or not line.starts("run"):
        return
    for word in line.words:
        if word.value == "--":
            return
        name = word.value.partition("=")[0]
        if name in ("--requests", "--limits", "--cpu-manager-policy", "--gpus", "--runtime-class"):
            yield Hit(word.at, f"kubectl run has no {name}.")


@rule(
    "nccl-topology-tool",
    "nccl-tests has no tool for topologies",
    Severity.ERROR,
    reads=CommandLine,
    reason="NCCL finds the topology itself when it starts and can write down what it found.",
    fix="Run any program that uses NCCL with NCCL_TOPO_DUMP_FILE=/tmp/topo.xml, and measure with "
    "all_reduce_perf.",
    sources=("NVIDIA/nccl-tests, its list of programs", "NVIDIA/nccl environment variables"),
    row="113",
)
def nccl_topology_tool(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """``topo_exploration``."""
    if line.name in ("topo_exploration", "topo-exploration"):
        yield Hit(line.at, f"{line.name} is called.")


@rule(
    "jq-reads-nothing",
    "jq -n does not read its input",
    Severity.WARNING,
    reads=CommandLine,
    reason="With -n jq starts from null and leaves its input alone: broken JSON passes the check.",
    fix="Use jq empty FILE: it reads the whole file, prints nothing and fails on broken JSON.",
    sources=("jq manual, --null-input",),
    row="175",
)
def jq_reads_nothing(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """-n with the filter ``.`` and an input."""
    null = line.has("-n", "--null-input")
    if line.name != "jq" or null is None or [a.value for a in line.args[:1]] != ["."]:
        return
    file = line.reads or (line.args[1] if len(line.args) > 1 else None)
    if file:
        command = f"jq empty {file.value}"
        yield Hit(null.at, f"{file.value} is not read.", f"Use {command}.", (command,))


@rule(
    "acs-off",
    "ACS is switched off",
    Severity.INFO,
    reads=CommandLine,
    reason="Without ACS, GPUs behind a PCIe switch talk to each other directly; with it their "
    "traffic goes by the root complex. The setting is lost at every boot. In a virtual machine ACS "
    "keeps guests apart and must stay.",
    fix="On bare metal do it at every boot, or switch IO virtualisation off in the firmware; in a "
    "virtual machine leave ACS on and use ATS.",
    sources=("NVIDIA NCCL user guide, troubleshooting: PCI Access Control Services",),
    row="11",
)
def acs_off(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """A warning inside a virtual machine."""
    given = next((w for w in line.words if w.value.upper().startswith("ECAP_ACS")), None)
    if line.name == "setpci" and given and "=" in given.value:
        virtual = host.evidence.get("virtual")
        guest = isinstance(virtual, str) and virtual not in ("", "none")
        seen = f"{given.value} is written" + (f"; this is a {virtual} guest." if guest else ".")
        yield Hit(given.at, seen, severity=Severity.WARNING if guest else None)


@rule(
    "udev-does-not-make-nvidia-nodes",
    "udev does not make NVIDIA's device nodes",
    Severity.INFO,
    reads=CommandLine,
    reason="/dev/nvidia* are made by nvidia-modprobe, nvidia-persistenced and the toolkit, with no "
    "udev event of the drm subsystem: the wait ends with nothing seen.",
    fix="Watch the directory: inotifywait -m /dev, and udevadm monitor --kernel for the module.",
    sources=("NVIDIA/nvidia-modprobe", "NVIDIA open-gpu-kernel-modules"),
    row="9",
)
def udev_does_not_make_nvidia_nodes(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """A monitor of drm."""
    given = line.option("--subsystem-match", "-s")
    monitors = line.name == "udevadm" and line.starts("monitor")
    if monitors and given and given.value.startswith("drm"):
        yield Hit(given.at, "Events of the drm subsystem are waited for.")


@rule(
    "quoted-pattern",
    "A pattern in quotes is compared as it stands",
    Severity.WARNING,
    reads=CommandLine,
    reason="In [[ ]] the right side of == and != is a pattern only without quotes. In quotes the "
    "star is a star: every value differs from it, and the check says the same for all.",
    fix="Leave the quotes off and escape the parentheses: ENC\\(*\\).",
    sources=("GNU Bash manual, Conditional Constructs",),
    row="167",
)
def quoted_pattern(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """The marker of an encrypted value, ``"ENC(*)"``."""
    if line.name != "[[":
        return
    for operator, right in zip(line.words, line.words[1:]):
        quoted = right.spelled[:1] in ("'", '"')
        if operator.value in ("==", "!=", "=") and quoted and _marker(right):
            yield Hit(right.at, f"{right.spelled} is in quotes.")


def _marker(given: Given) -> bool:
    return bool(re.fullmatch(r"\w+\(\*\)", given.value))


@rule(
    "repository-not-there",
    "This repository is not the tool's",
    Severity.ERROR,
    reads=CommandLine,
    reason="No such project is known to exist: whoever registers the name gives you code that you "
    "run as root.",
    fix="Do not fetch it. steadygpu verify checks files against a signed manifest.",
    sources=("searched for; no project of that name was found",),
    row="172, 173",
)
def repository_not_there(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """Fetched by git, curl or wget."""
    if line.name in ("git", "curl", "wget", "gh"):
        for word in line.words:
            if re.search(r"infra-tools/shell-verify-utils", word.value):
                yield Hit(word.at, f"{line.name} fetches {word.value}.")


@rule(
    "runc-subcommand-flag",
    "--no-pivot stands before runc's command",
    Severity.ERROR,
    reads=CommandLine,
    reason="--no-pivot is a flag of runc create and run; before the command runc does not know it "
    "and nothing starts.",
    fix="Leave it out: it weakens the container and is meant for ramdisks.",
    sources=("opencontainers/runc main.go, create.go",),
    row="58",
)
def runc_subcommand_flag(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """``runc --no-pivot run``."""
    if line.name == "runc" and line.words[:1] and line.words[0].value == "--no-pivot":
        yield Hit(line.words[0].at, "runc has no flag --no-pivot of its own.")
