# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge a host and remember what is kept for it; the caller sets the keys of the engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..settings import record as records
from ..settings.apply import Keeper
from ..settings.model import EFFECTIVE, Setting
from . import judge
from .model import OWNER, Finding, HardeningError, Host, Wish


@dataclass
class Result:
    """``daemon`` and ``toolkit`` are keys to set; those ``dropped`` are to be taken back."""

    actions: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    daemon: dict[str, Any] = field(default_factory=dict)
    toolkit: dict[str, Any] = field(default_factory=dict)
    dropped_daemon: dict[str, Any] = field(default_factory=dict)
    dropped_toolkit: dict[str, Any] = field(default_factory=dict)


def ensure(wish: Wish, host: Host, check_mode: bool, root: str = "/") -> Result:
    """Raises HardeningError with every refusal at once, SettingsError and OSError."""
    found = judge.findings(host.bundles, wish.accepted)
    said = judge.refusals(wish, host, found)
    if said:
        raise HardeningError("Nothing was changed.\n" + "\n".join(said))
    old = records.load(OWNER, root)
    daemon, toolkit = judge.daemon_config(wish), judge.toolkit_config(wish)
    target = judge.selinux_target(wish, host)
    extra = {"daemon": daemon, "toolkit": toolkit}
    outcome = Keeper(OWNER, check_mode, root).keep([target] if target else [], {}, extra)
    settings = judge.settings(wish, host) + outcome.settings
    if wish.selinux_type and target is None:
        name = f"SELinux type {wish.selinux_type}"
        settings.append(Setting(name, "usable", "usable", EFFECTIVE, "", "semodule -l"))
    return Result(
        actions=outcome.actions,
        warnings=[_warning(one) for one in found if not one.accepted],
        settings=settings,
        findings=found,
        daemon=daemon,
        toolkit=toolkit,
        dropped_daemon=_dropped(old, "daemon", daemon),
        dropped_toolkit=_dropped(old, "toolkit", toolkit),
    )


def take_back(check_mode: bool, root: str = "/") -> Result:
    """Forget what was kept; what is dropped is for the caller. Raises SettingsError, OSError."""
    old = records.load(OWNER, root)
    outcome = Keeper(OWNER, check_mode, root).absent()
    return Result(
        actions=outcome.actions,
        warnings=outcome.warnings,
        dropped_daemon=_dropped(old, "daemon", {}),
        dropped_toolkit=_dropped(old, "toolkit", {}),
    )


def _dropped(old: records.Record | None, what: str, new: dict[str, Any]) -> dict[str, Any]:
    former = old.extra.get(what) if old else None
    former = former if isinstance(former, dict) else {}
    return {key: value for key, value in former.items() if key not in new}


def _warning(one: Finding) -> str:
    return f"container {one.container}: {one.seen} {one.fix}"
