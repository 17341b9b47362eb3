# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Arguments that several commands have."""

from __future__ import annotations

import argparse


def add_deadline(parser: argparse.ArgumentParser, whom: str = "the GPU driver") -> None:
    """``--deadline SECONDS``: a driver that hangs must not hang the command."""
    parser.add_argument(
        "--deadline",
        type=seconds,
        default=20.0,
        metavar="SECONDS",
        help=f"how long to wait for {whom} (default: 20)",
    )


def seconds(text: str) -> float:
    """A positive, finite number of seconds; for argparse."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r}; wanted is a number of seconds, such as 20")
    return number
