# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Put the installed engine in force: start the daemons anew whose programs were replaced.

Nothing is written, so a run that was killed anywhere is finished by the next one: what still runs
the former program is what is left to do. Refused before the first restart where a container would
end; proved afterwards by every container's process and its access to its GPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..atomic import read_text
from ..engine import daemon_json
from ..secrets import by_key, redact
from . import judge_containerd, judge_restart
from .model import ERROR, Container, Host, Item, Move, listed

DOCKER, CONTAINERD = "docker.service", "containerd.service"
_POLL_S = 0.5


class SwitchRefusedError(Exception):
    """Nothing was restarted; the message names what would die and what to do."""


class SwitchFailedError(Exception):
    """Something was restarted and is not as it should be; the message says what was seen."""


@dataclass(frozen=True)
class Ended:
    """A container that ended in between: ``code`` is its exit status, None where it is gone."""

    name: str
    code: int | None


class Machine(Protocol):
    """What is asked of and done to a host; :class:`.machine.Machine` is the real one."""

    def look(self) -> Host:
        """The host now."""

    def restart(self, unit: str) -> None:
        """Restart or start a unit and wait for systemd. Raises units.UnitError."""

    def why_not_start(self) -> str:
        """Whom the start of a Docker that is down would end, in words; "" for nobody."""

    def answers(self) -> str | None:
        """None once Docker answers, else what it said."""

    def refuses(self, unit: str, text: str | None) -> str | None:
        """What the installed program has against its configuration; None for nothing."""

    def lost_gpus(self) -> Mapping[str, str]:
        """Running containers that may not open a GPU they were given: name to devices."""

    def ended(self, name: str) -> Ended:
        """How a container that no longer runs has ended."""

    def log(self, unit: str) -> str:
        """The last words of a unit."""


@dataclass(frozen=True)
class Wish:
    """``start``: daemons that are down are started too, and one that does not come up counts as
    down. ``accept`` are ids of items that may be, ``containers`` the processes of containers by
    name at the beginning (empty: as they are found).
    """

    start: bool = False
    accept: frozenset[str] = frozenset()
    containers: Mapping[str, int] | None = None
    timeout_s: float = 300.0


@dataclass(frozen=True)
class Outcome:
    """``restarted`` units in order; ``kept`` containers with their processes.

    ``before`` and ``after`` are the versions in force; ``warnings`` are for a person. ``lost`` are
    containers of the wish that had ended or were started anew before the first restart.
    """

    restarted: tuple[str, ...]
    kept: Mapping[str, int]
    before: Mapping[str, str]
    after: Mapping[str, str]
    warnings: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


def due(host: Host, start: bool) -> tuple[str, ...]:
    """The units to start anew, in order. Pure."""
    found = []
    for unit, daemon in ((CONTAINERD, host.containerd), (DOCKER, host.docker)):
        down = start and _is_down(unit, host)
        if daemon.stale or down:
            found.append(unit)
    return tuple(found)


def _is_down(unit: str, host: Host) -> bool:
    daemon = host.docker if unit == DOCKER else host.containerd
    # Without this flag Docker brings a containerd of its own.
    needed = unit == DOCKER or "--containerd" in host.flags
    return needed and daemon.there and (not daemon.active or daemon.coming_up)


def refusals(host: Host, wish: Wish) -> list[Item]:
    """What forbids the restart. Pure."""
    move = Move(host.versions, host.versions)
    found = [
        *judge_restart.engine(host, move),
        *judge_restart.pending(host),
        *judge_restart.units(host),
        *_newer_shims(host, wish),
    ]
    return [
        item
        for item in found
        if item.severity == ERROR
        and item.id not in wish.accept
        # A daemon that does not come up keeps nobody alive, whoever asks it.
        and not (item.id == "engine-unreachable" and wish.start and host.docker.coming_up)
    ]


def _newer_shims(host: Host, wish: Wish) -> Iterator[Item]:
    """Of containers that were started since it was planned, too."""
    if _starts_containerd(host, wish):
        yield from judge_containerd.newer_shims(host, host.containerd.program or "")


def _starts_containerd(host: Host, wish: Wish) -> bool:
    units = due(host, wish.start)
    # Without this flag Docker has a containerd of its own, which starts with it.
    return CONTAINERD in units or (bool(units) and "--containerd" not in host.flags)


def _given_up(host: Host, wish: Wish) -> dict[str, str]:
    """Who ends with the word of the user, and what is said of it."""
    if "shim-newer" not in wish.accept or not _starts_containerd(host, wish):
        return {}
    lost = judge_containerd.lost_to(host, host.containerd.program or "")
    return {name: f"container {name} was to end, as was accepted (shim-newer)" for name in lost}


@dataclass(frozen=True)
class _Expected:
    """``wanted`` are the containers that must live on, with their processes, 0 for one not known.

    ``earlier`` are those of the wish that are no longer what they were, with what became of them.
    """

    wanted: Mapping[str, int]
    earlier: Mapping[str, str]


def carry_out(wish: Wish, machine: Machine, check: bool = False) -> Outcome:
    """Restart what is due, and prove it. Raises SwitchRefusedError and SwitchFailedError."""
    host = machine.look()
    units = due(host, wish.start)
    if not units:
        return _proved(wish, machine, host, (), _expected(wish, host, machine), {})
    _refuse(units, host, wish, machine)
    for unit in units:
        said = machine.refuses(unit, _config_of(unit, host))
        if said:
            raise SwitchRefusedError(
                f"{unit} was not restarted, because the installed program does not take its "
                f"configuration: {_told_safely(said, host)}. Correct it, or go back to the "
                "former packages; the running daemon has not noticed"
            )
    if check:
        known = {one.name: one.pid for one in host.running}
        return Outcome(units, known, host.versions, {**host.versions, **_installed(host)})
    lost_before = machine.lost_gpus()
    # All this took its time, and jobs come and end.
    host = machine.look()
    _refuse(units, host, wish, machine)
    expected = _expected(wish, host, machine)
    given_up = _given_up(host, wish)
    expected = _Expected(
        {name: pid for name, pid in expected.wanted.items() if name not in given_up},
        {**expected.earlier, **given_up},
    )
    for unit in units:
        _restart(unit, wish, machine, host)
    return _proved(wish, machine, host, units, expected, lost_before)


def _refuse(units: Sequence[str], host: Host, wish: Wish, machine: Machine) -> None:
    refused = refusals(host, wish)
    if refused:
        raise SwitchRefusedError(_told(units, refused))
    endangered = machine.why_not_start() if DOCKER in units and not host.docker.active else ""
    if endangered:
        raise SwitchRefusedError(f"{listed(list(units))} not started: {endangered}")


def _expected(wish: Wish, host: Host, machine: Machine) -> _Expected:
    """Who must live on: all that run now, since no restart has ended those that do not.

    A daemon that does not answer tells nothing, so all of the wish count.
    """
    now = {one.name: one for one in host.running}
    known = {name: one.pid for name, one in now.items()}
    if wish.containers is None or host.status != "running":
        return _Expected(known if wish.containers is None else wish.containers, {})
    earlier = {}
    for name, pid in wish.containers.items():
        if name not in now:
            earlier[name] = (
                f"by the time of the switch container {name} {_end(machine.ended(name))}"
            )
        elif _is_another(pid, now[name]):
            earlier[name] = (
                f"by the time of the switch container {name} was started anew: process "
                f"{known[name]}, was {pid}"
            )
    wanted = {name: pid for name, pid in known.items() if name not in earlier}
    return _Expected(wanted, earlier)


def _is_another(pid: int, one: Container) -> bool:
    """Has a container another process than this one? What is not known is not another one."""
    return bool(pid) and one.looked_into and one.pid != pid


def _end(ended: Ended) -> str:
    return "is gone" if ended.code is None else f"has ended with status {ended.code}"


def _installed(host: Host) -> dict[str, str]:
    known = {"docker": host.docker.program, "containerd": host.containerd.program}
    return {name: version for name, version in known.items() if version}


def _config_of(unit: str, host: Host) -> str | None:
    if unit != DOCKER:
        return None
    return read_text(host.flags.get("--config-file", daemon_json.CONFIG_PATH))


def _restart(unit: str, wish: Wish, machine: Machine, host: Host) -> None:
    machine.restart(unit)
    until = time.monotonic() + wish.timeout_s
    said = machine.answers() if unit == DOCKER else None
    while said is not None:
        if time.monotonic() > until:
            raise SwitchFailedError(
                f"Docker did not answer within {wish.timeout_s:g} s of its restart: {said}. Its "
                f"last words:\n{_told_safely(machine.log(DOCKER), host)}"
            )
        time.sleep(_POLL_S)
        said = machine.answers()


def _proved(
    wish: Wish,
    machine: Machine,
    before: Host,
    restarted: Sequence[str],
    expected: _Expected,
    lost_before: Mapping[str, str],
) -> Outcome:
    """The containers are what they were, and the daemons what is installed."""
    host = machine.look() if restarted else before
    wrong, warnings = _compare(expected.wanted, host, machine.ended)
    still = due(host, wish.start)
    if restarted and still:
        wrong.append(f"{listed(list(still))}: not in force although restarted")
    if restarted:
        blind = machine.lost_gpus()
        wrong += [
            f"container {name} may no longer open {devices}"
            for name, devices in blind.items()
            if lost_before.get(name) != devices
        ]
    if wrong:
        done = f"After the restart of {listed(list(restarted))}" if restarted else "By now"
        words = _told_safely(machine.log(DOCKER), before)
        log = f". Docker's last words:\n{words}" if restarted else ""
        raise SwitchFailedError(
            "{} this is not as it was: {}{}".format(done, "; ".join(wrong), log)
        )
    now = {one.name: one for one in host.running}
    planned = wish.containers or {}
    # A daemon may find again whom another one did not.
    lost = [
        name
        for name in expected.earlier
        if name not in now or _is_another(planned.get(name, 0), now[name])
    ]
    names = {*expected.wanted, *expected.earlier} - {*lost}
    return Outcome(
        tuple(restarted),
        {name: one.pid for name, one in now.items() if name in names},
        before.versions,
        host.versions,
        (*(expected.earlier[name] for name in lost), *warnings),
        tuple(lost),
    )


def _told_safely(text: str, host: Host) -> str:
    """What a program said, without the secrets of its configuration."""
    secrets = by_key.secrets_of(dict(host.config), dict(host.flags))
    return by_key.clean(redact.phrase(text), secrets)


def _compare(
    wanted: Mapping[str, int], host: Host, ended: Callable[[str], Ended]
) -> tuple[list[str], list[str]]:
    """What is wrong, and what is worth a word."""
    now = {one.name: one for one in host.running}
    wrong, warnings = [], []
    for name, pid in wanted.items():
        if name not in now:
            end = ended(name)
            if end.code == 0:
                warnings.append(f"container {name} has ended by itself (exit status 0)")
            else:
                wrong.append(f"container {name} (process {pid}) {_end(end)}")
        elif _is_another(pid, now[name]):
            anew = f"process {now[name].pid}, was {pid}"
            wrong.append(f"container {name} was started anew: {anew}")
    return wrong, warnings


def _told(units: Sequence[str], refused: Sequence[Item]) -> str:
    lines = [f"{listed(list(units))} not restarted, nothing was changed:"]
    for item in refused:
        lines += [
            f"{item.id}: {item.title}",
            f"  seen: {item.seen}",
            f"  why:  {item.why}",
            f"  do:   {item.todo}",
        ]
    return "\n".join(lines)
