# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Start the probe containers, look through them, disturb the host a little, look again.

Only containers with the probe's label are ever touched, all of them are gone at the end,
and nothing is done that could cost a container of somebody else its GPU.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Callable

from .. import cgroups, units
from ..engine.docker_api import DEFAULT_SOCKET, DockerClient, EngineError, EngineUnreachableError
from . import host, plan
from .budget import Budget, DeadlinePassedError
from .judge import (
    Check,
    Expectation,
    SliceSight,
    judge_bare,
    judge_device,
    judge_later,
    judge_slice,
    skipped,
    summary,
)
from .legacy import cgroups_with_gpus, legacy_gpu_containers
from .limits import limits_of_unit
from .sight import Sight, SightError, command, parse

_LOCK = "/run/lock/steadygpu-probe.lock"
_OURS = {"label": [plan.LABEL + "=1"]}

# What the removal of the containers may take when the proof has used up its own time.
_CLEAN_UP_S = 30.0

_AFTER_RELOAD = "systemctl daemon-reload and the start of a third container"
_AFTER_UPDATE = "docker update of the first container"


class ProbeError(Exception):
    """The probe cannot even begin; the message says what is missing and what to do."""


@dataclass(frozen=True)
class Options:
    """What to prove. ``device`` is a CDI name, ``slice_name`` the slice to run in.

    ``deadline_s`` bounds the whole proof, cleaning up left out.
    """

    device: str = "nvidia.com/gpu=0"
    expect_node: str | None = None
    slice_name: str | None = None
    socket: str = DEFAULT_SOCKET
    deadline_s: float = 120.0
    daemon_reload: bool = True
    accept_simulated: bool = False
    keep_image: bool = False


def verify(options: Options) -> list[Check]:
    """Prove the promises on this host. Raises ProbeError before anything was started.

    An engine that fails half-way, or is too late, is a failed check beside those that were
    made before.
    """
    expected = expectation(options, host.gpu_nodes(), host.node_of(options.device))
    if not host.has_merged_usr():
        raise ProbeError(
            "/bin and /lib are no links into /usr: the probe runs the host's own shell from a "
            "read-only mount of /usr. Wanted a distribution with a merged /usr"
        )
    budget = Budget(options.deadline_s)
    client = DockerClient(options.socket, options.deadline_s)
    checks: list[Check] = []
    with _lock():
        try:
            information = client.info()
        except (EngineError, EngineUnreachableError) as error:
            raise ProbeError(str(error)) from error
        run = _Run(client, budget, options, expected, information)
        try:
            run.prepare()
            for step in (run.first_look, run.place, run.reload, run.update):
                checks.extend(step())
        except (
            DeadlinePassedError,
            EngineError,
            EngineUnreachableError,
            SightError,
            units.UnitError,
        ) as error:
            said = str(error)
            checks.append(_late(said, options, checks) if budget.spent else _broken(said, options))
        finally:
            budget.at_least(_CLEAN_UP_S)
            checks.extend(run.clean_up())
    return checks


def expectation(options: Options, numbers: dict[str, str], derived: str | None) -> Expectation:
    """Which node the device must turn out to be. Raises ProbeError. Pure.

    ``numbers`` are the host's GPU nodes with their ``MAJOR:MINOR``; ``derived`` is what the
    driver says of the name, for when the user says nothing.
    """
    if not numbers:
        raise ProbeError(
            "this host has no GPU node (/dev/nvidia0 …): wanted a loaded driver. Look at "
            "lsmod and nvidia-smi; nvidia-modprobe -c 0 makes the nodes"
        )
    node = options.expect_node or derived
    if node is None:
        raise ProbeError(
            f"{options.device}: nothing in /proc/driver/nvidia/gpus tells its device node. Wanted "
            "the index or the UUID of a GPU of this host, such as nvidia.com/gpu=0, or the node "
            "in expect_node"
        )
    if node not in numbers:
        raise ProbeError(
            "{} should be {}, but this host has only {}".format(
                options.device, node, ", ".join(numbers)
            )
        )
    return Expectation(node, numbers, options.accept_simulated)


@contextlib.contextmanager
def _lock() -> Iterator[None]:
    """One probe at a time: the next one takes what it finds for leftovers and removes it."""
    descriptor = os.open(_LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ProbeError(
                "another GPU verification runs on this host: wait until it has ended"
            ) from None
        yield
    finally:
        os.close(descriptor)


class _Run:
    """One verification: its containers, and the steps that each end in checks."""

    def __init__(
        self,
        client: DockerClient,
        budget: Budget,
        options: Options,
        expected: Expectation,
        information: dict[str, Any],
    ) -> None:
        self._client = client
        self._budget = budget
        self._options = options
        self._expected = expected
        self._information = information
        self._image = ""
        self._made_image = False
        self._device = self._bare = self._third = ""

    @property
    def _engine(self) -> DockerClient:
        """The client, given what is left of the time. Raises DeadlinePassedError."""
        self._client.deadline_s = self._budget.left()
        return self._client

    def prepare(self) -> None:
        """Remove leftovers, import the image, create the containers and start two."""
        self._remove_ours()
        self._import_image()
        parent = self._cgroup_parent()
        device = plan.container(self._image, self._options.device, parent)
        bare = plan.container(self._image, None, parent)
        self._device, self._bare, self._third = _together(
            lambda config: self._engine.create_container(
                plan.NAME_PREFIX + secrets.token_hex(4), config
            ),
            [device, bare, bare],
        )
        _together(self._engine.start, [self._device, self._bare])

    def first_look(self) -> list[Check]:
        device, bare = self._look()
        return judge_device(device, self._expected) + judge_bare(bare, self._expected)

    def place(self) -> list[Check]:
        """Where the containers run, read on the host."""
        name = self._options.slice_name
        if name is None:
            return []
        shown = units.show(name, ("ControlGroup", "MemoryMax", "TasksMax", "CPUQuotaPerSecUSec"))
        group = shown.get("ControlGroup", "")
        pid = int(self._engine.inspect(self._device)["State"]["Pid"])
        return judge_slice(
            SliceSight(
                name=name,
                wanted=group,
                path=host.limits_on_path(cgroups.of_process(pid) or ""),
                limits=limits_of_unit(shown, os.sysconf("SC_PAGE_SIZE")),
                tasks=host.tasks_in(group) if group else None,
            )
        )

    def reload(self) -> list[Check]:
        """Let systemd rebuild what it knows, as any package update does, and look again."""
        reason = self._why_not_reload()
        if reason:
            title = "both still hold after " + _AFTER_RELOAD
            return [skipped("holds_after_reload", title, reason)]
        units.daemon_reload(self._budget.left())
        self._engine.start(self._third)
        return [self._later("holds_after_reload", _AFTER_RELOAD)]

    def update(self) -> list[Check]:
        self._engine.update(self._device, plan.UPDATE)
        return [self._later("holds_after_update", _AFTER_UPDATE)]

    def clean_up(self) -> list[Check]:
        """Remove what this run made; a check only when that fails."""
        try:
            self._remove_ours()
            if self._made_image and not self._options.keep_image:
                self._engine.remove_image(self._image)
        except (EngineError, EngineUnreachableError, DeadlinePassedError) as error:
            return [
                Check(
                    "cleaned_up",
                    "the probe leaves nothing behind",
                    False,
                    str(error),
                    f"no container with the label {plan.LABEL} and no image {self._image}",
                    "remove them by hand: "
                    f"docker rm -f $(docker ps -aq --filter label={plan.LABEL})",
                )
            ]
        return []

    # -- parts --------------------------------------------------------------------------

    def _look(self) -> tuple[Sight, Sight]:
        argv = command(list(self._expected.numbers.values()))
        answers = _together(
            lambda container: self._engine.exec_run(container, argv), [self._device, self._bare]
        )
        device, bare = (parse(a.exit_code, a.stdout, a.stderr) for a in answers)
        return device, bare

    def _later(self, check_id: str, after: str) -> Check:
        device, bare = self._look()
        return judge_later(check_id, after, device, bare, self._expected)

    def _import_image(self) -> None:
        tar = plan.image_tar()
        tag = plan.image_tag(tar)
        self._image = f"{plan.IMAGE_REPOSITORY}:{tag}"
        # Importing again would leave the old image behind without a name.
        if not any(self._image in (i.get("RepoTags") or []) for i in self._engine.images()):
            self._engine.import_image(tar, plan.IMAGE_REPOSITORY, tag)
        self._made_image = True

    def _cgroup_parent(self) -> str | None:
        name = self._options.slice_name
        if name is None or self._information.get("CgroupDriver") == "systemd":
            return name
        # The cgroupfs driver takes a path and would read a slice's name as a directory.
        return units.show(name, ("ControlGroup",)).get("ControlGroup") or None

    def _why_not_reload(self) -> str | None:
        if not self._options.daemon_reload:
            return "daemon_reload is false"
        if not _has_systemd():
            return "systemd is not running on this host"
        default_runtime = str(self._information.get("DefaultRuntime", ""))
        endangered = legacy_gpu_containers(self._engine, default_runtime, plan.LABEL)
        endangered += cgroups_with_gpus()
        if endangered:
            return (
                "a daemon-reload could take the GPU from {}, which may have got it from the "
                "legacy NVIDIA hook. Move it to CDI, then verify again".format(
                    ", ".join(endangered)
                )
            )
        return None

    def _remove_ours(self) -> None:
        ours = [str(c["Id"]) for c in self._engine.containers(filters=_OURS)]
        _together(self._remove, ours)
        # The engine may still be removing what it was asked to; the budget ends the waiting.
        while ours and self._engine.containers(filters=_OURS):
            time.sleep(0.1)

    def _remove(self, container: str) -> None:
        try:
            self._engine.remove(container, force=True)
        except EngineError as error:
            # Gone already (404), or the engine is at it by itself (409).
            if error.status not in (404, 409):
                raise


def _has_systemd() -> bool:
    return os.path.isdir("/run/systemd/system")


def _together(call: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """``call`` each item at the same time; the results in order, or the first error."""
    if not items:
        return []
    with ThreadPoolExecutor(max_workers=len(items)) as pool:
        return list(pool.map(call, items))


def _broken(said: str, options: Options) -> Check:
    """The engine refused or broke in the middle: what it said, and what usually helps."""
    hint = "look at: journalctl -b -u docker"
    if "unresolvable CDI devices" in said:
        hint = (
            f"no CDI spec of this host names {options.device}: generate one (nvidia-ctk cdi "
            "generate) and compare with nvidia-ctk cdi list"
        )
    elif 'could not select device driver "cdi"' in said:
        hint = 'switch CDI on ("features": {"cdi": true} in daemon.json) and restart the engine'
    elif "cgroup-parent" in said:
        hint = "with the systemd cgroup driver the slice's name must end in .slice"
    return Check(
        "probe_containers",
        f"probe containers start with {options.device} and answer",
        False,
        said,
        "containers that run",
        hint,
    )


def _late(said: str, options: Options, proved: Sequence[Check]) -> Check:
    """The time was over: what was going on, and how far the proof had come."""
    return Check(
        "in_time",
        f"the proof ends within {options.deadline_s:g} s",
        False,
        f"stopped after {summary(proved) or 'no check'}: {said}",
        "all checks made",
        "look at journalctl -b -u docker, or allow a slow host more in deadline_s",
    )
