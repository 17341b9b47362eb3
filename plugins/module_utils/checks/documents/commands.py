# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A command as somebody types it or a script or unit runs it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..model import Given, Position


@dataclass(frozen=True)
class FlagFault:
    """What a command's own parser refuses.

    ``command`` is as ``docker run``. ``kind`` is ``needs-argument`` (the command ends behind the
    flag), ``not-a-switch-value`` (``--rm=maybe``), ``bad-syntax`` (``---x``), ``no-image``,
    ``broken-continuation`` (a blank behind the last backslash), ``cut-off`` (the lines behind it
    are no longer part of the command; ``value`` is the first word of them), ``typographic``
    (a dash or quote that a word processor made). ``flag`` and ``value`` are as written.
    """

    at: Position
    command: str
    kind: str
    flag: str = ""
    value: str = ""


@dataclass(frozen=True)
class CommandLine:
    """One command with its words.

    ``name`` is the program without directory; ``words`` are all words behind it. For docker,
    podman and nerdctl ``sub`` are the words of the subcommand (``("container", "run")``), and for
    these and dockerd, docker update and docker service create ``flags`` has the flags by long
    name, ``unknown`` those the command does not have, ``args`` the words that are no flags; of
    every other command ``args`` are the words that do not begin with a dash.
    ``env`` are the variables set for it alone (``NAME=value cmd``, ``env NAME=value cmd``),
    ``wrappers`` the programs that start it (``sudo``, ``numactl``), each with its words.
    ``reads`` is the file behind ``<``, ``writes`` those behind ``>``; ``piped`` are the words of
    the command whose output it gets, ``comment`` is what stands behind it on its line.
    ``parsed`` says whether ``flags`` were read by a table.
    ``shell`` are names of variables in it whose values are not known.
    """

    at: Position
    name: str
    words: tuple[Given, ...] = ()
    sub: tuple[str, ...] = ()
    flags: Mapping[str, tuple[Given, ...]] = field(default_factory=dict)
    unknown: tuple[Given, ...] = ()
    args: tuple[Given, ...] = ()
    env: Mapping[str, Given] = field(default_factory=dict)
    wrappers: tuple[tuple[Given, ...], ...] = ()
    reads: Given | None = None
    writes: tuple[Given, ...] = ()
    piped: tuple[str, ...] = ()
    comment: str = ""
    parsed: bool = False
    shell: frozenset[str] = frozenset()

    def has(self, *names: str) -> Given | None:
        """The first word that is one of these flags, with or without ``=value``."""
        for word in self.words:
            if word.value in names or word.value.partition("=")[0] in names:
                return word
        return None

    def option(self, *names: str) -> Given | None:
        """The value of a flag: what stands behind its ``=``, or else the next word."""
        for place, word in enumerate(self.words):
            flag, equals, value = word.value.partition("=")
            if flag in names:
                if equals:
                    return Given(value, word.at, flag)
                behind = self.words[place + 1 : place + 2]
                return Given(behind[0].value, word.at, flag) if behind else Given("", word.at, flag)
        return None

    def starts(self, *words: str) -> bool:
        """Are the first words that are no flags these (``apt-get``: ``install``)?"""
        return tuple(given.value for given in self.args[: len(words)]) == words

    def last(self, flag: str) -> Given | None:
        """The last value of a flag of a parsed command."""
        given = self.flags.get(flag, ())
        return given[-1] if given else None

    def text(self) -> str:
        """Name and words with single blanks, for messages; not for pasting."""
        return " ".join((self.name, *(word.value for word in self.words)))


@dataclass(frozen=True)
class Variable:
    """An environment variable that a script sets for what follows: ``export NAME=value``.

    ``exported`` is False for a plain assignment.
    """

    at: Position
    name: str
    value: str
    exported: bool
