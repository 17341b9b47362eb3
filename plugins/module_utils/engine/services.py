# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The systemd units of the engine, asked in one call, and the flags they start it with."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..atomic import read_text
from ..process import CommandMissingError, run

# Units that systemd stops and starts with this one (systemd.unit(5)).
_BOUND = ("RequiredBy", "RequisiteOf", "BoundBy", "ConsistsOf", "PropagatesStopTo")

_FILES = "EnvironmentFiles"

_PROPERTIES = (
    "Id",
    "LoadState",
    "ActiveState",
    "UnitFileState",
    "MainPID",
    "ExecStart",
    "Environment",
    _FILES,
    *_BOUND,
)

# dockerd's short flags and the long ones they stand for (``dockerd --help``).
_SHORT_FLAGS = {
    "-b": "--bridge",
    "-D": "--debug",
    "-g": "--graph",
    "-G": "--group",
    "-H": "--host",
    "-l": "--log-level",
    "-p": "--pidfile",
    "-s": "--storage-driver",
}

_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


@dataclass(frozen=True)
class Service:
    """One unit; ``load_state`` is ``not-found`` when there is no such unit.

    ``bound`` are the units that systemd stops and starts with it, active or not. ``program`` is
    the name of what it starts: ``flags`` of a script are not all that the daemon gets.
    """

    load_state: str = "not-found"
    active_state: str = "inactive"
    enabled: bool = False
    main_pid: int = 0
    flags: Mapping[str, str] = field(default_factory=dict)
    bound: tuple[str, ...] = ()
    program: str = ""

    @property
    def active(self) -> bool:
        """Does a process of it run (or come up) right now?"""
        return self.active_state in ("active", "activating", "reloading")


def read_services(names: Sequence[str], deadline_s: float = 30.0) -> dict[str, Service]:
    """The named units (``docker.service`` …); all ``not-found`` on a host without systemd."""
    try:
        done = run(["systemctl", "show", "--property=" + ",".join(_PROPERTIES), *names], deadline_s)
    except CommandMissingError:
        return {name: Service() for name in names}
    services = {}
    # systemd answers in the order asked; an alias answers under its real Id.
    for name, properties in zip(names, parse_show(done.stdout)):
        argv = exec_argv(properties.get("ExecStart", ""), _environment(properties))
        services[name] = Service(
            load_state=properties.get("LoadState", "not-found"),
            active_state=properties.get("ActiveState", "inactive"),
            enabled=properties.get("UnitFileState", "").startswith("enabled"),
            main_pid=int(properties.get("MainPID") or 0),
            flags=parse_flags(argv),
            bound=tuple(
                sorted({unit for key in _BOUND for unit in _words(properties.get(key, ""))})
            ),
            program=os.path.basename(argv[0]) if argv else "",
        )
    return {name: services.get(name, Service()) for name in names}


def parse_show(text: str) -> list[dict[str, str]]:
    """``systemctl show`` of several units: blocks of ``Key=value`` between empty lines.

    Of a key that comes again the last value is kept, of ``EnvironmentFiles`` all, one a line.
    """
    blocks = []
    for lines in re.split(r"\n\s*\n", text.strip()):
        block: dict[str, str] = {}
        for key, equals, value in (line.partition("=") for line in lines.splitlines()):
            if equals:
                before = block.get(key) if key == _FILES else None
                block[key] = value if before is None else f"{before}\n{value}"
        blocks.append(block)
    return blocks


def _environment(properties: Mapping[str, str]) -> dict[str, str]:
    """The unit's variables; an environment file wins over those before it and ``Environment=``."""
    variables: dict[str, str] = {}
    for word in _words(properties.get("Environment", "")):
        key, _equals, value = word.partition("=")
        variables[key] = value
    for line in properties.get(_FILES, "").splitlines():
        path = line.partition(" (")[0]
        if os.path.isabs(path):
            variables.update(parse_environment_file(read_text(path) or ""))
    return variables


def parse_environment_file(text: str) -> dict[str, str]:
    """``KEY=value`` lines as systemd reads them, one pair of quotes removed."""
    variables = {}
    for line in text.splitlines():
        key, equals, value = line.strip().partition("=")
        if equals and key[:1] not in ("#", ";"):
            value = value.strip()
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
            variables[key.strip()] = value[1:-1] if quoted else value
    return variables


def exec_argv(exec_start: str, environment: Mapping[str, str]) -> list[str]:
    """The words of an ``ExecStart`` property, variables put in as systemd does.

    A variable that is a word of its own (``$DOCKER_OPTS``) is split at blanks, one inside
    a word or in braces is not; an unset one vanishes.
    """
    match = re.search(r"argv\[\]=(.*?) ; ", exec_start)
    argv: list[str] = []
    for word in _words(match.group(1)) if match else []:
        alone = re.fullmatch(r"\$(\w+)", word)
        if alone:
            argv.extend(_words(environment.get(alone.group(1), "")))
        else:
            argv.append(
                _VARIABLE.sub(lambda m: environment.get(m.group(1) or m.group(2), ""), word)
            )
    return argv


def parse_flags(argv: Sequence[str]) -> dict[str, str]:
    """``{"--host": "fd://", "--debug": "true"}`` from the words after the program.

    dockerd takes no plain arguments, so a word without a dash is the value of the flag
    before it. A repeated flag keeps all its values, separated by commas.
    """
    pairs: list[tuple[str, str | None]] = []
    for word in argv[1:]:
        if word.startswith("-"):
            name, equals, value = word.partition("=")
            pairs.append((_SHORT_FLAGS.get(name, name), value if equals else None))
        elif pairs and pairs[-1][1] is None:
            pairs[-1] = (pairs[-1][0], word)
    flags: dict[str, str] = {}
    for name, given in pairs:
        value = "true" if given is None else given
        flags[name] = f"{flags[name]},{value}" if name in flags else value
    return flags


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def process_start(pid: int, root: str = "/") -> float | None:
    """When a process started, seconds since the epoch (proc(5): stat field 22, btime)."""
    stat = read_text(os.path.join(root, "proc", str(pid), "stat"))
    kernel = read_text(os.path.join(root, "proc/stat")) or ""
    boot = [line.split()[1] for line in kernel.splitlines() if line.startswith("btime ")]
    if stat is None or not boot:
        return None
    # The command name in field 2 may hold blanks and parentheses: count behind the last one.
    after_name = stat.rpartition(")")[2].split()
    return float(boot[0]) + int(after_name[19]) / os.sysconf("SC_CLK_TCK")


def is_stale(pid: int, root: str = "/") -> bool:
    """Does a process run another program than the one that now lies at its place?

    A package manager puts a new file in the place of the old one, and a process goes on with that.
    """
    link = os.path.join(root, "proc", str(pid), "exe")
    try:
        path = os.readlink(link)
        runs = os.stat(link)
        if path.endswith(" (deleted)"):
            return True
        lies = os.stat(os.path.join(root, path.lstrip("/")))
    except OSError:
        return False
    return (runs.st_dev, runs.st_ino) != (lies.st_dev, lies.st_ino)
