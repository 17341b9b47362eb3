#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: checkpoint
short_description: Save what a host is, begin and confirm a change, and go back
version_added: "0.1.0"
description:
  - Saves a checkpoint of all that this collection manages. Files with mode, owner, extended
    attributes and absence; systemd units and drop-ins; the configuration of Docker, containerd and
    the NVIDIA Container Toolkit; CDI specifications; slices; sysctls; MIG layouts; package versions
    and holds; the kernel command line. What else tells whether a GPU host is well is saved for
    comparison, such as device nodes and the driver's own words.
  - Encloses a change. V(begin) saves the host and opens a window before the first change.
    V(confirm) closes it when all is well. V(restore) brings back what was there and closes it.
  - A restore is written down before it starts. One that is killed, or that loses power, goes on at
    the next V(begin), V(confirm) or V(restore), or with C(steadygpu checkpoint resume).
  - Never ends a running container. What could not be put back without that is returned as RV(left),
    and doing the restore again later brings it back.
  - Files that others write too come back only where this collection has changed them since. Where
    somebody else has changed a file of ours, that version is kept beside it with the suffix
    C(.steadygpu-conflict).
  - Checkpoints lie in C(/var/lib/steadygpu/rollback), readable by root only. Secrets are never
    shown.
options:
  state:
    description:
      - V(present) takes a checkpoint, and sets O(labels). Where the newest one is of the very same
        state, that one counts, and keeps its O(who) and O(why).
      - V(begin) takes a checkpoint and opens a window. Where this run has opened one already, it
        joins that. The one of another run is refused until it has expired.
      - V(confirm) closes the window of this run, takes a checkpoint of what the host is now, and
        labels it C(stable). If that differs from the state at V(begin), the latter is labelled
        C(before-change). Without a window there is nothing to confirm, which is no error.
      - V(restore) goes back to O(checkpoint).
      - V(absent) removes O(labels), and the checkpoint whose whole id O(checkpoint) is. One that
        has another label, or that an open window or an unfinished restore needs, is refused.
    type: str
    choices: [present, begin, confirm, restore, absent]
    default: present
  checkpoint:
    description:
      - The checkpoint to go back to, or to remove. An id or its unique beginning, a label such as
        V(stable) or V(before-change), or V(@2026-12-01T03:00) for the newest one taken by that
        time, which is the host's local time. To remove, only the whole id.
      - Without it V(restore) goes back to where the open window began. It fails when none is open,
        so that a play which failed before V(begin) does not undo an earlier change.
    type: str
    default: ""
  labels:
    description:
      - Labels for the checkpoint with O(state=present), which are moved to it from others, or the
        labels to remove with O(state=absent). A labelled checkpoint never goes by age or count.
    type: list
    elements: str
    default: []
  paths:
    description:
      - Further absolute paths that are saved and restored, with V(present) and V(begin). Files,
        directories with all that is in them, or patterns with C(*).
      - They count as yours, so a restore brings them back whoever has changed them, and removes
        what was not there. What somebody else wrote is kept beside.
    type: list
    elements: str
    default: []
  confirm_within:
    description:
      - How long the window stays open, in seconds or as V(90s), V(30m), V(2h), V(1h30m), V(1d).
      - When it has passed, the window is not undone by itself. The next run may take it over, and
        goes back to the same state when it fails. So it has to be longer than the run takes.
    type: str
    default: 1h
  takeover:
    description:
      - Whether to go on in the place of another run whose window is open.
      - A run of the same controller whose process is dead is replaced without it, and said so.
        Under AWX each job has a controller of its own, of which nothing is known.
    type: bool
    default: false
  what:
    description:
      - What changes the host. By default the role that the task is in, else the play.
    type: str
    default: ""
  who:
    description:
      - Who changes the host. By default the user and the controller, or under AWX the user and the
        job.
    type: str
    default: ""
  why:
    description: Why the host is changed, for whoever reads the list of checkpoints.
    type: str
    default: ""
  ticket:
    description: The ticket of the change.
    type: str
    default: ""
  window:
    description: The maintenance window that the change belongs to, as text.
    type: str
    default: ""
  packages:
    description:
      - Whether a restore may install, downgrade and remove packages. Only to versions that the host
        can still get, and never drivers and kernels.
    type: bool
    default: false
  other_host:
    description:
      - Whether a checkpoint of another machine may be restored here. Files and sysctls only.
    type: bool
    default: false
  keep:
    description:
      - How many of the newest checkpoints stay, with V(confirm). Labelled ones stay in any case.
    type: int
    default: 20
  max_age_days:
    description:
      - Days after which a checkpoint goes, with V(confirm), but for labelled ones and the three
        newest. V(0) means never.
    type: float
    default: 90
  wait_s:
    description: Seconds to wait for another program that works with the checkpoints.
    type: float
    default: 30
  deadline_s:
    description:
      - Seconds that the driver, systemd, Docker and the package manager have for each answer. What
        does not answer is left out of the checkpoint, with a warning, and is not restored.
    type: float
    default: 20
  restart_timeout_s:
    description: Seconds that each reload or restart of a restore may take.
    type: float
    default: 120
  socket:
    description:
      - The unix socket of Docker.
    type: path
    default: /var/run/docker.sock
  run:
    description: Which run of Ansible this is. The action plugin sets it; a value given here is
      overwritten.
    type: str
    default: ""
notes:
  - Needs root.
  - RV(ignore:changed) is about the host, not about the journal. It stays V(false) with V(begin) and
    V(confirm), and is V(true) with V(present) when a checkpoint was added or a label was moved.
attributes:
  check_mode:
    support: full
    details: V(begin) opens no window in check mode, so a later V(confirm) or V(restore) has none.
  diff_mode:
    support: full
    details: Only V(restore) changes the host, so only it has something to show.
extends_documentation_fragment:
  - steadygpu.host.attributes
  - steadygpu.host.attributes.action
seealso:
  - module: steadygpu.host.checkpoint_info
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: A change that is confirmed or undone
  block:
    - name: Begin
      steadygpu.host.checkpoint:
        state: begin
        confirm_within: 30m
        why: Docker injects devices by CDI
        ticket: OPS-1234

    - name: Change something
      steadygpu.host.docker_daemon:
        config: {features: {cdi: true}}

    - name: Confirm
      steadygpu.host.checkpoint:
        state: confirm
  rescue:
    - name: Go back
      steadygpu.host.checkpoint:
        state: restore

- name: Undo the last confirmed change, with the packages that it brought
  steadygpu.host.checkpoint:
    state: restore
    checkpoint: before-change
    packages: true

- name: Remember a state under a name, and a file that this collection does not know
  steadygpu.host.checkpoint:
    labels: [burned-in]
    why: 72 hours of training without a fault
    paths: [/etc/fstab]

- name: Forget the name; the checkpoint goes by age and count again
  steadygpu.host.checkpoint:
    state: absent
    labels: [burned-in]
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be done, in order.
  returned: success
  type: list
  elements: str
  sample: [restore /etc/docker/daemon.json, reload docker]
busy_run:
  description: The run whose open window is in the way.
  returned: when the task fails for it
  type: str
  sample: ansible, pid 4711 on desk (start 90412, boot 5f0e…, pid namespace 4026531836)
checkpoint:
  description:
    - The id of the checkpoint that counts. The one taken, the one that the window goes back to, or
      the one restored. Empty where there is none, as for a new one in check mode.
  returned: success
  type: str
  sample: 12-9f86d081
conflicts:
  description: Files that somebody else had changed and whose content is kept beside them.
  returned: success
  type: list
  elements: str
  sample: [/etc/steadygpu/mig.json]
left:
  description:
    - What a restore did not bring back, each with C(subject), C(reason) and C(pending), which says
      that doing it again later may help.
  returned: success
  type: list
  elements: dict
  sample:
    - subject: nvidia-container-toolkit
      reason: installed since; packages are only changed when told (packages set to true)
      pending: false
notes:
  description: What is worth knowing. What needs a look comes as a warning.
  returned: success
  type: list
  elements: str
opened:
  description: Whether this task opened the window. Whoever opened it confirms it.
  returned: success
  type: bool
what:
  description: What changes the host, as given or found out.
  returned: success
  type: str
  sample: steadygpu.host.engine
window:
  description: The open window, null when none is open.
  returned: success
  type: dict
  contains:
    id:
      description: Its name.
      type: str
    base:
      description: The checkpoint that it goes back to.
      type: str
      sample: 12-9f86d081
    run:
      description: The run that it belongs to.
      type: str
    opened_at:
      description: When it was opened or taken over, in UTC by the host's clock.
      type: str
      sample: "2026-12-01T03:00:00Z"
    confirm_within_s:
      description: How long it may stay open.
      type: float
    seconds_left:
      description: Until it expires, V(0) when it has.
      type: int
    who:
      description: Who began the change. C(why), C(ticket), C(window) and C(what) are there as well.
      type: str
    joined:
      description: What has joined it since it was opened.
      type: list
      elements: str
"""

import re
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.rollback import model, view, window
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.storage.store import Store
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back.actors import (
    LiveHost,
)

_UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(?:[0-9]+[smhd])+")


def seconds(text: str) -> int:
    """Seconds of ``90``, ``90s``, ``30m``, ``1h30m``, ``1d``. Raises ValueError."""
    plain = re.sub(r"\s", "", text).lower()
    if plain.isdecimal():
        total = int(plain)
    elif _DURATION.fullmatch(plain):
        parts = re.findall(r"([0-9]+)([smhd])", plain)
        total = sum(int(number) * _UNIT_S[unit] for number, unit in parts)
    else:
        total = 0
    if total <= 0:
        raise ValueError(
            f"confirm_within is {text!r}; wanted is a number of seconds above 0, or one such as "
            "90s, 30m, 2h, 1h30m or 1d"
        )
    return total


def carry_out(
    options: Mapping[str, Any], store: Store, host: LiveHost, dry_run: bool, compare: bool
) -> tuple[model.Outcome, model.Difference | None]:
    """What came of the task, and with ``compare`` what a restore changes on the host."""
    run, paths, takeover = options["run"], options["paths"], options["takeover"]
    reason = model.Reason(
        **{key: options[key] for key in ("who", "why", "ticket", "window", "what")}
    )
    if options["state"] == "begin":
        within_s = seconds(options["confirm_within"])
        return window.begin(
            store, host, run, reason.what, within_s, reason, paths, takeover, dry_run
        ), None
    if options["state"] == "confirm":
        keep, days = options["keep"], options["max_age_days"] or None
        return window.confirm(store, host, run, keep, days, takeover, dry_run), None
    # Ansible compiles what is imported at each run, and most runs begin and confirm.
    from ansible_collections.steadygpu.host.plugins.module_utils.rollback import go_back, take

    if options["state"] == "present":
        return take.take(store, host, reason, paths, options["labels"], dry_run), None
    if options["state"] == "absent":
        return take.remove(store, options["checkpoint"], options["labels"], dry_run), None
    wish = go_back.Wish(
        model.RestoreOptions(
            options["packages"], options["other_host"], options["restart_timeout_s"], reason
        ),
        run,
        options["checkpoint"],
        takeover,
        dry_run,
        compare,
    )
    return go_back.go_back(store, host, wish)


def main() -> None:
    text = {"type": "str", "default": ""}
    module = AnsibleModule(
        argument_spec={
            "state": {
                "type": "str",
                "choices": ["present", "begin", "confirm", "restore", "absent"],
                "default": "present",
            },
            "checkpoint": text,
            "labels": {"type": "list", "elements": "str", "default": []},
            "paths": {"type": "list", "elements": "str", "default": []},
            "confirm_within": {"type": "str", "default": "1h"},
            "takeover": {"type": "bool", "default": False},
            "what": text,
            "who": text,
            "why": text,
            "ticket": text,
            "window": text,
            "packages": {"type": "bool", "default": False},
            "other_host": {"type": "bool", "default": False},
            "keep": {"type": "int", "default": 20},
            "max_age_days": {"type": "float", "default": 90},
            "wait_s": {"type": "float", "default": 30},
            "deadline_s": {"type": "float", "default": 20},
            "restart_timeout_s": {"type": "float", "default": 120},
            "socket": {"type": "path", "default": "/var/run/docker.sock"},
            "run": text,
        },
        supports_check_mode=True,
    )
    options = module.params
    store = Store(wait_s=options["wait_s"])
    host = LiveHost(socket=options["socket"], deadline_s=options["deadline_s"])
    try:
        outcome, found = carry_out(options, store, host, module.check_mode, module._diff)
        result = view.outcome(outcome, store.window(), host.moment())
    except window.WindowBusyError as error:
        module.fail_json(msg=str(error), busy_run=error.window.run)
    except (model.RollbackError, ValueError, OSError) as error:
        module.fail_json(msg=str(error))
    for warning in outcome.warnings:
        module.warn(warning)
    if found is not None:
        from ansible_collections.steadygpu.host.plugins.module_utils.rollback.difference import (
            show_text,
        )

        result["diff"] = {"prepared": "" if found.empty else show_text.plain(found)}
    module.exit_json(what=options["what"], **result)


if __name__ == "__main__":
    main()
