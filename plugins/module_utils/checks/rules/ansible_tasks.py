# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on tasks of Ansible plays that touch GPUs, engines and drivers. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..documents.ansible_tasks import AnsibleFile, AnsibleTask
from ..host import HostView
from ..model import Hit, Position, Severity
from ..registry import rule

_DOCKER_CONTAINER = "docs.ansible.com community.docker.docker_container"
_WRITERS = ("copy", "template", "blockinfile")
_GPU_WORDS = re.compile(r"nvidia|cuda|gpu|rocm|amdgpu|dcgm", re.IGNORECASE)
_DRIVER = re.compile(r"^(nvidia-(driver|headless|kernel|dkms|open|utils)|cuda-drivers|kmod-nvidia)")
_DAEMON_JSON = "/etc/docker/daemon.json"
# What a task that is about GPUs alone writes: "nvidia" and below are keys of inner mappings.
_GPU_KEYS = frozenset(
    ("runtimes", "default-runtime", "nvidia", "path", "runtimeArgs", "args", "features", "cdi")
)
# The default of ansible.builtin.reboot's reboot_timeout, in seconds.
_REBOOT_S = 600
# Options that people write for device_requests or another one.
_INVENTED = {
    "gpus": "device_requests: [{driver: nvidia, count: -1, capabilities: [[gpu]]}]",
    "gpu": "device_requests: [{driver: nvidia, count: -1, capabilities: [[gpu]]}]",
    "gpu_count": "device_requests with count",
    "gpu_memory": "nothing: no engine limits GPU memory per container; use MIG, MPS or a claim",
    "gpu_memory_limit": "nothing: no engine limits GPU memory; use MIG, MPS or a claim",
    "device_request": "device_requests",
    "mem_limit": "memory",
    "memswap_limit": "memory_swap",
    "cap_add": "capabilities",
    "cpuset": "cpuset_cpus",
    "environment": "env",
    "ipc": "ipc_mode",
    "pid": "pid_mode",
    "net": "network_mode",
    "container_name": "name",
    "shm": "shm_size",
    "io_weight": "blkio_weight",
    "cpu_burst": "nothing: Docker has no such setting; the kernel has cpu.max.burst",
    "privilege": "privileged",
    "group_add": "groups",
    "security_opt": "security_opts",
    "dns": "dns_servers",
    "extra_hosts": "etc_hosts",
    "logging": "log_driver and log_options",
}


def _label(task: AnsibleTask) -> str:
    return f"The task '{task.name}'" if task.name else f"A task with {task.module.value}"


@rule(
    "ansible-daemon-json-overwritten",
    "A task replaces daemon.json",
    Severity.WARNING,
    reads=AnsibleFile,
    reason="copy writes the whole file: what others set there (data-root, log options, registry "
    "mirrors, live-restore) is gone at the next start of the engine.",
    fix="Read the file, combine(recursive=true) and write it back with backup: true; or use "
    "nvidia-ctk runtime configure, or role engine of this collection.",
    sources=("NVIDIA/ansible-role-nvidia-docker#9", "NVIDIA/ansible-role-nvidia-docker#20"),
    cases=("RT-007",),
)
def daemon_json_overwritten(file: AnsibleFile, host: HostView) -> Iterator[Hit]:
    """A content with nothing but runtimes; a template or a whole configuration is said only."""
    merged = any("daemon.json" in task.text("src") for task in file.tasks if task.short == "slurp")
    for task in file.tasks:
        to = task.given("dest") or task.given("path")
        if task.short not in _WRITERS or to is None or to.value != _DAEMON_JSON:
            continue
        node = task.args.get("content")
        text = node.words() if node is not None else ""
        if merged or "combine" in text:
            continue
        keys = [key.name for key, _value in node.items()] if node is not None else []
        keys = keys or re.findall(r"[{,]\s*\"([\w-]+)\"\s*:", text)
        gpus_only = bool(keys) and not set(keys) - _GPU_KEYS
        severity = None if gpus_only else Severity.INFO
        yield Hit(to.at, f"{_label(task)} writes all of {_DAEMON_JSON}.", severity=severity)


@rule(
    "ansible-reboot-timeout",
    "A reboot with less time than a GPU server needs",
    Severity.WARNING,
    reads=AnsibleFile,
    reason="Servers with many GPUs and much memory need minutes to go down and minutes to come "
    "back. With a short reboot_timeout the play fails or goes on against a host that has not "
    "gone down yet.",
    fix="Set reboot_timeout: 1800 and post_reboot_delay: 60, and wait for nvidia-smi with until.",
    sources=("ansible/ansible#78007", "ansible/ansible#83018"),
    cases=("PA-005",),
)
def reboot_timeout(file: AnsibleFile, host: HostView) -> Iterator[Hit]:
    """Below the module's own 600 s; a risk only where the play is about GPUs."""
    about_gpus = any(_about_gpus(task) for task in file.tasks)
    for task in file.tasks:
        given = task.given("reboot_timeout")
        if task.short != "reboot" or given is None or not given.value.isdigit():
            continue
        if int(given.value) < _REBOOT_S:
            severity = None if about_gpus else Severity.INFO
            seen = f"{_label(task)} waits {given.value} s, the module's own value is {_REBOOT_S} s."
            yield Hit(given.at, seen, severity=severity)


def _about_gpus(task: AnsibleTask) -> bool:
    words = [task.name, task.module.value, task.free, task.text("name"), task.text("image")]
    packages = task.args.get("name")
    if packages is not None:
        words += [element.words() for element in packages.elements()]
    return bool(_GPU_WORDS.search(" ".join(words)))


@rule(
    "ansible-collection-needed",
    "A collection that not every place has",
    Severity.INFO,
    reads=AnsibleFile,
    reason="ansible-core alone and AWX's default execution environment do not hold every "
    "collection: couldn't resolve module/action. A project's requirements are read from "
    "collections/requirements.yml.",
    fix="Name it in collections/requirements.yml, or build an execution environment with it.",
    sources=("ansible/awx#9801", "ansible/awx#13087"),
    cases=("PA-008",),
)
def collection_needed(file: AnsibleFile, host: HostView) -> Iterator[Hit]:
    """Each collection once, unless a requirements file names it."""
    said = {"", "ansible.builtin", "ansible.legacy", "steadygpu.host"}
    for task in file.tasks:
        if task.collection in said or (file.required and task.collection in file.required):
            continue
        if not re.fullmatch(r"[a-z0-9_]+\.[a-z0-9_]+", task.collection):
            continue
        said.add(task.collection)
        seen = f"{_label(task)} needs the collection {task.collection}."
        command = f"ansible-galaxy collection install {task.collection}"
        yield Hit(task.module.at, seen, commands=(command,))


@rule(
    "ansible-capabilities-flat",
    "capabilities of a device request is a list, not a list of lists",
    Severity.WARNING,
    reads=AnsibleFile,
    reason="The outer list is a choice (or), the inner one what is needed together (and). Older "
    "releases of the module refuse a flat list; newer ones make a choice of each word, so that "
    "[gpu, utility] asks for one or the other.",
    fix="Write capabilities: [[gpu]].",
    sources=("ansible-collections/community.docker#42", "ansible-collections/community.docker#43"),
    cases=("PA-012",),
)
def capabilities_flat(file: AnsibleFile, host: HostView) -> Iterator[Hit]:
    """``capabilities: [gpu]`` of docker_container."""
    for task in file.tasks:
        requests = task.args.get("device_requests") if task.short == "docker_container" else None
        for request in requests.elements() if requests is not None else ():
            node = request.get("capabilities")
            if node is None or "{{" in node.words():
                continue
            words = [element.words() for element in node.elements()] or [node.words()]
            flat = [word for word in words if word and "{{" not in word]
            if flat:
                key = request.keys["capabilities"]
                at = Position(task.at.file, key.line, key.column)
                fix = f"Write capabilities: [[{', '.join(flat)}]]."
                yield Hit(at, f"{_label(task)}: capabilities is [{', '.join(flat)}].", fix)


@rule(
    "ansible-unknown-option",
    "An option that docker_container does not have",
    Severity.ERROR,
    reads=AnsibleFile,
    reason="The module fails with 'Unsupported parameters' before it asks the engine.",
    fix="Remove the option.",
    sources=(_DOCKER_CONTAINER,),
)
def unknown_option(file: AnsibleFile, host: HostView) -> Iterator[Hit]:
    """``gpus: all`` and options under the names that Compose or Docker have for them."""
    for task in file.tasks:
        if task.short != "docker_container":
            continue
        for key, _node in task.args.items():
            instead = _INVENTED.get(key.name)
            if instead is None:
                continue  # what is not known here may be newer than this table
            at = Position(task.at.file, key.line, key.column)
            fix = f"Write {instead}."
            if instead.startswith("nothing: "):
                fix = f"Remove {key.name}: {instead[len('nothing: ') :]}."
            yield Hit(at, f"{_label(task)} has the option {key.name}.", fix)


@rule(
    "ansible-driver-latest",
    "A task that may change a driver in use",
    Severity.WARNING,
    reads=AnsibleFile,
    reason="state: latest changes the driver's libraries whenever the mirror has newer ones, while "
    "the module in the kernel stays the old one until a reboot: every new container fails with "
    "'Driver/library version mismatch'.",
    fix="Write state: present with a version, and change it together with a reboot.",
    sources=("NVIDIA driver installation guide",),
)
def driver_latest(file: AnsibleFile, host: HostView) -> Iterator[Hit]:
    """``state: latest`` for packages of the NVIDIA driver."""
    for task in file.tasks:
        state = task.given("state")
        if task.short not in ("apt", "dnf", "yum", "package", "zypper") or state is None:
            continue
        node = task.args.get("name") or task.args.get("pkg")
        named = [] if node is None else [e.words() for e in node.elements()] or [node.words()]
        drivers = [name for name in named if _DRIVER.match(name)]
        if state.value == "latest" and drivers:
            yield Hit(state.at, f"{_label(task)} keeps {', '.join(drivers[:4])} at the latest.")


@rule(
    "ansible-docker-restart",
    "A task that restarts the engine",
    Severity.INFO,
    reads=AnsibleFile,
    reason="Restarting dockerd stops every container unless live-restore is on and loaded. "
    "runtimes, default-runtime, live-restore and labels are reloaded without: state: reloaded.",
    fix="Reload where that is enough; turn live-restore on before, where it is not.",
    sources=("moby daemon/reload.go", "docs.docker.com/engine/daemon/live-restore"),
)
def docker_restart(file: AnsibleFile, host: HostView) -> Iterator[Hit]:
    """``state: restarted`` for docker."""
    for task in file.tasks:
        state = task.given("state")
        if task.short not in ("service", "systemd", "systemd_service") or state is None:
            continue
        if task.text("name") in ("docker", "docker.service") and state.value == "restarted":
            yield Hit(state.at, f"{_label(task)} restarts docker.")


@rule(
    "ansible-old-cuda-key",
    "The key of NVIDIA's repositories before 2022",
    Severity.ERROR,
    reads=AnsibleFile,
    reason="NVIDIA changed the key of the CUDA repositories in April 2022; with the old one apt "
    "refuses them: NO_PUBKEY A4B469963BF863CC.",
    fix="Install the package cuda-keyring of the repository, and remove the key 7fa2af80.",
    sources=("developer.nvidia.com/blog updating the CUDA Linux GPG repository key",),
)
def old_cuda_key(file: AnsibleFile, host: HostView) -> Iterator[Hit]:
    """Key 7fa2af80, to be added."""
    for task in file.tasks:
        if task.short not in ("apt_key", "get_url", "rpm_key") or task.text("state") == "absent":
            continue
        for name in ("url", "id", "key", "src"):
            given = task.given(name)
            if given is not None and "7fa2af80" in given.value.lower():
                yield Hit(given.at, f"{_label(task)} adds the key 7fa2af80.")
                break
