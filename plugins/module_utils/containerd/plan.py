# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide how containerd's configuration is to change; nothing here changes anything.

A plan is also all that check mode needs. :mod:`.containerd_apply` carries it out.
"""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass, field, replace
from typing import Any, Callable

from ..process import find_program
from ..secrets import by_key
from ..trees.leaves import Path
from ..trees.toml_edit import TomlTextError, raw
from .aim import Aim, Aiming, FileChange
from .dump import Dump, compare
from .judge import judge
from .names import (
    NRI,
    Asked,
    SettingsError,
    is_cri,
    named,
    nested,
    settings,
    show_path,
    to_v3,
)
from .record import RECORD_PATH, Record, RecordError, digest, load_record
from .refusals import ContainerdRefusedError, refuse_keepers
from .restart import reasons_against
from .shims import pods_with
from .tool import UNIT, ContainerdState, DumpError, Tool, text_of
from .trial import FilesError, read_files

_NRI_SOCKET = "/var/run/nri/nri.sock"
_COLD = "containerd reads its configuration at its start only"


@dataclass(frozen=True)
class Wish:
    """What the user asks. ``restart`` is ``when_safe``, ``never`` or ``always``.

    ``path`` None is the file that containerd's unit names.
    """

    asked: Asked = field(default_factory=Asked)
    present: bool = True
    takeover: bool = False
    restart: str = "when_safe"
    path: str | None = None


@dataclass(frozen=True)
class Plan:
    """What will be done; ``how``: ``none``, ``restart``, ``not_running``, ``not_installed``.

    ``expected`` is what containerd's dump has to say once the files are there. ``pending`` says why
    a needed restart is left to somebody else. ``forced`` restarts although it may cost somebody.
    ``watch`` are plugins that must be well after it, ``nri_socket`` must be there then. ``secrets``
    must not be shown.
    """

    path: str
    state: ContainerdState
    present: bool = True
    files: tuple[FileChange, ...] = ()
    record_before: Record = field(default_factory=Record)
    record: Record = field(default_factory=Record)
    expected: Dump | None = None
    how: str = "none"
    actions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    pending: str | None = None
    forced: bool = False
    watch: tuple[str, ...] = ()
    nri_socket: str | None = None
    secrets: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Does a file change, or the daemon learn something?"""
        return bool(self.files) or self.how in ("restart", "not_installed")

    @property
    def drop_in(self) -> str | None:
        """Where what is ours stands afterwards."""
        return self.record.drop_in


def make_plan(
    wish: Wish,
    tool: Tool,
    record_path: str = RECORD_PATH,
    is_program: Callable[[str], bool] = lambda path: find_program(path) is not None,
) -> Plan:
    """Decide. Raises ContainerdRefusedError for a file, a setting or a restart that cannot be."""
    try:
        asked = settings(wish.asked, wish.present)
        record = load_record(text_of(record_path))
    except SettingsError as error:
        raise ContainerdRefusedError(f"nothing was changed: {error}") from error
    except RecordError as error:
        raise ContainerdRefusedError(
            f"{record_path}, which remembers what of containerd's configuration is ours, is "
            f"damaged: {error}. Nothing was changed; move it away to start without a memory"
        ) from error
    if (wish.present and not asked) or (not wish.present and record == Record()):
        path = wish.path or tool.config_path()
        unasked = ContainerdState("not asked")
        return Plan(path, unasked, wish.present, (), record, record, warnings=_of_the_host(path))
    state = tool.state()
    path = wish.path or state.config_path
    refuse_keepers(state, path)
    if state.status == "absent":
        told = "write containerd's drop-in, once containerd is installed"
        return Plan(path, state, wish.present, how="not_installed", actions=(told,))
    secrets = by_key.secrets_of(dict(wish.asked.config), nested(record.wanted))
    aiming = Aiming(wish.present, wish.takeover, tool, state, path, record, is_program)
    try:
        aim = aiming.aim(asked)
    except (FilesError, TomlTextError) as error:
        raise ContainerdRefusedError(
            f"containerd's configuration cannot be read: {by_key.clean(str(error), secrets)}. It "
            "was left as it is; repair it, and see what containerd has against it: containerd "
            f"--config {path} config dump"
        ) from error
    except DumpError as error:
        said = by_key.clean(str(error), secrets)
        raise ContainerdRefusedError(
            f"nothing was changed, because containerd refuses the configuration to be: {said}"
        ) from error
    plan = Plan(
        path=path,
        state=state,
        present=wish.present,
        files=aim.changes,
        record_before=record,
        record=_record(aim, record, path),
        expected=aim.after,
        actions=_told(aim, record, path),
        warnings=(*judge(aim.files), *_beside(state)),
        secrets=(*secrets, *by_key.secrets_of(*aim.files.texts.values())),
    )
    return decide(plan, aim, wish.restart)


def _of_the_host(path: str) -> tuple[str, ...]:
    """What is worth a warning where nothing is asked for; a broken file is not ours then."""
    try:
        return tuple(judge(read_files(path)))
    except (FilesError, TomlTextError, OSError):
        return ()


def _beside(state: ContainerdState) -> list[str]:
    if state.keeper is None:
        return []
    return [
        f"{state.keeper} runs here too, with a containerd of its own, which reads nothing of what "
        f"{UNIT} is configured with"
    ]


# -- what is remembered and told -------------------------------------------------------------


def _record(aim: Aim, before: Record, path: str) -> Record:
    if aim.drop_in is None:
        return Record()
    record = replace(
        before,
        wanted=aim.wanted,
        drop_in=aim.place.drop_in,
        digest=digest(aim.drop_in),
        pending=False,
    )
    added = aim.place.add_import
    if added is None or not any(change.path == path for change in aim.changes):
        return record
    text = aim.files.root_text
    return replace(
        record,
        added_import=added,
        former_imports=None if text is None else raw(text, ("imports",)),
        made_root=text is None,
    )


def _told(aim: Aim, record: Record, path: str) -> tuple[str, ...]:
    words = []
    for key, value in aim.wanted.items():
        seen, shown = aim.now.value(key), by_key.show(key, value)
        if aim.now.has(key, value):
            continue
        if seen is None:
            words.append(f"set {show_path(key)} = {shown}")
        else:
            former = by_key.show(key, seen)
            words.append(f"changed {show_path(key)} from {former} to {shown}")
    words.extend(f"{show_path(key)} taken back" for key in record.wanted if key not in aim.wanted)
    for change in aim.changes:
        if change.kept_as:
            words.append(f"kept what somebody wrote into {change.path} as {change.kept_as}")
        if change.path == path:
            words.append(_told_root(change, aim.place.add_import))
        else:
            words.append(f"{'removed' if change.after is None else 'wrote'} {change.path}")
    return tuple(words)


def _told_root(change: FileChange, added: str | None) -> str:
    if change.after is None:
        return f"removed {change.path}, which was made for our drop-in"
    if change.before is None:
        return f"made {change.path}, which imports {added}"
    if added and added in change.after:
        return f"added the import {added} to {change.path}"
    return f"took our import back from {change.path}"


# -- the restart -----------------------------------------------------------------------------


def decide(plan: Plan, aim: Aim, restart: str) -> Plan:
    """How the daemon gets to know, and whether that may be done.

    Raises ContainerdRefusedError for a restart that is not safe.
    """
    differing = _differing(aim.now, aim.after)
    unread = plan.record_before.pending and not started_after(plan)
    if not differing and not unread:
        return plan
    if plan.state.status != "running":
        return replace(plan, how="not_running")
    if restart == "never":
        return replace(plan, pending=f"{_COLD}, and restart is never")
    reasons = reasons_against(plan.state, differing) + _moved(aim, plan.state, differing)
    reasons += _gone_in_use(aim)
    if reasons and restart != "always":
        raise ContainerdRefusedError(
            f"nothing was changed: {_COLD}, and {'; '.join(reasons)}. Or say restart: always; "
            "restart: never writes the files and leaves the restart to you"
        )
    return replace(
        plan,
        how="restart",
        actions=(*plan.actions, "restart containerd"),
        warnings=(*plan.warnings, *_unread_so_far(aim, plan.state)),
        forced=bool(reasons),
        watch=_watch(differing),
        nri_socket=_nri_socket(differing, aim.after),
    )


def _unread_so_far(aim: Aim, state: ContainerdState) -> list[str]:
    """What others changed since the start, and what a restart now makes count as well."""
    started = state.started_at
    late = [
        path for path in aim.files.texts if started is not None and os.stat(path).st_mtime > started
    ]
    if not late:
        return []
    return [
        f"{', '.join(late)}: changed by somebody after containerd was started; with the restart "
        "that counts as well"
    ]


def started_after(plan: Plan) -> bool:
    """Was the daemon started since the files came to be as they are?"""
    drop_in = plan.record_before.drop_in or plan.path
    paths = {plan.path, drop_in, posixpath.dirname(drop_in)}
    times = [os.stat(path).st_mtime for path in paths if os.path.exists(path)]
    started = plan.state.started_at
    return started is not None and all(started > one for one in times)


def _differing(now: Dump, after: Dump) -> list[Path]:
    """The settings that change, in the names of version 3."""
    difference = compare(now, after, ())
    return [to_v3(path) for path in (*difference.lost, *difference.new)]


def _moved(aim: Aim, state: ContainerdState, differing: list[Path]) -> list[str]:
    """Where others made the files name another place than the running daemon has.

    A place that we change ourselves is judged as that.
    """
    names = [shim.name for shim in state.shims]
    reasons = []
    for key, live in (("root", state.live_root), ("state", state.live_state)):
        told = aim.after.value((key,))
        if not names or live is None or not told or (key,) in differing:
            continue
        if os.path.realpath(str(told)) != os.path.realpath(live):
            listed = ", ".join(names[:10])
            reasons.append(
                f"{key} is {told} in the files and {live} in the running containerd: somebody "
                "changed it since the start, and after a restart containerd would not find "
                f"{len(names)} running container(s) again: {listed}. Put it back, or let them end"
            )
    return reasons


def _gone_in_use(aim: Aim) -> list[str]:
    """Runtimes that would go while somebody needs them to start again."""
    reasons = []
    stay = _runtimes(aim.after)
    for name, program in _runtimes(aim.now).items():
        pods = pods_with(program) if name not in stay and program else []
        if pods:
            reasons.append(
                f"the runtime {name} would go, while {len(pods)} container(s) of Kubernetes run "
                f"that were started with {program}: {', '.join(pods[:10])}. Drain them first"
            )
    return reasons


def _runtimes(dump: Dump) -> dict[str, str]:
    """The runtimes for Kubernetes with their programs, "" for the default one."""
    runtimes = ("plugins", "io.containerd.cri.v1.runtime", "containerd", "runtimes")
    table = named(runtimes, dump.version)
    found: dict[str, str] = {}
    for path, value in dump.leaves.items():
        if path[: len(table)] == table and len(path) > len(table):
            name = path[len(table)]
            found.setdefault(name, "")
            if path[-1] == "BinaryName":
                found[name] = str(value)
    return found


def _watch(paths: list[Path]) -> tuple[str, ...]:
    """The plugins whose settings change; those for Kubernetes need each other."""
    found = [path[1] for path in paths if path[0] == "plugins" and len(path) > 1]
    if any(is_cri(path) for path in paths):
        found.append("io.containerd.grpc.v1.cri")
    return tuple(dict.fromkeys(found))


def _nri_socket(paths: list[Path], after: Dump) -> str | None:
    """The socket that has to be there where NRI comes on."""
    switch: Any = ("plugins", NRI, "disable")
    if switch not in paths or after.value(switch) is not False:
        return None
    return str(after.value(("plugins", NRI, "socket_path")) or _NRI_SOCKET)
