# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""community.docker's docker_container as a container spec. Pure.

The options are those of community.docker's documentation (5.x).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...trees.node import Key, Node
from ..documents.ansible_tasks import AnsibleTask
from ..documents.container import ContainerSpec, GpuRequest
from ..model import Given, Position

# Option to Docker's flag. Lists give one value for each element, mappings name=value.
FLAGS: Mapping[str, str] = {
    "auto_remove": "rm",
    "blkio_weight": "blkio-weight",
    "cap_drop": "cap-drop",
    "capabilities": "cap-add",
    "cgroup_parent": "cgroup-parent",
    "cgroupns_mode": "cgroupns",
    "cpu_period": "cpu-period",
    "cpu_quota": "cpu-quota",
    "cpu_shares": "cpu-shares",
    "cpus": "cpus",
    "cpuset_cpus": "cpuset-cpus",
    "cpuset_mems": "cpuset-mems",
    "device_cgroup_rules": "device-cgroup-rule",
    "devices": "device",
    "dns_opts": "dns-option",
    "dns_search_domains": "dns-search",
    "dns_servers": "dns",
    "domainname": "domainname",
    "entrypoint": "entrypoint",
    "etc_hosts": "add-host",
    "exposed_ports": "expose",
    "groups": "group-add",
    "hostname": "hostname",
    "init": "init",
    "interactive": "interactive",
    "ipc_mode": "ipc",
    "kernel_memory": "kernel-memory",
    "links": "link",
    "log_driver": "log-driver",
    "log_options": "log-opt",
    "mac_address": "mac-address",
    "memory": "memory",
    "memory_reservation": "memory-reservation",
    "memory_swap": "memory-swap",
    "memory_swappiness": "memory-swappiness",
    "name": "name",
    "network_mode": "network",
    "oom_score_adj": "oom-score-adj",
    "pid_mode": "pid",
    "pids_limit": "pids-limit",
    "platform": "platform",
    "privileged": "privileged",
    "publish_all_ports": "publish-all",
    "published_ports": "publish",
    "ports": "publish",
    "pull": "pull",
    "read_only": "read-only",
    "restart_policy": "restart",
    "runtime": "runtime",
    "security_opts": "security-opt",
    "shm_size": "shm-size",
    "stop_signal": "stop-signal",
    "stop_timeout": "stop-timeout",
    "storage_opts": "storage-opt",
    "sysctls": "sysctl",
    "tmpfs": "tmpfs",
    "tty": "tty",
    "ulimits": "ulimit",
    "user": "user",
    "userns_mode": "userns",
    "uts": "uts",
    "volume_driver": "volume-driver",
    "volumes": "volume",
    "volumes_from": "volumes-from",
    "working_dir": "workdir",
}
_OTHERS = (
    "image name state command command_handling comparisons container_default_behavior cleanup "
    "default_host_ip detach device_read_bps device_read_iops device_requests device_write_bps "
    "device_write_iops env env_file exposed expose force_kill forcekill healthcheck "
    "healthy_wait_timeout image_comparison image_label_mismatch image_name_mismatch ignore_image "
    "keep_volumes kill_signal labels log_opt mounts networks networks_cli_compatible oom_killer "
    "output_logs paused pull_check_mode_behavior purge_networks recreate removal_wait_timeout "
    "restart restart_retries trust_image_content api_version ca_path cacert_path client_cert "
    "cert_path client_key key_path debug docker_host docker_url ssl_version timeout tls "
    "tls_verify validate_certs tls_hostname use_ssh_client tls_ca_cert tls_client_cert "
    "tls_client_key docker_api_version"
)
OPTIONS = frozenset(FLAGS) | frozenset(_OTHERS.split())
_LIMITS = ("device_read_bps", "device_read_iops", "device_write_bps", "device_write_iops")


def settled(text: str) -> str:
    """``text`` with each Jinja expression as ``${…}``, which rules take for a value not known."""
    for opening, closing in (("{{", "}}"), ("{%", "%}")):
        parts, at = [], 0
        while True:
            start = text.find(opening, at)
            end = text.find(closing, start) if start >= 0 else -1
            if end < 0:
                break
            parts += [text[at:start], "${jinja}"]
            at = end + len(closing)
        text = "".join([*parts, text[at:]])
    return text


def container(task: AnsibleTask) -> ContainerSpec:
    """What a docker_container task asks for."""
    args, file = task.args, task.at.file
    flags: dict[str, list[Given]] = {}
    unknown: list[Given] = []
    for key, node in args.items():
        at = Position(file, key.line, key.column)
        flag = FLAGS.get(key.name)
        if flag:
            for value, where in _values(node, file, at):
                if flag == "security-opt" and "=" not in value:
                    value = value.replace(":", "=", 1)
                flags.setdefault(flag, []).append(Given(value, where, key.name))
        elif key.name in _LIMITS:
            for element in node.elements():
                text = f"{_text(element, 'path')}:{_text(element, 'rate')}"
                flag = key.name.replace("_", "-")
                flags.setdefault(flag, []).append(Given(text, at, key.name))
        elif key.name not in OPTIONS:
            unknown.append(Given(settled(node.words()), at, key.name))
    killer = args.get("oom_killer")
    if killer is not None and killer.words().lower() in ("true", "yes"):
        # The option is Docker's OomKillDisable under a name that says the opposite.
        given = Given("true", Position(file, killer.line, killer.column), "oom_killer")
        flags["oom-kill-disable"] = [given]
    image = task.given("image")
    return ContainerSpec(
        at=task.at,
        how="ansible",
        name=settled(task.text("name")),
        image=None if image is None else Given(settled(image.value), image.at, "image"),
        command=tuple(_command(args.get("command"), file)),
        flags={flag: tuple(given) for flag, given in flags.items()},
        unknown=tuple(unknown),
        gpus=tuple(_requests(args.get("device_requests"), file)),
        env=_pairs(args.get("env"), file),
        labels=_pairs(args.get("labels"), file),
    )


def _values(node: Node, file: str, at: Position) -> Iterator[tuple[str, Position]]:
    for element in node.elements():
        if not element.is_map and not element.is_list:
            yield settled(element.words()), Position(file, element.line, element.column)
    for key, value in node.items():
        text = f"{key.name}={settled(value.words())}"
        yield text, Position(file, key.line, key.column)
    if not node.is_map and not node.is_list and node.value is not None:
        yield settled(node.words()), at


def _text(node: Node, key: str) -> str:
    inner = node.get(key)
    return settled(inner.words()) if inner is not None else ""


def _command(node: Node | None, file: str) -> Iterator[Given]:
    if node is None or node.is_map:
        return
    elements = node.elements() if node.is_list else [node]
    for element in elements:
        words = [element.words()] if node.is_list else element.words().split()
        for word in words:
            yield Given(settled(word), Position(file, element.line, element.column), "command")


def _pairs(node: Node | None, file: str) -> dict[str, Given]:
    found = {}
    for key, value in node.items() if node is not None else ():
        if not value.is_map and not value.is_list:
            at = Position(file, key.line, key.column)
            found[key.name] = Given(settled(value.words()), at, key.name)
    return found


def _requests(node: Node | None, file: str) -> Iterator[GpuRequest]:
    for element in node.elements() if node is not None else ():
        if not element.is_map:
            continue
        count, ids = element.get("count"), element.get("device_ids")
        errors = []
        given = None
        if count is not None:
            at = _at(element, "count", file)
            given = Given(settled(count.words()), at, "count")
            if ids is not None and ids.elements():
                errors.append(Given(given.value, at, "count-and-ids"))
        capabilities, flat = _capabilities(element.get("capabilities"))
        if flat:
            at = _at(element, "capabilities", file)
            errors.append(Given(" ".join(capabilities or ()), at, "capabilities-type"))
        driver = element.get("driver")
        device_ids = tuple(
            Given(settled(one.words()), Position(file, one.line, one.column), "device_ids")
            for one in (ids.elements() if ids is not None else [])
        )
        at = Position(file, element.line, element.column)
        yield GpuRequest(
            at=at,
            how="device_requests",
            raw=",".join(one.value for one in device_ids) or (given.value if given else ""),
            driver=Given(settled(driver.words()), _at(element, "driver", file), "driver")
            if driver is not None
            else None,
            count=given,
            device_ids=device_ids,
            capabilities=capabilities,
            errors=tuple(errors),
        )


def _at(node: Node, name: str, file: str) -> Position:
    key = node.keys.get(name, Key(name, node.line, node.column))
    return Position(file, key.line, key.column)


def _capabilities(node: Node | None) -> tuple[tuple[str, ...] | None, bool]:
    """The words, and whether the list is flat where it has to be a list of lists."""
    if node is None:
        return None, False
    if not node.is_list:
        return (node.words(),), "{{" not in node.words()
    inner = [one for element in node.elements() for one in (element.elements() or [element])]
    flat = any(not element.is_list and "{{" not in element.words() for element in node.elements())
    return tuple(settled(one.words()) for one in inner if one.words()), flat
