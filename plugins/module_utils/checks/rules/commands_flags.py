# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on how a docker run line is written: what docker's own flag parser, or the shell before it,
makes of it. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...versions import parse
from ..documents.commands import FlagFault
from ..documents.container import ContainerSpec
from ..host import HostView
from ..model import Given, Hit, Needs, Severity
from ..readers.docker_flags import SINCE
from ..registry import rule

_PFLAG = "spf13/pflag flag.go"
_OPTS = "docker/cli cli/command/container/opts.go"
_HOW = ("run", "create")

# Flags of docker run that no program in a container is likely to have, with values only Docker has.
_DOCKERS = {
    "--gpus": re.compile(r"all$|[\"']?device="),
    "--runtime": re.compile(r"(nvidia|runc|habana|amd)$"),
    "--ipc": re.compile(r"(host|shareable|private)$"),
    "--network": re.compile(r"(host|bridge|none)$"),
    "--net": re.compile(r"(host|bridge|none)$"),
    "--restart": re.compile(r"(always|unless-stopped|on-failure)"),
    "--shm-size": re.compile(r"[0-9.]+[a-zA-Z]*$"),
    "--ulimit": re.compile(r"\w+="),
    "--cap-add": re.compile(r"[A-Z_]+$"),
    "--security-opt": re.compile(r"\w+[=:]"),
    "--privileged": re.compile(r""),
    "--rm": re.compile(r""),
}

_INTEGERS = [
    "cpu-count",
    "cpu-percent",
    "cpu-period",
    "cpu-quota",
    "cpu-rt-period",
    "cpu-rt-runtime",
    "cpu-shares",
    "health-retries",
    "memory-swappiness",
    "oom-score-adj",
    "pids-limit",
    "stop-timeout",
    "blkio-weight",
    "io-maxiops",
]
_SIZES = [
    "memory",
    "memory-reservation",
    "memory-swap",
    "shm-size",
    "kernel-memory",
    "io-maxbandwidth",
]
_TIMES = ["health-interval", "health-timeout", "health-start-period", "health-start-interval"]
_INTEGER = re.compile(r"[+-]?(0x[0-9a-fA-F]+|0o?[0-7]+|0b[01]+|[0-9]+)$")
# docker/go-units RAMInBytes.
_SIZE = re.compile(r"-1$|[0-9]+(\.[0-9]+)? ?([kKmMgGtTpP]?[iI]?[bB]?)$")
_TIME = re.compile(r"[+-]?(0|([0-9]+(\.[0-9]*)?(ns|us|µs|μs|ms|s|m|h))+)$")
_CPUS = re.compile(r"[0-9]*\.?[0-9]+$|[0-9]+/[0-9]+$")


@rule(
    "flag-needs-argument",
    "A flag without its value",
    Severity.ERROR,
    reads=FlagFault,
    reason="The command ends after a flag that takes a value: docker prints 'flag needs an "
    "argument' and starts nothing.",
    fix="Give the value, and after the flags the image.",
    sources=(_PFLAG,),
)
def flag_needs_argument(fault: FlagFault, host: HostView) -> Iterator[Hit]:
    """The last word of the command."""
    if fault.kind == "needs-argument":
        yield Hit(fault.at, f"{fault.command} ends behind {fault.flag}, which takes a value.")


@rule(
    "switch-value",
    "A switch with a value that is neither true nor false",
    Severity.ERROR,
    reads=FlagFault,
    reason="docker takes 1, t, true, 0, f and false for a switch (and True, TRUE, …) and refuses "
    "every other word.",
    fix="Write the switch alone, or with =true or =false.",
    sources=(_PFLAG, "Go strconv.ParseBool"),
)
def switch_value(fault: FlagFault, host: HostView) -> Iterator[Hit]:
    """``--rm=yes``."""
    if fault.kind == "not-a-switch-value":
        yield Hit(
            fault.at,
            f"{fault.flag}={fault.value}: that is neither true nor false.",
            fix=f"Write {fault.flag}, or {fault.flag}=false.",
        )


@rule(
    "flag-syntax",
    "That is no flag",
    Severity.ERROR,
    reads=FlagFault,
    reason="A long flag begins with exactly two dashes and a name: docker prints 'bad flag "
    "syntax' and starts nothing.",
    fix="Write two dashes and the flag's name.",
    sources=(_PFLAG,),
)
def flag_syntax(fault: FlagFault, host: HostView) -> Iterator[Hit]:
    """``---gpus`` and ``--=x``."""
    if fault.kind == "bad-syntax":
        yield Hit(fault.at, f"{fault.flag} is no flag.")


@rule(
    "no-image",
    "A run line without an image",
    Severity.INFO,
    reads=FlagFault,
    reason="docker run wants at least one word that is no flag: the image.",
    fix="Put the image after the flags.",
    sources=("docker/cli cli/command/container/run.go, RequiresMinArgs",),
)
def no_image(fault: FlagFault, host: HostView) -> Iterator[Hit]:
    """A note only: in a text it may be the beginning of an example."""
    if fault.kind == "no-image":
        yield Hit(fault.at, f"This {fault.command} names no image.")


@rule(
    "command-cut-off",
    "The command ends before its last line",
    Severity.ERROR,
    reads=FlagFault,
    reason="A line goes on only when the backslash is its very last character. A space after it, "
    "a comment in between or a missing backslash ends the command there: docker starts without "
    "the flags below, and the shell tries to run those as commands.",
    fix="End every line but the last with a backslash and nothing after it, and move comments "
    "above the command.",
    sources=("POSIX Shell Command Language 2.2.1",),
)
def command_cut_off(fault: FlagFault, host: HostView) -> Iterator[Hit]:
    """A blank behind the backslash, or flags on a line of their own below a run line."""
    if fault.kind == "broken-continuation":
        yield Hit(
            fault.at,
            f"A blank stands behind the backslash: {fault.command} ends here and gets the blank "
            "as a word.",
        )
    elif fault.kind == "cut-off":
        yield Hit(
            fault.at,
            f"{fault.value} begins a new command: the {fault.command} above ended before it.",
        )


@rule(
    "typographic-characters",
    "A long dash or curly quotes in a command",
    Severity.ERROR,
    reads=FlagFault,
    reason="Web pages and word processors turn -- into a dash and straight quotes into curly ones. "
    "docker takes a word with such a dash for the image, and curly quotes for part of the value.",
    fix="Type the dashes and quotes anew: -- and ' or \".",
    sources=(_PFLAG, "docker/cli opts/gpus.go"),
)
def typographic_characters(fault: FlagFault, host: HostView) -> Iterator[Hit]:
    """``--gpus`` with one long dash, and ``device=0`` in curly quotes."""
    if fault.kind == "typographic":
        yield Hit(fault.at, f"{fault.flag} has a character that no keyboard types there.")


@rule(
    "switch-value-apart",
    "The value of a switch is taken for the image",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="A switch takes no word of its own: behind --privileged true docker looks for an image "
    "called true, and the image becomes its command.",
    fix="Write the switch alone, or =true without a space.",
    sources=(_PFLAG,),
)
def switch_value_apart(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """The image is ``true`` or ``false`` and more words follow."""
    if spec.how in _HOW and spec.image and spec.image.value in ("true", "false") and spec.command:
        yield Hit(
            spec.image.at,
            f"The image of this docker {spec.how} is {spec.image.value}, and "
            f"{spec.command[0].value} its command.",
        )


_NO_IMAGE = re.compile(r"\$|\W*(options?|args|flags)\W*$", re.IGNORECASE)


@rule(
    "docker-flag-behind-image",
    "A Docker flag comes after the image",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="docker run stops reading flags at the image: all that follows is given to the program "
    "in the container, and Docker does not see it.",
    fix="Put the flag before the image.",
    sources=("docker/cli cli/command/container/run.go, SetInterspersed(false)", _PFLAG),
)
def docker_flag_behind_image(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Only flags and values that the program in the container can hardly mean."""
    if spec.how not in _HOW or not spec.image or _NO_IMAGE.match(spec.image.value):
        # A variable in the place of the image, or the word for flags, may stand for flags.
        return
    if not spec.command or not spec.command[0].value.startswith("-"):
        # A program of its own: the flags are the program's.
        return
    for place, word in enumerate(spec.command):
        flag, equals, value = word.value.partition("=")
        behind = spec.command[place + 1].value if place + 1 < len(spec.command) else ""
        pattern = _DOCKERS.get(flag)
        if pattern and pattern.match(value if equals else behind):
            seen = f"{flag} stands after the image {spec.image.value}."
            yield Hit(word.at, seen, fix=f"Put {flag} before {spec.image.value}.")
            return


@rule(
    "flag-newer-than-cli",
    "This docker command does not have the flag yet",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="A flag that the docker command does not know ends it with status 125.",
    fix="Upgrade the docker command.",
    sources=(f"{_OPTS} and run.go of v20.10.24 to v29.7.2",),
    needs=(Needs("docker_cli", "<28.1"),),
    unknown=Severity.INFO,
)
def flag_newer_than_cli(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Exact where the version is known; else said only of the newest and of annotations."""
    if spec.how not in _HOW or spec.engine != "docker":
        return
    have = host.version("docker_cli")
    given = {**spec.flags, "annotation": tuple(spec.annotations.values())}
    for flag, since in SINCE.items():
        places = given.get(flag, ())
        if not places:
            continue
        if have is None and flag in ("annotation", "use-api-socket"):
            yield Hit(places[0].at, f"--{flag} needs a docker command of {since} or newer.")
        elif have is not None and parse(have) < parse(since):
            yield Hit(places[0].at, f"--{flag} came with docker {since}; here it is {have}.")


@rule(
    "flag-value",
    "A value that docker cannot read",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="docker reads numbers, sizes and times itself and refuses what is none: 'invalid "
    "argument', and nothing is started.",
    fix="Write a whole number; a size as 512m or 8g; a time as 30s or 1m30s.",
    sources=(_OPTS, "docker/go-units size.go", "Go time.ParseDuration"),
)
def flag_value(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Of run lines; Compose has types of its own."""
    if spec.how not in _HOW or spec.engine != "docker":
        return
    kinds = (
        (_INTEGERS, _INTEGER, "a whole number"),
        (_SIZES, _SIZE, "a size such as 512m or 8g"),
        (_TIMES, _TIME, "a time such as 30s"),
        (["cpus"], _CPUS, "a number of CPUs such as 1.5"),
    )
    for flags, pattern, wanted in kinds:
        for flag in flags:
            for given in spec.all(flag):
                if not _open(given) and not pattern.match(given.value.strip()):
                    seen = f"{given.spelled} {given.value!r} is not {wanted}."
                    yield Hit(given.at, seen, fix=f"Write {wanted}.")


def _open(given: Given) -> bool:
    """Is it a value that only a shell, a template or the reader knows?"""
    return bool(re.search(r"[$`%]|\{\{|<\w|\.\.\.|…|^[xXnN]+[kmgKMG]?$", given.value))
