# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The host that this runs on, as a restore needs it: looked at, and brought back step by step."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ...engine.docker_api import DEFAULT_SOCKET
from .. import codec
from ..model import Done, Host, Moment, RollbackError, State, Step
from ..observation import observe, sysctls
from . import actors_api, put_back
from .actors_api import Actor, Context


class LiveHost:
    """``actors_api.RestoreHost`` for a real host.

    ``deadline_s`` bounds each question that :meth:`observe` asks. A ``root`` other than ``/`` is a
    tree of files: nothing but files is read and brought back there.
    """

    def __init__(
        self, root: str = "/", socket: str = DEFAULT_SOCKET, deadline_s: float = 20.0
    ) -> None:
        self._root = root
        self._socket = socket
        self._deadline_s = deadline_s

    @property
    def root(self) -> str:
        """Where the host's tree lies."""
        return self._root

    def observe(self, sink: Any, declared: Sequence[str]) -> State:
        """What it is now. Raises RollbackError when its files cannot be read."""
        return observe.observe(
            sink, declared, self._root, deadline_s=self._deadline_s, socket=self._socket
        )

    def machine(self) -> Host:
        """Which host it is."""
        return observe.host()

    def moment(self) -> Moment:
        """The time, by both clocks."""
        return observe.moment()

    def actors(self) -> Mapping[str, Actor]:
        """Who does the steps, by kind."""
        files: dict[str, Actor] = dict.fromkeys(actors_api.PATH_KINDS, put_path)
        if os.path.abspath(self._root) != "/":
            return files
        # To begin and to confirm nobody acts, and Ansible compiles all imports at each run.
        from . import act_docker, act_mig, act_packages, act_settings, act_slice, act_systemd

        socket = self._socket
        return {
            **files,
            actors_api.DOCKER: lambda step, context: act_docker.act(step, context, socket),
            actors_api.SLICE: act_slice.act,
            actors_api.SETTINGS: act_settings.act,
            actors_api.SYSTEMD_RELOAD: lambda step, context: act_systemd.tell(
                step, context, socket
            ),
            actors_api.UNIT: lambda step, context: act_systemd.unit(step, context, socket),
            actors_api.CONTAINERD: act_systemd.containerd,
            actors_api.BOOT: refresh_boot,
            actors_api.SYSCTL: set_sysctl,
            actors_api.MIG: lambda step, context: act_mig.act(step, context, socket),
            actors_api.PACKAGE_INSTALL: lambda step, context: act_packages.install(
                step, context, socket
            ),
            actors_api.PACKAGE_REMOVE: lambda step, context: act_packages.remove(
                step, context, socket
            ),
            actors_api.HOLD: act_packages.hold,
        }


def put_path(step: Step, context: Context) -> Done:
    """Make a path what the step's entry says. Raises RollbackError."""
    entry = codec.entry_from_json(step.details["entry"])
    return Done(put_back.put_back(step.subject, entry, context.content, context.root))


def set_sysctl(step: Step, context: Context) -> Done:
    """Give a kernel setting its value. Raises RollbackError when the kernel does not take it."""
    try:
        return Done(sysctls.write(step.subject, str(step.details["value"]), context.root))
    except OSError as error:
        raise RollbackError(f"{step.subject}: {error.strerror}") from error


def refresh_boot(_step: Step, context: Context) -> Done:
    """Make grub.cfg and the initramfs anew where the files that are back changed them."""
    from ...boot import generated

    return Done(notes=tuple(generated.refresh(context.root)))
