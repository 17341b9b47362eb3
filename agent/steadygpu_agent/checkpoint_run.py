# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verbs of ``steadygpu checkpoint``, by the code that the Ansible modules run."""

from __future__ import annotations

import argparse
import json
import os
import pwd
import socket
import sys
from collections.abc import Sequence
from typing import Any

from ansible_collections.steadygpu.host.plugins.module_utils import atomic
from ansible_collections.steadygpu.host.plugins.module_utils.rollback import (
    codec,
    go_back,
    model,
    scope,
    take,
    view,
    window,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.difference import (
    compare,
    diff,
    show_html,
    show_text,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import RollbackError
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.storage import transfer
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.storage.store import Store
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back import restore
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back.actors import (
    LiveHost,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back.actors_api import (
    RestoreHost,
)
from steadygpu_agent import checkpoint_text

# Exit statuses: 0 done, 1 refused or failed, 3 something is left for later. A diff's are 0 the
# same, 1 different, 2 trouble.
_FAILED = 1
_PENDING = 3
_DIFFERENT = 1
_TROUBLE = 2


def run(verb: str, arguments: argparse.Namespace) -> int:
    """Carry out one verb; its exit status. Trouble is told on the standard error."""
    failed = _TROUBLE if verb == "diff" else _FAILED
    if os.geteuid() and not arguments.store:
        print(
            "steadygpu: checkpoints can be read and made by root only, since they hold what may be "
            f"secret; this is {_user()}. Run it with sudo",
            file=sys.stderr,
        )
        return failed
    try:
        store = Store(arguments.store or model.DIRECTORY)
        host = _host(arguments)
        if verb in ("restore", "resume"):
            _must_be_its_own(store, host)
        return _VERBS[verb](arguments, store, host)
    except BrokenPipeError:
        raise  # The reader went away, which is no trouble of the host's.
    except (RollbackError, OSError) as error:
        print(f"steadygpu: {error}", file=sys.stderr)
        return failed


def _host(arguments: argparse.Namespace) -> RestoreHost:
    return LiveHost(deadline_s=getattr(arguments, "deadline", 20.0))


def _must_be_its_own(store: Store, host: RestoreHost) -> None:
    """A way back goes by the ledger of what was written, which counts with the host's own store."""
    own = os.path.join(host.root, model.DIRECTORY.lstrip("/"))
    if os.path.realpath(store.directory) != os.path.realpath(own):
        raise RollbackError(
            f"{store.directory} is not this host's own store, so it cannot be known what was "
            "written here since; nothing was changed. Bring the checkpoint into the host's own "
            "store (steadygpu checkpoint export, then import) and restore from there"
        )


def _list(arguments: argparse.Namespace, store: Store, host: RestoreHost) -> int:
    journal = store.restore_journal()
    found: dict[str, Any] = {
        "checkpoints": [view.checkpoint(one) for one in store.summaries()],
        "labels": store.labels(),
        "window": view.window(store.window(), host.moment()),
        "restore_unfinished": journal is not None,
        "pending": [codec.left_to_json(one) for one in store.pending()],
        "damaged": store.damaged(),
    }
    if arguments.json:
        print(json.dumps(found, indent=2))
        return 0
    print(checkpoint_text.listing(found, journal.target if journal else "", host.machine().machine))
    for message in found["damaged"]:
        print(f"warning: {message}", file=sys.stderr)
    return 0


def _take(arguments: argparse.Namespace, store: Store, host: RestoreHost) -> int:
    outcome = take.take(store, host, _reason(arguments), arguments.path, arguments.label)
    _report(outcome)
    print(
        outcome.checkpoint
        if outcome.changed
        else f"{outcome.checkpoint}: nothing differs from it, so none was added"
    )
    return 0


def _diff(arguments: argparse.Namespace, store: Store, host: RestoreHost) -> int:
    found, left = _compared(arguments, store, host)
    if arguments.json:
        print(
            json.dumps(
                {**view.difference(found), "left": [codec.left_to_json(one) for one in left]},
                indent=2,
            )
        )
    elif arguments.html:
        about = [
            (title, checkpoint_text.about(store, name))
            for title, name in (("Before", found.before), ("After", found.after))
        ]
        atomic.write_atomic(arguments.html, show_html.page(found, left, about), mode=0o600)
        print(f"{show_text.summary(found)}\nwritten to {arguments.html}")
    else:
        print(_text(found, left), end="")
    return 0 if found.empty else _DIFFERENT


def _compared(
    arguments: argparse.Namespace, store: Store, host: RestoreHost
) -> tuple[model.Difference, list[model.Left]]:
    """The difference, and what a restore to its first side would leave."""
    before, after = arguments.before, arguments.after
    declared = () if before == compare.NOW else store.get(before).declared
    left: dict[str, model.Left] = {}
    found: model.Difference | None = None
    if before != compare.NOW and after == compare.NOW:
        try:
            seen = restore.foresee(store, before, model.RestoreOptions(), host)
        except RollbackError as error:
            # Another machine's checkpoint can be compared nevertheless.
            left["everything"] = model.Left("everything", str(error))
        else:
            left = {one.subject: one for one in seen.plan.left}
            found = diff.difference(
                seen.target.state,
                seen.now,
                (seen.target.id, compare.NOW),
                seen.content,
                seen.content,
                scope.areas(declared),
            )
    found = found or compare.compare(store, host, before, after)
    for one in diff.not_restored(found, scope.areas(declared)):
        left.setdefault(one.subject, one)
    return found, list(left.values())


def _show(arguments: argparse.Namespace, store: Store, host: RestoreHost) -> int:
    checkpoint = store.get(arguments.checkpoint)
    # What differs from a host with nothing on it is all there is.
    found = diff.difference(
        model.State(),
        checkpoint.state,
        ("nothing", checkpoint.id),
        _nothing,
        _nothing,
        scope.areas(checkpoint.declared),
    )
    if arguments.json:
        (summary,) = (one for one in store.summaries() if one.id == checkpoint.id)
        holds = [
            {"part": change.part, "subject": change.subject, "is": change.after}
            for change in found.changes
            if change.subject not in checkpoint.state.unknown
        ]
        document = {**view.checkpoint(summary), "holds": holds}
        print(json.dumps({**document, "unknown": dict(checkpoint.state.unknown)}, indent=2))
    else:
        print(checkpoint_text.about(store, checkpoint.id))
        print(checkpoint_text.contents(found))
    return 0


def _reason(arguments: argparse.Namespace) -> model.Reason:
    return model.Reason(
        who=arguments.who or f"{_user()}@{socket.gethostname()}",
        why=arguments.why,
        ticket=arguments.ticket,
        window=arguments.window,
    )


def _restore(arguments: argparse.Namespace, store: Store, host: RestoreHost) -> int:
    opened = store.window()
    chosen = store.find(arguments.checkpoint) if arguments.checkpoint else ""
    if not chosen and opened is None:
        raise RollbackError(
            "no change is open, so there is no state to go back to by itself; name a checkpoint or "
            "a label, for example before-change (steadygpu checkpoint list)"
        )
    wish = go_back.Wish(
        options=model.RestoreOptions(
            arguments.packages,
            arguments.other_host,
            arguments.restart_timeout,
            _reason(arguments),
        ),
        run=_run(),
        checkpoint=chosen,
        # To undo the open change is what its own messages tell a person to do here.
        takeover=arguments.takeover or not chosen or (opened is not None and chosen == opened.base),
        dry_run=arguments.dry_run,
        compare=arguments.dry_run,
    )
    outcome, found = go_back.go_back(store, host, wish)
    if found is not None:
        print(_text(found))
    _report(outcome)
    pending = any(one.pending for one in outcome.left)
    if arguments.dry_run:
        words = "nothing was changed yet" if outcome.changed else "nothing would change"
    elif pending:
        words = "restored but for what is left; restoring again later may bring back the rest"
    else:
        words = "restored" if outcome.changed else "nothing to restore"
    print(f"{outcome.checkpoint}: {words}" if outcome.checkpoint else words)
    return _PENDING if pending and not arguments.dry_run else 0


def _resume(arguments: argparse.Namespace, store: Store, host: RestoreHost) -> int:
    outcome = restore.resume(store, host)
    if outcome is None:
        print("no restore was interrupted")
        return 0
    _report(outcome)
    return _PENDING if any(one.pending for one in outcome.left) else 0


def _label(arguments: argparse.Namespace, store: Store, host: RestoreHost) -> int:
    checkpoint = store.find(arguments.checkpoint)
    before = store.labels().get(arguments.name)
    changed = store.label(arguments.name, checkpoint)
    moved = f", which was {before}" if changed and before else ""
    print(f"{checkpoint} is {arguments.name}{moved}" + ("" if changed else " already"))
    return 0


def _unlabel(arguments: argparse.Namespace, store: Store, host: RestoreHost) -> int:
    changed = store.unlabel(arguments.name)
    print(f"{arguments.name} is taken away" if changed else f"there is no label {arguments.name}")
    return 0


def _remove(arguments: argparse.Namespace, store: Store, host: RestoreHost) -> int:
    outcome = take.remove(store, arguments.checkpoint)
    _report(outcome)
    if not outcome.changed:
        print(f"there is no checkpoint {arguments.checkpoint}")
    return 0


def _confirm(arguments: argparse.Namespace, store: Store, host: RestoreHost) -> int:
    # Whoever types this means the change that is open, and it was begun by another process.
    outcome = window.confirm(
        store, host, _run(), arguments.keep, arguments.max_age_days or None, takeover=True
    )
    _report(outcome)
    if outcome.window is not None:
        print(f"confirmed; {outcome.checkpoint} is stable")
    return 0


def _export(arguments: argparse.Namespace, store: Store, host: RestoreHost) -> int:
    left_out = transfer.export(
        store, arguments.checkpoint, arguments.file, secrets=not arguments.without_secrets
    )
    for path in left_out:
        print(f"left out, as it may hold secrets: {show_text.visible(path)}")
    if not arguments.without_secrets:
        print(f"note: {arguments.file} holds every secret of these files; keep it like a password")
    return 0


def _import(arguments: argparse.Namespace, store: Store, host: RestoreHost) -> int:
    print(transfer.import_(store, arguments.file).id)
    return 0


def _prune(arguments: argparse.Namespace, store: Store, host: RestoreHost) -> int:
    gone = store.prune(arguments.keep, arguments.max_age_days or None, host.moment().wall)
    for one in gone:
        print(f"removed {one}")
    print(f"kept: {len(store.summaries())}")
    return 0


def _migrate(arguments: argparse.Namespace, store: Store, host: RestoreHost) -> int:
    messages = store.migrate(arguments.to)
    for message in messages:
        print(f"warning: {message}", file=sys.stderr)
    print(f"{store.directory} has schema {arguments.to}")
    return _FAILED if messages else 0


_VERBS = {
    "list": _list,
    "take": _take,
    "diff": _diff,
    "show": _show,
    "restore": _restore,
    "resume": _resume,
    "label": _label,
    "unlabel": _unlabel,
    "remove": _remove,
    "confirm": _confirm,
    "export": _export,
    "import": _import,
    "prune": _prune,
    "migrate": _migrate,
}


def _report(outcome: model.Outcome) -> None:
    print(checkpoint_text.report(outcome), end="")
    for warning in outcome.warnings:
        print(f"warning: {checkpoint_text.line(warning)}", file=sys.stderr)


def _text(found: model.Difference, left: Sequence[model.Left] = ()) -> str:
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        return show_text.coloured(found, left)
    return show_text.plain(found, left)


def _nothing(digest: str) -> bytes | None:
    return None


def _run() -> str:
    return f"steadygpu checkpoint on {socket.gethostname()} (process {os.getpid()})"


def _user() -> str:
    """Who is at the keyboard, also behind sudo."""
    name = os.environ.get("SUDO_USER")
    if name:
        return name
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"user {os.geteuid()}"
