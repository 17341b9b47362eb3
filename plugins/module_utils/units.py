# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""systemd units, asked and told through systemctl."""

from __future__ import annotations

from collections.abc import Sequence

from .process import CommandMissingError, Completed, find_program, run


class UnitError(Exception):
    """systemctl refused; the message holds what it said and what to look at."""


def systemd_version() -> int | None:
    """The major version of systemd, or None on a host without it."""
    if find_program("systemctl") is None:
        return None
    words = run(["systemctl", "--version"]).stdout.split()
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else None


def show(unit: str, properties: Sequence[str]) -> dict[str, str]:
    """The named properties of a unit as systemd prints them; {} without systemd.

    A unit that does not exist answers too, with ``LoadState=not-found``.
    """
    try:
        done = run(["systemctl", "show", unit, "--property=" + ",".join(properties)])
    except CommandMissingError:
        return {}
    pairs = (line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    return dict(pairs)


def file_states(names: Sequence[str], deadline_s: float = 30.0) -> dict[str, str]:
    """``enabled``, ``disabled`` … of units that exist, by their links; {} when it cannot be told.

    What :func:`show` says of that is as old as systemd's last daemon-reload.
    """
    if not names:
        return {}
    try:
        said = run(["systemctl", "is-enabled", *names], deadline_s).stdout.split()
    except CommandMissingError:
        return {}
    return dict(zip(names, said)) if len(said) == len(names) else {}


def _systemctl(argv: list[str], deadline_s: float) -> Completed:
    done = run(["systemctl", *argv], deadline_s=deadline_s)
    if not done.ok:
        raise UnitError(
            "systemctl {} failed: {}. See: journalctl -b -u {}".format(
                " ".join(argv), done.said, argv[-1]
            )
        )
    return done


def daemon_reload(deadline_s: float = 60.0) -> None:
    """Make systemd read changed unit files. Raises UnitError."""
    _systemctl(["daemon-reload"], deadline_s)


def act(verb: str, unit: str, deadline_s: float = 120.0) -> None:
    """``systemctl VERB UNIT`` (start, stop, restart, reload, enable …). Raises UnitError."""
    _systemctl([verb, unit], deadline_s)


def last_log_lines(unit: str, count: int = 5) -> str:
    """The last lines the unit wrote to the journal, for an error message."""
    try:
        done = run(["journalctl", "-b", "-u", unit, "-n", str(count), "-o", "cat", "--no-pager"])
    except CommandMissingError:
        return ""
    return done.stdout.strip()
