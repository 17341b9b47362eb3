# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Output and logs: ``read_dump`` finds what is known in a pasted text. Pure."""

from __future__ import annotations

from typing import Any

from ..documents.dumps import LogText
from ..model import Position, Problem, Reading
from .dump_log import read_driver_log
from .dump_tools import read_lspci, read_packages, read_smi_xml, read_topology


def read_dump(text: str, file: str) -> Reading:
    """The documents in the output of dmesg, lspci, nvidia-smi, apt, or a log of anything.

    A ticket may hold several of them one after the other: all are looked for. An XML that is not
    whole is a problem; a text in which nothing is known is no fault.
    """
    documents: list[Any] = []
    problems: list[Problem] = []
    log = read_driver_log(text, file)
    if log:
        documents.append(log)
    listing = read_lspci(text, file)
    if listing:
        documents.append(listing)
    gpus, problem = read_smi_xml(text, file)
    documents.extend(gpus)
    if problem:
        problems.append(problem)
    table = read_topology(text, file)
    if table:
        documents.append(table)
    documents.extend(read_packages(text, file))
    documents.append(LogText(Position(file, 1, 1), text))
    return Reading(tuple(documents), tuple(problems))
