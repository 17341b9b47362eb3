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

from .. import units
from ..engine.docker_api import DEFAULT_SOCKET, DockerClient, EngineError, EngineUnreachableError
from . import host, plan
from .judge import (
    Check,
    Expectation,
    SliceSight,
    judge_bare,
    judge_device,
    judge_later,
    judge_slice,
    skipped,
)
from .sight import Sight, SightError, command, parse

_LOCK = "/run/lock/steadygpu-probe.lock"
_OURS = {"label": [plan.LABEL + "=1"]}

_AFTER_RELOAD = "systemctl daemon-reload and the start of a third container"
_AFTER_UPDATE = "docker update of the first container"


class ProbeError(Exception):
    """The probe cannot even begin; the message says what is missing and what to do."""


@dataclass(frozen=True)
class Options:
    """What to prove. ``device`` is a CDI name, ``slice_name`` the slice to run in."""

    device: str = "nvidia.com/gpu=0"
    expect_node: str | None = None
    slice_name: str | None = None
    socket: str = DEFAULT_SOCKET
    deadline_s: float = 60.0
    daemon_reload: bool = True
    accept_simulated: bool = False
    keep_image: bool = False


def verify(options: Options) -> list[Check]:
    """Prove the promises on this host. Raises ProbeError before anything was started.

    An engine that fails half-way is a failed check beside those that were made before.
    """
    expected = expectation(options, host.gpu_nodes())
    if not host.has_merged_usr():
        raise ProbeError(
            "/bin and /lib are no links into /usr: the probe runs the host's own shell from a "
            "read-only mount of /usr. Wanted a distribution with a merged /usr"
        )
    client = DockerClient(options.socket, options.deadline_s)
    checks: list[Check] = []
    with _lock():
        try:
            information = client.info()
        except (EngineError, EngineUnreachableError) as error:
            raise ProbeError(str(error)) from error
        run = _Run(client, options, expected, information)
        try:
            run.prepare()
            for step in (run.first_look, run.place, run.reload, run.update):
                checks.extend(step())
        except (EngineError, EngineUnreachableError, SightError, units.UnitError) as error:
            checks.append(_broken(str(error), options))
        finally:
            checks.extend(run.clean_up())
    return checks


def expectation(options: Options, numbers: dict[str, str]) -> Expectation:
    """Which node the device must turn out to be. Raises ProbeError. Pure."""
    if not numbers:
        raise ProbeError(
            "this host has no GPU node (/dev/nvidia0 …): wanted a loaded driver. Look at "
            "lsmod and nvidia-smi; nvidia-modprobe -c 0 makes the nodes"
        )
    node = options.expect_node or plan.node_of(options.device)
    if node is None:
        raise ProbeError(
            f"{options.device}: a name without an index does not tell its device node. "
            "Wanted a name such as nvidia.com/gpu=0, or the node in expect_node"
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
        options: Options,
        expected: Expectation,
        information: dict[str, Any],
    ) -> None:
        self._client = client
        self._options = options
        self._expected = expected
        self._information = information
        self._image = ""
        self._made_image = False
        self._device = self._bare = self._third = ""

    def prepare(self) -> None:
        """Remove leftovers, import the image, create the containers and start two."""
        self._remove_ours()
        self._import_image()
        parent = self._cgroup_parent()
        device = plan.container(self._image, self._options.device, parent)
        bare = plan.container(self._image, None, parent)
        self._device, self._bare, self._third = _together(
            lambda config: self._client.create_container(
                plan.NAME_PREFIX + secrets.token_hex(4), config
            ),
            [device, bare, bare],
        )
        _together(self._client.start, [self._device, self._bare])

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
        wanted = host.limit_texts(shown, os.sysconf("SC_PAGE_SIZE"))
        limits = {file: (host.limit_in_force(group, file), text) for file, text in wanted.items()}
        tasks = host.cgroup_file(group, "pids.current") if group else None
        pid = int(self._client.inspect(self._device)["State"]["Pid"])
        sight = SliceSight(name, group, host.cgroup_of(pid), limits, int(tasks) if tasks else None)
        return judge_slice(sight)

    def reload(self) -> list[Check]:
        """Let systemd rebuild what it knows, as any package update does, and look again."""
        reason = self._why_not_reload()
        if reason:
            title = "both still hold after " + _AFTER_RELOAD
            return [skipped("holds_after_reload", title, reason)]
        units.daemon_reload(self._options.deadline_s)
        self._client.start(self._third)
        return [self._later("holds_after_reload", _AFTER_RELOAD)]

    def update(self) -> list[Check]:
        self._client.update(self._device, plan.UPDATE)
        return [self._later("holds_after_update", _AFTER_UPDATE)]

    def clean_up(self) -> list[Check]:
        """Remove what this run made; a check only when that fails."""
        try:
            self._remove_ours()
            if self._made_image and not self._options.keep_image:
                self._client.remove_image(self._image)
        except (EngineError, EngineUnreachableError) as error:
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
            lambda container: self._client.exec_run(container, argv), [self._device, self._bare]
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
        if not any(self._image in (i.get("RepoTags") or []) for i in self._client.images()):
            self._client.import_image(tar, plan.IMAGE_REPOSITORY, tag)
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
        endangered = self._legacy_containers() + host.other_engines_with_gpus()
        if endangered:
            return (
                "a daemon-reload could take the GPU from {}, which may have got it from the "
                "legacy NVIDIA hook. Move it to CDI, then verify again".format(
                    ", ".join(endangered)
                )
            )
        return None

    def _legacy_containers(self) -> list[str]:
        default = str(self._information.get("DefaultRuntime", ""))
        found = []
        for listed in self._client.containers(include_stopped=False):
            if plan.LABEL in (listed.get("Labels") or {}):
                continue
            name = (listed.get("Names") or ["/" + listed["Id"][:12]])[0].lstrip("/")
            try:
                inspected = self._client.inspect(listed["Id"])
            except EngineError as error:
                if error.status == 404:  # It ended in the meantime.
                    continue
                raise
            if host.uses_legacy_hook(inspected, default):
                found.append("container " + name)
        return found

    def _remove_ours(self) -> None:
        ours = [str(c["Id"]) for c in self._client.containers(filters=_OURS)]
        _together(self._remove, ours)
        end = time.monotonic() + self._options.deadline_s
        while ours and self._client.containers(filters=_OURS):
            if time.monotonic() > end:
                raise EngineUnreachableError("probe containers are still there after their removal")
            time.sleep(0.1)

    def _remove(self, container: str) -> None:
        try:
            self._client.remove(container, force=True)
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
