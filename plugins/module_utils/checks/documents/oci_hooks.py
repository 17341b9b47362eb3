# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""OCI hooks as somebody writes them down, for rules. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ..model import Given, Position


@dataclass(frozen=True)
class OciHook:
    """One hook: ``stage`` as written (``prestart``, ``createRuntime``, …), its program, the
    arguments (the first is the program's name) and its own environment as ``NAME=value``.
    """

    at: Position
    stage: Given
    path: Given | None = None
    args: tuple[Given, ...] = ()
    env: tuple[Given, ...] = ()


@dataclass(frozen=True)
class OciHooks:
    """The hooks of one file: a runtime's ``config.json``, or a file of a hooks directory."""

    at: Position
    hooks: tuple[OciHook, ...]
