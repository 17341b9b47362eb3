# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a command is once the programs that only start it are taken away. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence

from ..documents.commands import CommandLine
from ..model import Given, Position
from .docker_flags import (
    DOCKER_SERVICE_CREATE,
    DOCKER_UPDATE,
    DOCKERD,
    GLOBAL,
)
from .pflag import Parsed, Table, parse
from .shell_parts import Word

# Programs that run another, with those of their flags that take a word of their own.
_WRAPPERS: Mapping[str, str] = {
    "sudo": "-u -g -h -p -C -r -t -T -D -R -U --user --group --host --prompt --chdir --close-from",
    "doas": "-u -C",
    "env": "-u -C -S --unset --chdir",
    "time": "-f -o --format --output",
    "nohup": "",
    "exec": "-a",
    "command": "",
    "builtin": "",
    "nice": "-n --adjustment",
    "ionice": "-c -n -p --class --classdata",
    "chrt": "-p -T -P -D",
    "setsid": "",
    "stdbuf": "-i -o -e",
    "timeout": "-s -k --signal --kill-after",
    "numactl": "-N -m -C -p -i -P --cpunodebind --membind --physcpubind --preferred --interleave"
    " --weighted-interleave --localalloc-none",
    "taskset": "",
    "systemd-run": "-p -u -t --property --unit --slice --description --uid --gid -E --setenv",
    "xargs": "-n -P -I -L -d -a -s --max-args --max-procs",
    "strace": "-e -o -p -s -u -E -P",
    "perf": "",
    "flock": "-w -E",
    "retry": "",
    "unshare": "",
    "nsenter": "-t --target",
    "chroot": "",
    "wsl": "-d -u",
}
# How many words that are no flags belong to the program itself before the command begins.
_OWN_WORDS = {"timeout": 1, "taskset": 1, "chrt": 1, "flock": 1, "chroot": 1}
_ENGINES = ("docker", "podman", "nerdctl")
# Groups of docker's commands: the subcommand has two words.
_GROUPS = """
artifact builder buildx checkpoint compose config container context farm image kube machine manifest
model network node plugin pod secret service stack swarm system trust volume
""".split()  # noqa: SIM905
_ASSIGNS = re.compile(r"([A-Za-z_]\w*)=(.*)$", re.DOTALL)


def unwrap(
    words: list[Word], file: str
) -> tuple[list[tuple[Given, ...]], list[Word], dict[str, Given]]:
    """The programs that only start it, the words of the command itself, variables set for it."""
    wrappers: list[tuple[Given, ...]] = []
    env: dict[str, Given] = {}
    while words and posixpath.basename(words[0].value) in _WRAPPERS and len(wrappers) < 20:
        name = posixpath.basename(words[0].value)
        taken = _own_words(words, name, env, file)
        if taken >= len(words):
            break
        wrappers.append(tuple(_given(word, file) for word in words[:taken]))
        words = words[taken:]
    return wrappers, words, env


def _own_words(words: Sequence[Word], name: str, env: dict[str, Given], file: str) -> int:
    """How many words belong to the program ``name`` that starts another one."""
    with_value = _WRAPPERS[name].split()
    own = _OWN_WORDS.get(name, 0)
    place = 1
    while place < len(words):
        text = words[place].value
        match = _ASSIGNS.match(text)
        if text == "--":
            return place + 1
        if text.startswith("-") and len(text) > 1:
            place += 2 if text in with_value else 1
        elif match and name in ("sudo", "env", "doas"):
            env[match.group(1)] = Given(match.group(2), _at(words[place], file))
            place += 1
        elif own:
            own -= 1
            place += 1
        else:
            return place
    return place


def _at(word: Word, file: str) -> Position:
    return Position(file, word.line, word.column)


def _given(word: Word, file: str) -> Given:
    return Given(word.value, _at(word, file))


def command_of(
    name: str,
    words: Sequence[Word],
    file: str,
    env: Mapping[str, Given] | None = None,
    wrappers: Sequence[tuple[Given, ...]] = (),
) -> CommandLine | None:
    """The command line whose first word is the program ``name``; None for what is no program."""
    if not re.match(r"[A-Za-z_][\w.+-]*$", name):
        return None
    behind = list(words[1:])
    sub: tuple[str, ...] = ()
    parsed: Parsed | None = None
    if name in _ENGINES or name.startswith("nvidia-docker"):
        start = _subcommand(behind, GLOBAL.get(name, GLOBAL["docker"]), file)
        sub, rest = _sub_words(behind[start:])
        table = _table(sub)
        parsed = parse(rest, table, file, interspersed=True) if table else None
    elif name == "dockerd":
        parsed = parse(behind, DOCKERD, file, interspersed=True)
    positional = parsed.rest if parsed else [w for w in behind if not w.value.startswith("-")]
    return CommandLine(
        at=_at(words[0], file),
        name=name,
        words=tuple(_given(word, file) for word in behind),
        sub=sub,
        flags=parsed.frozen() if parsed else {},
        unknown=tuple(parsed.unknown) if parsed else (),
        args=tuple(_given(word, file) for word in positional),
        env=dict(env or {}),
        wrappers=tuple(wrappers),
        parsed=parsed is not None,
        shell=frozenset().union(*(word.variables for word in words)),
    )


def _subcommand(words: Sequence[Word], table: Table, file: str) -> int:
    """Where the subcommand stands behind the engine's own flags."""
    parsed = parse(words, table, file)
    return len(words) - len(parsed.rest)


def _sub_words(words: Sequence[Word]) -> tuple[tuple[str, ...], Sequence[Word]]:
    if not words:
        return (), ()
    first = words[0].value
    if first in _GROUPS and len(words) > 1:
        return (first, words[1].value), words[2:]
    return (first,), words[1:]


def _table(sub: tuple[str, ...]) -> Table | None:
    if sub in (("update",), ("container", "update")):
        return DOCKER_UPDATE
    return DOCKER_SERVICE_CREATE if sub == ("service", "create") else None
