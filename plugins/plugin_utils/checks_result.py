# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a task returns of the checks of one host, and the table a person reads. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.steadygpu.host.plugins.module_utils.checks.costs import costs
from ansible_collections.steadygpu.host.plugins.module_utils.checks.host import HostView
from ansible_collections.steadygpu.host.plugins.module_utils.checks.live import Verdict
from ansible_collections.steadygpu.host.plugins.module_utils.checks.model import Finding, Severity
from ansible_collections.steadygpu.host.plugins.module_utils.checks.output.as_json import masked
from ansible_collections.steadygpu.host.plugins.module_utils.secrets import mask

_WIDTH = 110
_NEVER = "never"


def build(verdict: Verdict, accept: Mapping[str, Any], fail_on: str = _NEVER) -> dict[str, Any]:
    """The keys that module ``check`` documents; with ``failed`` and ``msg`` where it is to fail.

    ``accept`` is rule id to the reason; one without a reason accepts nothing and is a failure.
    """
    unexplained = sorted(name for name, why in accept.items() if not str(why or "").strip())
    if unexplained:
        said = "accept gives no reason for {}: say why that is right on this host"
        return {"failed": True, "msg": said.format(", ".join(unexplained))}
    findings = [finding for finding in verdict.findings if finding.rule not in accept]
    shown = [finding for finding in findings if finding.severity > Severity.INFO]
    result: dict[str, Any] = {
        "findings": [masked(finding.as_dict()) for finding in findings],
        "counts": {
            severity.label: sum(finding.severity == severity for finding in findings)
            for severity in sorted(Severity, reverse=True)
        },
        "accepted": len(verdict.findings) - len(findings),
        "unusable": [{"file": str(p.at), "said": mask.message(p.said)} for p in verdict.unusable],
        "table": table(shown),
        "about": about(verdict.host),
    }
    if fail_on != _NEVER:
        grave = [finding for finding in findings if finding.severity >= Severity.named(fail_on)]
        if grave:
            count = f"{len(grave)} finding" + ("s" if len(grave) > 1 else "")
            head = f"{count} of severity {fail_on} or above:"
            result.update(failed=True, msg="\n".join([head, *table(grave)]))
    return result


def table(findings: Sequence[Finding]) -> list[str]:
    """Each finding as its line, and below it what was seen and what to do; [] for none."""
    lines: list[str] = []
    for finding in findings:
        lines.append(f"{finding.severity.label.upper():<8}{finding.rule}: {finding.title}")
        lines += _folded("at", str(finding.at))
        lines += _folded("seen", finding.seen)
        lines += _folded("fix", finding.fix)
        lines += [" " * 16 + mask.message(command) for command in finding.commands]
        for told in costs(finding.commands):
            lines += _folded("care", told)
    return lines


def _folded(label: str, text: str) -> list[str]:
    return textwrap.wrap(
        mask.message(text),
        _WIDTH,
        initial_indent=f"        {label:<6}",
        subsequent_indent=" " * 14,
        break_long_words=False,
        break_on_hyphens=False,
    )


def about(host: HostView) -> str:
    """One host in one line: its engine, driver and GPUs, as far as they are known."""
    engine, driver = host.version("docker"), host.version("driver")
    gpus = "GPUs not known" if host.gpus is None else _many(len(host.gpus))
    return ", ".join(
        [
            f"Docker {engine}" if engine else "no Docker",
            f"driver {driver}" if driver else "no NVIDIA driver",
            gpus,
        ]
    )


def _many(count: int) -> str:
    return f"{count} GPU" + ("" if count == 1 else "s")
