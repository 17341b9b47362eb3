# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Huge pages, limits, balancing, interrupts and bandwidth: kept together, or taken back together.

Everything is judged before the first write. Then: record, controllers, files and live values, the
boot unit, irqbalance. A run that was killed is completed by the next one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .. import boot_unit
from ..atomic import read_text
from ..engine.docker import read_docker
from ..engine.docker_api import DockerClient
from ..engine.services import read_services
from ..settings import record as records
from ..settings.apply import Keeper, Outcome
from ..settings.files import header
from ..settings.model import DIFFERS, INERT, SYSCTL, UNSUPPORTED, Target
from ..settings.readback import below, read_back
from . import hugepages, irqbalance, limits, resctrl
from .model import OWNER, HugePagesWish, NodeMemory, NumaError, Wish

SYSCTL_FILE = "/etc/sysctl.d/90-steadygpu-numa.conf"
_BALANCING = "kernel.numa_balancing"
_HUGEPAGES = "hugepages-"


@dataclass
class Result:
    """``dropped_daemon_keys`` were kept for this owner, and are not asked for now."""

    outcome: Outcome = field(default_factory=Outcome)
    dropped_daemon_keys: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Seen:
    """The host as the judgement needs it."""

    nodes: Mapping[int, NodeMemory]
    pages: tuple[HugePagesWish, ...]
    ability: resctrl.Ability
    limits: limits.Limits
    view: irqbalance.View
    bans: irqbalance.Plan


def ensure(wish: Wish, check_mode: bool, root: str = "/") -> Result:
    """Make the wish effective. Raises NumaError and SettingsError, the host being as it was."""
    old = records.load(OWNER, root)
    seen = _look(wish, root)
    _refuse(wish, seen, old, root)
    targets = _targets(wish, seen, root)
    proven = [] if check_mode else resctrl.prove(wish.bandwidth, seen.ability, root)
    result = Result(dropped_daemon_keys=_dropped(old, wish.daemon_keys))
    try:
        before = {path: read_text(below(root, path)) for path in (old.files if old else ())}
        actions = limits.switch_on(seen.limits, check_mode, root)
        extra = {"daemon_keys": list(wish.daemon_keys)} if wish.daemon_keys else {}
        keeper = Keeper(OWNER, check_mode, root)
        outcome = keeper.keep(targets, _files(wish, seen), extra)
        if not check_mode:
            _refuse_partial(outcome, old, before, keeper)
        actions += outcome.actions
        if check_mode:
            actions += limits.foreseen(seen.limits, root)
        actions += _unit(seen.limits, check_mode, root)
        actions += irqbalance.apply(seen.bans, seen.view, check_mode, root)
    except OSError as error:
        raise NumaError(f"{error.filename}: {error.strerror}") from error
    # irqbalance was started anew after the others were read.
    outcome.settings = [read_back(target, root) for target in targets]
    outcome.settings += proven
    outcome.actions = actions
    _bans_in_diff(outcome, seen.bans)
    absent = limits.missing(seen.limits, root)
    if absent:
        outcome.warnings.append(
            f"{', '.join(absent)} not active: limits of huge pages are set when the host boots "
            "with it, or by a run after it was started"
        )
    result.outcome = outcome
    return result


def take_back(check_mode: bool, root: str = "/") -> Result:
    """Everything as it was before. Raises NumaError and SettingsError."""
    old = records.load(OWNER, root)
    nodes = hugepages.read_nodes(root)
    view = irqbalance.look(root)
    bans = irqbalance.plan(view, "", ())
    pages = _returning(old, (), nodes)
    said = hugepages.refusals(pages, nodes, Wish().keep_free_percent)
    if said:
        raise NumaError(_told(said, root))
    _refuse_carriers(Wish(), root)
    try:
        actions = irqbalance.apply(bans, view, check_mode, root)
        actions += boot_unit.remove(limits.unit({}), check_mode, root)
        # Last: with the record goes what tells the role that there is something to take back.
        outcome = Keeper(OWNER, check_mode, root).absent()
        actions += outcome.actions
    except OSError as error:
        raise NumaError(f"{error.filename}: {error.strerror}") from error
    outcome.actions = actions
    _bans_in_diff(outcome, bans)
    return Result(outcome, _dropped(old, ()))


def _look(wish: Wish, root: str) -> _Seen:
    nodes = hugepages.read_nodes(root)
    view = irqbalance.look(root)
    return _Seen(
        nodes,
        hugepages.spread(wish.hugepages, nodes),
        resctrl.look(wish.docker_version, root),
        limits.acting(wish.slice_limits, root),
        view,
        irqbalance.plan(view, wish.banned_cpus, wish.banned_drivers),
    )


def _refuse(wish: Wish, seen: _Seen, old: records.Record | None, root: str) -> None:
    pages = [*seen.pages, *_returning(old, seen.pages, seen.nodes)]
    said = hugepages.refusals(pages, seen.nodes, wish.keep_free_percent)
    if said:
        raise NumaError(_told(said, root))
    said = limits.refusals(seen.limits, root)
    said += resctrl.refusals(wish.bandwidth, seen.ability)
    if seen.limits:
        try:
            boot_unit.refuse_foreign(limits.unit(seen.limits), root)
        except boot_unit.ForeignUnitError as error:
            said.append(str(error))
    if said:
        raise NumaError("Nothing was changed.\n" + "\n".join(said))
    _refuse_carriers(wish if not seen.ability.fault else Wish(), root)


def _refuse_carriers(wish: Wish, root: str) -> None:
    text = read_text(below(root, resctrl.SPEC_PATH))
    if text is None:
        return
    names = _classes(text) - set(wish.bandwidth)
    client = docker_to_ask() if names else None
    found = resctrl.carriers(client, sorted(names)) if client is not None else []
    if found:
        raise NumaError(
            f"Nothing was changed. These containers carry a class of {resctrl.SPEC_PATH} that "
            f"would go, and would not start again without it: {', '.join(found)}. Remove them, "
            "or keep the class"
        )


def docker_to_ask() -> DockerClient | None:
    """A client of the daemon, None where there is no Docker. Raises NumaError for a stopped one.

    Asking would start it.
    """
    client = DockerClient()
    docker = read_docker(read_services(["docker.service"])["docker.service"], client)
    if docker.status == "stopped":
        raise NumaError(
            "Nothing was changed. Docker is stopped, so it is not known which containers carry a "
            f"class of {resctrl.SPEC_PATH} that would go; start Docker and run again"
        )
    return None if docker.status == "absent" else client


def _classes(text: str) -> set[str]:
    try:
        document = json.loads(text.partition("\n")[2])
        return {str(device["name"]) for device in document["devices"]}
    except (ValueError, KeyError, TypeError):
        return set()


def _returning(
    old: records.Record | None,
    kept: Sequence[HugePagesWish],
    nodes: Mapping[int, NodeMemory],
) -> list[HugePagesWish]:
    """Huge pages that go back to a former number. It may be a higher one, and take memory.

    A number that is not ours any more is left to whoever set it.
    """
    formers = {former.target.path: former for former in (old.formers if old else ())}
    there = {hugepages.path_of(one.size_kib, one.node) for one in kept}
    found = []
    for node in nodes.values():
        for size, pages in node.pages.items():
            path = hugepages.path_of(size, node.node)
            former = formers.get(path)
            if former is None or path in there or not (former.value or "").isdecimal():
                continue
            if str(pages.total) in (former.target.wanted, former.left):
                found.append(HugePagesWish(node.node, size, int(former.value or 0)))
    return found


def _told(said: list[str], root: str) -> str:
    holders = hugepages.users(root)
    by = f"\nHuge pages are used by {', '.join(holders)}." if holders else ""
    return "Nothing was changed.\n" + "\n".join(said) + by


def _targets(wish: Wish, seen: _Seen, root: str) -> list[Target]:
    return [
        *hugepages.targets(seen.pages, seen.nodes),
        *_balancing(wish, seen.nodes, root),
        *limits.targets(wish.slice_limits, root),
        *seen.bans.targets,
        *resctrl.targets(wish.bandwidth, seen.ability),
    ]


def _balancing(wish: Wish, nodes: Mapping[int, NodeMemory], root: str) -> tuple[Target, ...]:
    if wish.numa_balancing is None:
        return ()
    wanted = str(int(wish.numa_balancing))
    text = read_text(below(root, "/proc/sys/kernel/numa_balancing"))
    if text is None:
        why = "this kernel has no automatic NUMA balancing (CONFIG_NUMA_BALANCING)"
        return (Target(_BALANCING, UNSUPPORTED, "", wanted, why),)
    if len(nodes) < 2:
        why = (
            "this machine shows one NUMA node, so there is nothing to balance; a virtual machine "
            "may hide the nodes of its host"
        )
        return (Target(_BALANCING, INERT, text.strip(), wanted, why),)
    return (Target(_BALANCING, SYSCTL, _BALANCING, wanted),)


def _files(wish: Wish, seen: _Seen) -> dict[str, str | None]:
    balancing = None
    if wish.numa_balancing is not None and len(seen.nodes) > 1:
        balancing = f"{header('numa')}{_BALANCING} = {int(wish.numa_balancing)}\n"
    return {
        hugepages.BOOT_FILE: hugepages.boot_text(seen.pages, seen.nodes),
        SYSCTL_FILE: balancing,
        limits.RULES_FILE: limits.rules_text(seen.limits),
        resctrl.SPEC_PATH: resctrl.spec_text(wish.bandwidth, seen.ability),
    }


def _unit(acting: limits.Limits, check_mode: bool, root: str) -> list[str]:
    if not acting:
        return boot_unit.remove(limits.unit({}), check_mode, root)
    return boot_unit.install(limits.unit(acting), check_mode, root)


def _refuse_partial(
    outcome: Outcome,
    old: records.Record | None,
    before: Mapping[str, str | None],
    keeper: Keeper,
) -> None:
    """The kernel may give fewer pages than asked, without an error: then none are kept."""
    fewer = [
        one
        for one in outcome.settings
        if one.verdict == DIFFERS and one.name.startswith(_HUGEPAGES)
    ]
    if not fewer:
        return
    if old is None:
        keeper.absent()
    else:
        keeper.keep([former.target for former in old.formers], before, old.extra)
    said = "\n".join(
        f"{one.name}: the kernel gave {one.effective} of {one.wanted}; {one.reason}"
        for one in fewer
    )
    raise NumaError(f"{said}\nThe huge pages are what they were before.")


def _dropped(old: records.Record | None, keys: tuple[str, ...]) -> list[str]:
    former = old.extra.get("daemon_keys", []) if old else []
    return sorted(set(map(str, former)) - set(keys))


def _bans_in_diff(outcome: Outcome, bans: irqbalance.Plan) -> None:
    if bans.changed:
        outcome.diff.append(
            {
                "before_header": bans.path,
                "after_header": bans.path,
                "before": bans.before or "",
                "after": bans.after or "",
            }
        )
