# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Commands in scripts, in pasted terminal lines and in how-tos. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...trees.places import Places, whole
from ..documents.commands import CommandLine, FlagFault, Variable
from ..documents.container import ContainerSpec
from ..model import Given, Position, Problem, Reading
from .command_words import command_of, unwrap
from .docker_run import container_of
from .shell_parts import RawCommand, RawWord, Word
from .shell_values import Values
from .shell_words import LIMIT_DEPTH, Lexer

# No script that people write has as many.
LIMIT_DOCUMENTS = 10_000

_KEYWORDS = ("if", "then", "elif", "else", "do", "while", "until", "!", "{", "time")
_NOT_COMMANDS = ("for", "case", "select", "function", "in", "fi", "done", "esac", "}", "[", "[[")
# Programs that get a command as a text.
_RUN_TEXTS = ("bash", "sh", "dash", "zsh", "ssh", "su", "eval", "watch")
_ASSIGNS = re.compile(r"([A-Za-z_]\w*)\+?=(.*)$", re.DOTALL)
# What stands before a command in a pasted terminal session.
_PROMPT = re.compile(
    r"[ \t]*(?:\([\w.-]+\)[ \t]*)?"
    r"(?:[\w.-]+@[\w.-]+[^\n$#%]{0,60}[$#%]|\[[^\]\n]{1,60}\][$#%]|PS [A-Z]:[^>\n]*>"
    r"|[A-Z]:\\[^>\n]*>|\$|%)[ \t]+(?=\S)"
)
_ROOT_PROMPT = re.compile(
    r"#[ \t]+(?=(docker|podman|nerdctl|nvidia-[\w-]+|systemctl|apt|apt-get|dnf|kubectl|crictl)"
    r"[ \t]+[\w-])"
)


def read_shell(text: str, file: str) -> Reading:
    """The containers and commands of a script; ``file`` is its name in every place.

    Documents: :class:`ContainerSpec` for each docker, podman or nerdctl run and create line,
    :class:`CommandLine` for every command (for those too), :class:`Variable` for what is set,
    :class:`FlagFault` for what an engine's parser refuses. Any text can be read; one with far too
    many commands is read in part, which is a problem.
    """
    text = whole(text.replace("\x00", "\ufffd"))
    documents = []
    for document in _Script(_without_prompts(text), file).documents():
        documents.append(document)
        if len(documents) >= LIMIT_DOCUMENTS:
            said = f"it has more than {LIMIT_DOCUMENTS} commands: the rest is not read"
            return Reading(tuple(documents), (Problem(document.at, said),))
    return Reading(tuple(documents))


def documents_of(words: Sequence[Word], file: str, env: dict[str, Given]) -> Iterator[Any]:
    """What one command of a unit is, its words being taken apart already: as in a script."""
    yield from _Script("", file).run(list(words), dict(env), RawCommand(), 0)


def _without_prompts(text: str) -> str:
    """A pasted session with prompts, and what commands printed, blanked out place by place."""
    lines = text.split("\n")
    prompt = _PROMPT
    if not any(_PROMPT.match(line) for line in lines):
        first = next((line for line in lines if line.strip()), "")
        others = (line for line in lines if line.strip() and not line.startswith("#"))
        if not _ROOT_PROMPT.match(first) or text.startswith("#!") or any(others):
            return text
        prompt = _ROOT_PROMPT
    blanked = []
    goes_on = False
    for line in lines:
        match = None if goes_on else prompt.match(line)
        if match:
            line = " " * match.end() + line[match.end() :]
        elif goes_on and line.startswith("> "):
            line = "  " + line[2:]
        elif not goes_on:
            line = ""
        blanked.append(line)
        # Also where a blank behind the backslash breaks the command: that is for the rules to say.
        goes_on = bool(line) and line.rstrip().endswith("\\")
    return "\n".join(blanked)


@dataclass(frozen=True)
class _OpenRun:
    """A run line that flags may stand below: ``whole`` with its image, ``end`` its last line."""

    line: CommandLine
    whole: bool
    end: int

    def lacks(self, raw: RawCommand) -> bool:
        """Are the words below it flags that it lacks? Below a whole one they may be explained."""
        words = [word.text for word in raw.words]
        if not re.match(r"--?[a-zA-Z]", words[0]):
            return False
        explained = any(word.endswith(":") or not word.isascii() for word in words)
        return not self.whole or (raw.words[0].line == self.end + 1 and not explained)


def _open_run(line: CommandLine | None, found: Sequence[Any], raw: RawCommand) -> _OpenRun | None:
    """The run line that ends here, if ``...`` does not stand for the lines that follow."""
    spec = next((doc for doc in found if isinstance(doc, ContainerSpec)), None)
    words = [word.text for word in raw.words]
    left_out = any(re.match(r"\[?(\.\.\.|…)", word) for word in words) or "..." in raw.comment
    if line is None or spec is None or left_out:
        return None
    return _OpenRun(line, spec.image is not None, raw.words[-1].line)


class _OnePlace(Places):
    """The place of a word for all that is in it: its quotes make counting hopeless."""

    def __init__(self, word: Word) -> None:
        super().__init__("")
        self._place = word.line, word.column

    def at(self, offset: int) -> tuple[int, int]:
        return self._place


class _Script:
    def __init__(self, text: str, file: str, places: Places | None = None) -> None:
        self.text = text
        self.file = file
        self.places = places or Places(text)
        self.piped: tuple[str, ...] = ()  # the words of the command before
        self.values = Values()
        self.values.learn(Lexer(text, self.places).commands())

    def documents(self) -> Iterator[Any]:
        yield from self._stretch(0, len(self.text), 0)

    def _stretch(self, start: int, end: int, depth: int) -> Iterator[Any]:
        open_run: _OpenRun | None = None
        broken = False
        for raw in Lexer(self.text, self.places, start, end).commands():
            found = list(self._command(raw, depth))
            line = next((doc for doc in found if isinstance(doc, CommandLine)), None)
            if open_run and raw.before == "\n" and raw.words and open_run.lacks(raw):
                yield from () if broken else (self._cut_off(open_run.line, raw),)
                found = []
                broken = True
            yield from found
            kinds = [doc.kind for doc in found if isinstance(doc, FlagFault)]
            broken = "broken-continuation" in kinds or (broken and not found)
            self.piped = tuple(w.text for w in raw.words) if raw.words else self.piped
            if line is not None or raw.before not in ("", "\n"):
                open_run = _open_run(line, found, raw)
            if depth < LIMIT_DEPTH:
                for inner_start, inner_end in raw.inner:
                    yield from self._stretch(inner_start, inner_end, depth + 1)

    def _cut_off(self, run: CommandLine, raw: RawCommand) -> FlagFault:
        """Flags that stand on a line of their own: the command above ended too early."""
        place = self._place(raw.words[0])
        return FlagFault(place, f"{run.name} {run.sub[-1]}", "cut-off", value=raw.words[0].text)

    def _place(self, word: Word | RawWord) -> Position:
        return Position(self.file, word.line, word.column)

    def _given(self, word: Word) -> Given:
        return Given(word.value, self._place(word))

    def _command(self, raw: RawCommand, depth: int) -> Iterator[Any]:
        words = [word for one in raw.words for word in self.values.expand(one)]
        while words and words[0].value in _KEYWORDS:
            words.pop(0)
        env: dict[str, Given] = {}
        while words and (match := _ASSIGNS.match(words[0].value)):
            env[match.group(1)] = Given(match.group(2), self._place(words[0]))
            words.pop(0)
        if not words:
            for name, given in env.items():
                yield Variable(given.at, name, given.value, exported=False)
            return
        if words[0].value == "[[":
            yield _test(words, self.file)
        if words[0].value in _NOT_COMMANDS:
            return
        for name, given in env.items():
            yield Variable(given.at, name, given.value, exported=True)
        if words[0].value in ("export", "declare", "typeset"):
            for word in words[1:]:
                if match := _ASSIGNS.match(word.value):
                    yield Variable(self._place(word), match.group(1), match.group(2), exported=True)
            return
        yield from self.run(words, env, raw, depth)

    def run(
        self, words: list[Word], env: dict[str, Given], raw: RawCommand, depth: int
    ) -> Iterator[Any]:
        wrappers, words, more_env = unwrap(words, self.file)
        env.update(more_env)
        if not words:
            return
        name = posixpath.basename(words[0].value)
        if (
            name in ("bash", "sh", "dash", "zsh", "ssh", "su", "eval", "watch")
            and depth < LIMIT_DEPTH
        ):
            yield from self._script_in(name, words[1:], depth)
        if name.endswith(".exe"):
            name = name[:-4]
        line = command_of(name, words, self.file, env, wrappers)
        if line is None:
            return
        files = [(op, Given(word.text, self._place(word))) for op, word in raw.redirects]
        line = replace(
            line,
            reads=next((given for op, given in files if op == "<"), None),
            writes=tuple(given for op, given in files if op in (">", ">>", ">|")),
            piped=self.piped if raw.before in ("|", "|&") else (),
            comment=raw.comment,
        )
        yield line
        yield from containers_of(line, words, self.file)

    def _script_in(self, name: str, words: Sequence[Word], depth: int) -> Iterator[Any]:
        """The commands in the text given to ``bash -c``, ``ssh host`` and the like."""
        for place, word in enumerate(words):
            shells = name not in ("ssh", "eval", "watch")
            before = words[place - 1].value if place else ""
            if shells and not (before.startswith("-") and before.endswith("c")):
                continue
            if " " not in word.value or word.value.startswith("-"):
                continue
            raw = word.raw
            start = word.offset + 1
            if raw[:1] in "'\"" and raw[1:-1] == word.value:
                yield from self._stretch(start, start + len(word.value), depth + 1)
            else:
                inner = _Script(word.value, self.file, _OnePlace(word))
                yield from inner.documents()


def _test(words: Sequence[Word], file: str) -> CommandLine:
    """``[[ … ]]`` as a command; ``spelled`` of its words is how they are written, with quotes."""
    given = tuple(Given(w.value, Position(file, w.line, w.column), w.raw) for w in words[1:])
    return CommandLine(Position(file, words[0].line, words[0].column), "[[", given)


def containers_of(line: CommandLine, words: Sequence[Word], file: str) -> Iterator[Any]:
    """The container that a run or create line asks for, and what its parser refuses."""
    if line.name not in ("docker", "podman", "nerdctl", "nvidia-docker", "nvidia-docker2"):
        return
    if line.sub not in (("run",), ("create",), ("container", "run"), ("container", "create")):
        return
    how = line.sub[-1]
    sub = [word.value for word in words].index(how, 1)
    engine = line.name if line.name in ("podman", "nerdctl") else "docker"
    spec, faults = container_of(words[sub + 1 :], line.at, how, engine)
    yield spec
    yield from faults
