# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keep a host's topology file and its CDI spec right: find, decide, write.

Two files make a pair: the topology, and the spec that hands it to containers. The topology is
written first and the spec removed first, each atomically, so a kill at any place leaves either
nothing injected or a complete pair. Containers that run keep the file they were started with.

The unit that guards the pair at boot is written last and removed first: alone it has nothing to do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .. import boot_unit, vouched
from ..atomic import read_text
from ..topology.model import TopologyError
from . import boot, carrier, fingerprint, generate, judge, syntax
from .fingerprint import Stamp
from .host import Host


@dataclass(frozen=True)
class Wanted:
    """``content`` is a topology file's text, None to make one from the host's own tree.
    ``fingerprint`` pins the tree that the content is for. ``root`` is where the boot unit goes.
    """

    content: str | None = None
    fingerprint: str | None = None
    takeover: bool = False
    file_path: str = carrier.FILE_PATH
    spec_path: str = carrier.SPEC_PATH
    root: str = "/"

    @property
    def unit(self) -> boot_unit.BootUnit:
        """What checks this pair at boot."""
        return boot.unit(self.file_path, self.spec_path)


@dataclass(frozen=True)
class Found:
    """What is on the host. ``status`` is ``absent``, ``fresh``, ``stale`` or ``foreign``;
    ``spec`` as carrier.state says; ``now`` is the stamp the file would get on this host.
    """

    status: str
    spec: str
    now: Stamp
    text: str | None = None
    spec_text: str | None = None
    stamp: Stamp | None = None
    body: str | None = None

    @property
    def injected(self) -> bool:
        """Do containers that ask for it get the file?"""
        return self.spec == "injected"


@dataclass(frozen=True)
class Plan:
    """The pair before and after. ``failure`` is why the wanted state cannot be; ``after`` and
    ``spec_after`` are then what must be all the same. None is "no such file". ``unit_actions``
    are those of the boot unit, which goes where ``after`` goes; they are among ``actions`` too.
    """

    wanted: Wanted
    found: Found
    after: str | None
    spec_after: str | None
    actions: tuple[str, ...]
    fingerprint: str
    warnings: tuple[str, ...] = ()
    failure: str | None = None
    to_measure: bool = False
    unit_actions: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Would a file be written or removed?"""
        pair = (self.after, self.spec_after) != (self.found.text, self.found.spec_text)
        return pair or bool(self.unit_actions)


def look(host: Host, wanted: Wanted) -> Found:
    """Read the pair and hold it against the host. Raises OSError."""
    text, spec_text = read_text(wanted.file_path), read_text(wanted.spec_path)
    stamp, body = fingerprint.split(text) if text is not None else (None, None)
    spec = carrier.state(spec_text)
    now = fingerprint.of_host(host, stamp.nics if stamp else [one.address for one in host.nics])
    if spec == "foreign" or (text is not None and stamp is None):
        status = "foreign"
    elif text is None:
        # A spec whose file is gone keeps containers from starting.
        status = "stale" if spec == "injected" else "absent"
    else:
        status = "fresh" if stamp == now else "stale"
    return Found(status, spec, now, text, spec_text, stamp, body)


def plan_present(host: Host, wanted: Wanted) -> Plan:
    """Decide what the pair must become on this host. Raises OSError."""
    found = look(host, wanted)
    if found.status == "foreign" and not wanted.takeover:
        return _untouched(wanted, found, _foreign(wanted, found))
    try:
        body, stamp, warnings = _candidate(host, wanted, found)
        unit_actions = tuple(boot_unit.install(wanted.unit, check_mode=True, root=wanted.root))
    except (TopologyError, boot_unit.ForeignUnitError) as error:
        return _refusal(wanted, found, str(error))
    after, spec_after = fingerprint.stamped(stamp, body), carrier.spec(wanted.file_path)
    actions = []
    if after != found.text:
        verb = "create" if found.text is None else "replace"
        actions.append(f"{verb} {wanted.file_path} for {_counted(stamp)}")
    if spec_after != found.spec_text:
        verb = "create" if found.spec_text is None else "replace"
        name = f"{carrier.KIND}={carrier.DEVICE}"
        actions.append(f"{verb} {wanted.spec_path}: containers that ask for {name} get the file")
    return Plan(
        wanted,
        found,
        after,
        spec_after,
        (*actions, *unit_actions),
        stamp.fingerprint,
        warnings=(*warnings, *boot.warnings(wanted.root)),
        to_measure=after != found.text or not found.injected,
        unit_actions=unit_actions,
    )


def plan_absent(host: Host, wanted: Wanted) -> Plan:
    """The pair and its unit are to go. Raises OSError."""
    found = look(host, wanted)
    if found.status == "foreign" and not wanted.takeover:
        return _untouched(wanted, found, _foreign(wanted, found))
    unit_actions = tuple(boot_unit.remove(wanted.unit, check_mode=True, root=wanted.root))
    actions = [
        f"remove {path}"
        for path, text in ((wanted.spec_path, found.spec_text), (wanted.file_path, found.text))
        if text is not None
    ]
    return Plan(
        wanted,
        found,
        None,
        None,
        (*unit_actions, *actions),
        found.now.fingerprint,
        unit_actions=unit_actions,
    )


def refused(plan: Plan, reason: str) -> Plan:
    """What is left of a plan whose file must not be used after all."""
    return replace(_refusal(plan.wanted, plan.found, reason), warnings=plan.warnings)


def carry_out(plan: Plan) -> None:
    """Write or remove what differs, in the order that keeps the pair whole. Raises OSError."""
    wanted, found = plan.wanted, plan.found
    if plan.unit_actions and plan.after is None:
        boot_unit.remove(wanted.unit, check_mode=False, root=wanted.root)
    if plan.spec_after is None and found.spec_text is not None:
        vouched.remove(wanted.spec_path, wanted.root)
    if plan.after is None and found.text is not None:
        vouched.remove(wanted.file_path, wanted.root)
    if plan.after is not None and plan.after != found.text:
        vouched.write(wanted.file_path, plan.after, root=wanted.root)
    if plan.spec_after is not None and plan.spec_after != found.spec_text:
        vouched.write(wanted.spec_path, plan.spec_after, root=wanted.root)
    if plan.unit_actions and plan.after is not None:
        boot_unit.install(wanted.unit, check_mode=False, root=wanted.root)


def withdraw_stale(host: Host, wanted: Wanted) -> Plan:
    """For the boot of a host: keep what is fresh, withdraw what is stale. Raises OSError."""
    found = look(host, wanted)
    return _refusal(wanted, found, _stale(wanted, found))


def _candidate(host: Host, wanted: Wanted, found: Found) -> tuple[str, Stamp, tuple[str, ...]]:
    """The topology, its stamp and what to warn of. Raises TopologyError."""
    given = wanted.content if wanted.content is not None else generate.generate(host)
    # As it will be read back: one kind of line end, and one at the end.
    given = given.replace("\r\n", "\n").replace("\r", "\n")
    made_for, body = fingerprint.split(given if given.endswith("\n") else given + "\n")
    verdict = judge.judge(syntax.read(body), host)
    if verdict.errors:
        raise TopologyError("the topology does not fit this host: " + "; ".join(verdict.errors))
    stamp = fingerprint.of_host(host, verdict.nics)
    if wanted.fingerprint is not None and wanted.fingerprint != stamp.fingerprint:
        raise TopologyError(
            f"the topology was made for fingerprint {wanted.fingerprint}, this host is "
            f"{stamp.fingerprint}: give the file of this host, or leave fingerprint out"
        )
    if made_for is None and wanted.content is not None and found.body == body:
        made_for = found.stamp
    if made_for not in (None, stamp) and wanted.fingerprint is None:
        raise TopologyError(_made_for(made_for, stamp))
    return body, stamp, verdict.warnings


def _made_for(old: Stamp | None, new: Stamp) -> str:
    old = old or Stamp(())
    return (
        f"the topology was made for fingerprint {old.fingerprint}, this host is "
        f"{new.fingerprint}: {fingerprint.difference(old, new)}. Give a file of the new tree; if "
        f"this one is still right, say so with fingerprint: {new.fingerprint}"
    )


def _stale(wanted: Wanted, found: Found) -> str:
    if found.status != "stale":
        return ""
    if found.stamp is None:
        return f"{wanted.file_path} is gone"
    return f"{wanted.file_path}: {_made_for(found.stamp, found.now)}"


def _foreign(wanted: Wanted, found: Found) -> str:
    path = wanted.spec_path if found.spec == "foreign" else wanted.file_path
    return (
        f"{path} is not of this module (no stamp of its own, or edited by hand) and was left "
        "alone; move it away, or set takeover"
    )


def _refusal(wanted: Wanted, found: Found, reason: str) -> Plan:
    """Nothing new is written, and what is stale does not stay injected."""
    plan = _untouched(wanted, found, reason)
    if not (found.status == "stale" and found.injected):
        return plan
    why = "it is gone" if found.text is None else "it is for another tree"
    action = (
        f"withdraw {wanted.file_path} from {wanted.spec_path}: {why}; containers that ask for it "
        "start without"
    )
    return replace(plan, spec_after=carrier.withdrawn_spec(), actions=(action,))


def _untouched(wanted: Wanted, found: Found, failure: str) -> Plan:
    return Plan(
        wanted,
        found,
        found.text,
        found.spec_text,
        (),
        found.now.fingerprint,
        failure=failure or None,
    )


def _counted(stamp: Stamp) -> str:
    nics = len(stamp.nics)
    return f"{len(stamp.lines) - nics} GPUs and {nics} NICs"
