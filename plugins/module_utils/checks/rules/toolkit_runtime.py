# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on what the NVIDIA runtime is told in its config.toml. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from ..documents.toolkit import ToolkitConfig
from ..host import HostView
from ..model import Hit, Severity
from ..registry import rule

_CLI = "nvidia-container-cli"
_RUNTIME = "nvidia-container-runtime"
_SOURCE = "NVIDIA/nvidia-container-toolkit api/config/v1 at 1.20.0"


@rule(
    "rootless-needs-no-cgroups",
    "A rootless engine cannot grant devices",
    Severity.ERROR,
    reads=ToolkitConfig,
    reason="The hook of a rootless engine may not change device rules: bpf_prog_query failed: "
    "operation not permitted.",
    fix="Set no-cgroups = true in this file, or give containers CDI devices.",
    sources=("NVIDIA container toolkit install guide, Rootless mode",),
    row="117",
)
def rootless_needs_no_cgroups(doc: ToolkitConfig, host: HostView) -> Iterator[Hit]:
    """no-cgroups = false for an engine that is known to be rootless, or in a user's own file."""
    if doc.truth(_CLI, "no-cgroups") is not False or doc.mode in ("cdi", "jit-cdi"):
        return
    if doc.is_user_file or (host.rootless is True and not doc.is_system_file):
        yield Hit(doc.key_place(_CLI, "no-cgroups"), "no-cgroups is false in a rootless setup.")


@rule(
    "toolkit-runtimes-unusable",
    "The NVIDIA runtime finds no runtime below it",
    Severity.ERROR,
    reads=ToolkitConfig,
    reason="The NVIDIA runtime passes each call on to the first program of the list that exists: "
    "with none it ends with no runtime binary found from candidate list, with itself it never "
    "ends.",
    fix='Write runtimes = ["runc", "crun"].',
    sources=("NVIDIA/nvidia-container-toolkit internal/oci/runtime_low_level.go",),
)
def toolkit_runtimes_unusable(doc: ToolkitConfig, host: HostView) -> Iterator[Hit]:
    """An empty list, docker-runc alone, or itself."""
    node = doc.get(_RUNTIME, "runtimes")
    if node is None or not node.is_list:
        return
    names = [posixpath.basename(n.words()) for n in node.elements()]
    if not names:
        yield Hit(doc.place(node), "runtimes is empty.")
    elif names[0].startswith("nvidia-container-runtime"):
        yield Hit(doc.place(node), f"runtimes begins with {names[0]}, the NVIDIA runtime itself.")
    elif set(names) == {"docker-runc"}:
        yield Hit(doc.place(node), "runtimes has only docker-runc, which Docker 18.09 renamed.")


@rule(
    "toolkit-csv-mode",
    "Mode csv is for Jetson boards",
    Severity.ERROR,
    reads=ToolkitConfig,
    reason="In this mode the runtime takes its device list from files that only the software of "
    "Tegra boards brings: elsewhere nothing is injected.",
    fix='Write mode = "auto".',
    sources=("NVIDIA/nvidia-container-toolkit internal/info/auto.go",),
    row="P13",
)
def toolkit_csv_mode(doc: ToolkitConfig, host: HostView) -> Iterator[Hit]:
    """Certain only where the kernel is known."""
    kernel = host.version("kernel")
    if doc.mode != "csv" or (kernel is not None and "tegra" in kernel):
        return
    yield Hit(
        doc.key_place(_RUNTIME, "mode"),
        "mode is csv.",
        severity=None if kernel is not None else Severity.INFO,
        assumed=() if kernel is not None else ("no Tegra board",),
    )


@rule(
    "swarm-resource-name",
    "swarm-resource is the name of a variable",
    Severity.ERROR,
    reads=ToolkitConfig,
    reason="Swarm puts an assigned resource NAME into the variable DOCKER_RESOURCE_NAME; the "
    "runtime looks for the variable that is named here.",
    fix='Write swarm-resource = "DOCKER_RESOURCE_GPU" for node-generic-resources "GPU=…".',
    sources=(_SOURCE, "NVIDIA/nvidia-container-toolkit issue 57"),
    cases=("RT-029",),
    row="P32",
)
def swarm_resource_name(doc: ToolkitConfig, host: HostView) -> Iterator[Hit]:
    """The resource's own name where the variable's is wanted."""
    node = doc.get("swarm-resource")
    if node is None or not isinstance(node.value, str) or not node.value:
        return
    wrong = [name for name in node.value.split(",") if not name.strip().startswith("DOCKER_RES")]
    if wrong:
        fix = f'Write swarm-resource = "DOCKER_RESOURCE_{wrong[0].strip().upper()}".'
        yield Hit(doc.place(node), f"swarm-resource is {node.value}.", fix)


@rule(
    "cuda-compat-mode-unknown",
    "The toolkit has no such compatibility mode",
    Severity.WARNING,
    reads=ToolkitConfig,
    reason="Another word counts as disabled: CUDA's forward compatibility libraries of the image "
    "are not used.",
    fix="Write one of ldconfig, mount, hook and disabled.",
    sources=("NVIDIA/nvidia-container-toolkit api/config/v1/runtime.go",),
)
def cuda_compat_mode_unknown(doc: ToolkitConfig, host: HostView) -> Iterator[Hit]:
    """A word that is none of the four."""
    node = doc.get(_RUNTIME, "modes", "legacy", "cuda-compat-mode")
    if node is not None and node.value not in ("", "ldconfig", "mount", "hook", "disabled"):
        yield Hit(doc.place(node), f"cuda-compat-mode is {node.words()}.")


@rule(
    "driver-root-elsewhere",
    "The toolkit looks for the driver in another root",
    Severity.INFO,
    reads=ToolkitConfig,
    reason="That is right where the GPU operator's driver container has the driver. With a driver "
    "that is installed on the host itself no library is found.",
    fix="Remove root where the driver is installed on the host.",
    sources=(_SOURCE, "NVIDIA GPU operator docs, Pre-installed drivers"),
)
def driver_root_elsewhere(doc: ToolkitConfig, host: HostView) -> Iterator[Hit]:
    """Another root, such as /run/nvidia/driver."""
    node = doc.get(_CLI, "root")
    if node is not None and isinstance(node.value, str) and node.value not in ("", "/"):
        yield Hit(doc.place(node), f"root is {node.value}.")


@rule(
    "toolkit-requirements-off",
    "Images' requirements are not looked at",
    Severity.INFO,
    reads=ToolkitConfig,
    reason="With disable-require an image that needs a newer driver starts all the same and fails "
    "later, inside CUDA, with a worse message.",
    fix="Set disable-require = false, and NVIDIA_DISABLE_REQUIRE=1 for the one container that "
    "needs it.",
    sources=(_SOURCE,),
)
def toolkit_requirements_off(doc: ToolkitConfig, host: HostView) -> Iterator[Hit]:
    """disable-require = true."""
    if doc.truth("disable-require") is True:
        yield Hit(doc.key_place("disable-require"), "disable-require is true.")


@rule(
    "toolkit-debug-log",
    "The toolkit writes a debug log",
    Severity.INFO,
    reads=ToolkitConfig,
    reason="The log grows with every container and is rotated by nobody; a rootless engine may "
    "not write to /var/log, and its containers do not start.",
    fix="Put # before the line when the search is over.",
    sources=(_SOURCE,),
    row="10",
)
def toolkit_debug_log(doc: ToolkitConfig, host: HostView) -> Iterator[Hit]:
    """A debug key with a file."""
    for table in (_CLI, _RUNTIME):
        node = doc.get(table, "debug")
        path = node.words() if node is not None else ""
        if node is not None and path not in ("", "/dev/null"):
            rootless = host.rootless is True and path.startswith("/var/log/")
            severity = Severity.ERROR if rootless else None
            yield Hit(doc.place(node), f"{table} writes {path}.", severity=severity)
