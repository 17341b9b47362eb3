# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run found, changed and verified, as lines a person likes to read. Pure."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_WIDTH = 100
_LABEL = "  {0:<9}"


@dataclass
class HostReport:
    """What was seen of one host while the playbook ran.

    ``facts`` is the newest ``gpu_host``; ``changes`` are the lines of what was done;
    ``checks`` come from gpu_verify; ``settings`` are those read back, by name and path;
    ``failure`` is the message of the task that failed; ``base`` is the checkpoint from before the
    changes.
    """

    name: str
    facts: dict[str, Any] = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)
    checks: list[Mapping[str, Any]] = field(default_factory=list)
    settings: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    failure: str | None = None
    base: str | None = None


def render(report: HostReport, check_mode: bool = False) -> list[str]:
    """The report of one host. Sections nothing is known of are left out."""
    title = f"== {report.name} "
    lines = ["", title + "=" * max(3, _WIDTH - len(title))]
    facts = report.facts
    if "os" in facts:
        lines += _labelled("host", _host(facts))
        lines += _labelled("engine", "", [_engine(facts), *_pending(facts["docker"])])
        lines += _labelled("toolkit", _toolkit(facts))
    if "gpu" in facts:
        lines += _labelled("driver", _driver(facts["gpu"]["driver"]))
        lines += gpu_table(facts["gpu"])
    lines += _labelled("would" if check_mode else "changed", "", report.changes or ["nothing"])
    if report.checks:
        lines += _labelled("verified", "", [_check(check) for check in report.checks])
    lines += settings_table(list(report.settings.values()))
    if report.base and report.changes and not report.failure and not check_mode:
        lines += _labelled("undo", f"playbooks/rollback.yml -e rollback_to={report.base}")
    if report.failure:
        lines += _labelled("failed", "", report.failure.strip().splitlines())
    return lines


def settings_table(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Wanted and effective value of each setting, one a line; below, why some are not effective.

    Settings with the same reason share it.
    """
    if not settings:
        return []
    counts = Counter(str(setting["verdict"]) for setting in settings)
    told = ", ".join(f"{number} {verdict}" for verdict, number in sorted(counts.items()))
    lines = _labelled("settings", told)
    rows = [["setting", "wanted", "effective", ""]]
    reasons: dict[str, dict[str, None]] = {}
    for setting in settings:
        good = setting["verdict"] == "effective"
        state = "" if good else str(setting["verdict"])
        name = str(setting["name"])
        rows.append([name, str(setting["wanted"]), _or_dash(setting.get("effective")), state])
        if not good:
            reasons.setdefault(str(setting.get("reason") or ""), {})[name] = None
    # One for each CPU, say: equal rows are told once.
    lines += _columns(list({tuple(row): row for row in rows}.values()))
    for reason, names in reasons.items():
        lines += textwrap.wrap(
            f"{', '.join(names)}: {reason}",
            _WIDTH,
            initial_indent=" " * 6,
            subsequent_indent=" " * 8,
            break_long_words=False,
        )
    return lines


def gpu_table(gpu: Mapping[str, Any]) -> list[str]:
    """Devices one a line, with NUMA node, memory, MIG and the links to all others."""
    devices = gpu["devices"]
    if not devices:
        return _labelled("GPUs", "none")
    lines = _labelled("GPUs", "{} (read from {})".format(len(devices), gpu["source"]))
    links = gpu.get("links") or [[] for unused in devices]
    header = ["#", "name", "PCI address", "NUMA", "CPUs", "memory", "MIG"]
    header += [str(device["index"]) for device in devices] if gpu.get("links") else []
    rows = [header]
    rows += [[*_device(device), *map(_or_dash, row)] for device, row in zip(devices, links)]
    return lines + _columns(rows)


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    cells = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths)) for row in rows)
    return [("      " + line).rstrip() for line in cells]


def _device(device: Mapping[str, Any]) -> list[str]:
    memory = device.get("memory_mib") or {}
    return [
        str(device["index"]),
        str(device.get("error") or device["name"]),
        str(device["pci_address"]),
        _or_dash(device.get("numa_node")),
        _or_dash(device.get("cpus")),
        "{} MiB".format(memory["total"]) if memory.get("total") else "-",
        _mig(device.get("mig") or {}),
    ]


def _mig(mig: Mapping[str, Any]) -> str:
    """``off``, ``on``, the devices as ``2 x 1g.5gb``, or a mode that waits for a reset."""
    if not mig.get("supported"):
        return "-"
    if mig["current"] != mig["pending"]:
        return "off, on pending" if mig["pending"] else "on, off pending"
    if not mig["current"]:
        return "off"
    counts = Counter(device["profile"] for device in mig.get("devices") or [])
    return ", ".join(f"{count} x {profile}" for profile, count in sorted(counts.items())) or "on"


def _or_dash(value: Any) -> str:
    return "-" if value is None else str(value)


def _host(facts: Mapping[str, Any]) -> str:
    return "{}, kernel {}, systemd {}, cgroup v{}".format(
        facts["os"].get("name"),
        facts["kernel"].get("release"),
        _or_dash(facts["systemd"].get("version")),
        _or_dash(facts["cgroup"].get("version")),
    )


def _engine(facts: Mapping[str, Any]) -> str:
    docker = facts["docker"]
    if docker["status"] != "running":
        return "Docker: {}{}".format(
            docker["status"], " ({})".format(docker["reason"]) if docker.get("reason") else ""
        )
    return "Docker {}, containerd {}, runc {}; CDI {}, live-restore {}; {} running".format(
        docker["version"],
        _or_dash(facts["containerd"].get("version")),
        _or_dash(facts["runc"].get("version")),
        "on" if docker["cdi"].get("enabled") else "off",
        "on" if docker.get("live_restore") else "off",
        _count(docker["containers"].get("running") or 0, "container"),
    )


def _pending(docker: Mapping[str, Any]) -> list[str]:
    """What the running daemon has not taken yet."""
    return [
        f"{what} pending: {told}"
        for what in ("restart", "reload")
        for told in docker.get(f"{what}_pending") or []
    ]


def _toolkit(facts: Mapping[str, Any]) -> str:
    toolkit = facts["toolkit"]
    if toolkit["status"] != "installed":
        return str(toolkit["status"])
    package = facts["packages"]["installed"].get("nvidia-container-toolkit", {})
    specs = [
        f"{spec['path']} with {_count(len(spec['devices']), 'device name')}"
        for spec in facts["cdi"]["specs"]
        if spec.get("status") == "valid"
    ]
    return "{}{}; {}".format(
        package.get("version") or toolkit.get("version"),
        ", held" if package.get("held") else "",
        ", ".join(specs) or "no CDI spec",
    )


def _driver(driver: Mapping[str, Any]) -> str:
    if driver["status"] != "loaded":
        return "{}: {}".format(driver["status"], driver.get("reason"))
    details = [
        driver.get("flavour"),
        driver.get("cuda_version") and "CUDA " + driver["cuda_version"],
    ]
    return ", ".join(["NVIDIA " + str(driver["version"])] + [text for text in details if text])


def _check(check: Mapping[str, Any]) -> str:
    if check["ok"]:
        return "ok   {}".format(check["title"])
    if check["ok"] is None:
        return "skip {}: {}".format(check["title"], check["advice"])
    return "FAIL {title}: seen {seen}; wanted {wanted}. {advice}".format(**check).rstrip()


def _count(number: int, noun: str) -> str:
    return "{} {}{}".format(number, noun, "" if number == 1 else "s")


def _labelled(label: str, text: str, items: list[str] | None = None) -> list[str]:
    """One labelled line, or one labelled block of items below each other."""
    indent = _LABEL.format("")
    lines = []
    for position, item in enumerate(items if items is not None else [text]):
        first = _LABEL.format(label) if position == 0 else indent
        lines += textwrap.wrap(
            item, _WIDTH, initial_indent=first, subsequent_indent=indent, break_long_words=False
        )
    return lines
