# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The driver brought to what is wanted, and what was ours taken back.

What is remembered: files and settings as every owner of :mod:`..settings` has them, and in
``extra`` the holds that are ours, what nvidia-persistenced was before, why a reboot waits, which
state of the initramfs was looked into, and the wish.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..atomic import read_text
from ..package_sets import managers
from ..package_sets.managers import Manager
from ..settings import record as records
from ..settings.apply import Keeper
from . import daemon, holds, judge, kept, kernels, ready, transaction
from .host import Host, Outcome, below
from .kept import MODPROBE, MODULES_LOAD
from .model import INSTALL, DriverRefusedError, View, Wish
from .proof import BLACKLIST, OWNER
from .transaction import PIN, Transaction

__all__ = ["MODPROBE", "MODULES_LOAD", "OWNER", "PIN", "absent", "keep"]

_INITRAMFS = "initramfs"


def keep(wish: Wish, host: Host, check_mode: bool) -> Outcome:
    """Adopt or install. Raises DriverError, SettingsError, PackageError, OSError."""
    view = host.view()
    done = Outcome(view, flavour=judge.flavour_of(wish, view))
    old = records.load(OWNER, host.root)
    extra: dict[str, Any] = dict(old.extra) if old else {}
    made: Transaction | None = None
    if wish.mode == INSTALL:
        made = _install(wish, host, view, done, extra, check_mode)
    if made is None:
        _refuse_mismatched(view)
    elif not check_mode:
        view = host.view()
        transaction.see(made, view, kernels.build_log(view.builds, host.root))
    if wish.mode != INSTALL:
        ready.put_sources_away(wish, host, done, check_mode)
    done.release = made.release if made else view.release
    was = kept.texts_now(host.root)
    texts = kept.texts_of(wish, view, made, was)
    refuses_nouveau = BLACKLIST in (texts.get(MODPROBE) or "")
    done.reboot_reasons = judge.reboot_reasons(view, refuses_nouveau)
    holding = holds.holding(wish, view, made, extra)
    ours = holds.ours(wish, view, made, extra, holding)
    former = daemon.former(wish.persistence, view.persistence, view.unit, extra, host.root)
    # What it was is forgotten once nothing is asked any more and it is that again.
    drop = wish.persistence is None and former is not None
    if drop and former and ready.bring_daemon(host, former, view, done, check_mode):
        former = None

    def remember(held: Sequence[str], token: str, outcome: Outcome) -> None:
        said = kept.extra_of(wish, held, former, done.reboot_reasons, extra, texts, host.root)
        if token:
            said[_INITRAMFS] = token
        kept.remember(texts, said, outcome, host, check_mode)

    token = str(extra.get(_INITRAMFS, ""))
    # A hold that is ours is noted before it is set, and forgotten after it is released.
    released = [name for name, held in holding.items() if not held]
    holds.hold(host, wish, view, released, False, done, check_mode)
    remember(ours, token, done)
    coming = [name for name, held in holding.items() if held]
    if not holds.hold(host, wish, view, coming, True, done, check_mode):
        ours = [name for name in ours if name not in coming]
    token = _initramfs(host, view, texts, was, token, done, check_mode)
    ready.load(wish, host, view, made, done, check_mode)
    if wish.persistence is not None and former is not None:
        on = wish.persistence
        wanted = daemon.State(running=on and view.loaded is not None, enabled=on)
        ready.bring_daemon(host, wanted, view, done, check_mode)
    if not check_mode:
        remember(ours, token, Outcome(view))
        if made or done.actions:
            view = host.view()
    done.view = view
    asked = replace(view, persistence_mode=host.persistence_mode(wish, view))
    done.settings = judge.settings(wish, asked, done.release, texts)
    done.warnings += judge.warnings(view)
    return done


def absent(wish: Wish, host: Host, check_mode: bool) -> Outcome:
    """Take back holds, files and what was done to the daemon. Packages stay: jobs run on them."""
    view = host.view()
    done = Outcome(view, view.release, view.flavour or "")
    # While the holds are still there: without them the next upgrade would take what it offers.
    ready.put_sources_away(wish, host, done, check_mode)
    old = records.load(OWNER, host.root)
    if old is None:
        return done
    there = view.installed.packages
    ours = [one for one in old.extra.get("holds", []) if one in there and there[one].held]
    holds.hold(host, wish, view, ours, False, done, check_mode)
    former = daemon.noted(old.extra)
    if former is not None:
        ready.bring_daemon(host, former, view, done, check_mode)
    outcome = Keeper(OWNER, check_mode, host.root).absent()
    done.actions += outcome.actions
    done.diff += outcome.diff
    done.warnings += outcome.warnings
    if view.versions and old.extra.get("brought"):
        done.warnings.append(
            f"the driver's packages stay at {view.release}: removing them takes the GPUs from this "
            "host at its next boot, which is a decision for a person"
        )
    return done


def _initramfs(
    host: Host,
    view: View,
    texts: Mapping[str, str | None],
    was: Mapping[str, str],
    token: str,
    done: Outcome,
    check_mode: bool,
) -> str:
    """The state that was looked into, "" where nouveau is not ours to keep out."""
    text = texts.get(MODPROBE) or ""
    if BLACKLIST not in text:
        return ""
    loaded = bool(view.modules.get("nouveau"))
    fresh = text != was.get(MODPROBE, "")
    return ready.without_nouveau(host, loaded, fresh, token, done, check_mode)


def _install(
    wish: Wish,
    host: Host,
    view: View,
    done: Outcome,
    extra: dict[str, Any],
    check_mode: bool,
) -> Transaction | None:
    wrong = judge.refuse_wish(wish, view)
    if wrong:
        raise DriverRefusedError("; ".join(wrong))
    root = host.root
    lock = contextlib.nullcontext() if check_mode else managers.alone(root, wish.lock_timeout_s)
    with lock:

        def with_options(options: Sequence[str]) -> Manager:
            return host.manager(wish, view, options)

        made = transaction.plan(wish, view, with_options, root, check_mode)
        if made is None:
            return None
        victims = host.endangered()
        if victims:
            raise DriverRefusedError(
                "scripts of packages run systemctl daemon-reload, which may take the GPU from "
                f"{', '.join(victims)}. Let them end, or start them again with a GPU by CDI, then "
                "run again"
            )
        done.actions += made.told()
        done.diff.append(_difference(made))
        if not check_mode:
            extra["brought"] = sorted({*extra.get("brought", []), *made.after})
            _carry_out(made, host, wish, view, extra, done)
    return made


def _carry_out(
    made: Transaction,
    host: Host,
    wish: Wish,
    view: View,
    extra: Mapping[str, Any],
    done: Outcome,
) -> None:
    """Note what is about to come, pin it, and let the package manager do it."""
    manager = host.manager(wish, view)
    managers.wait_until_free(manager, host.root, wish.lock_timeout_s)
    # That may have taken minutes.
    busy = judge.in_use(host.view())
    if busy:
        raise DriverRefusedError("; ".join(busy))
    old = records.load(OWNER, host.root)
    texts: dict[str, str | None] = {
        path: read_text(below(host.root, path)) for path in (old.files if old else ())
    }
    if view.installed.manager == "dpkg" and made.release is not None:
        texts[PIN] = transaction.pin_text(made.release)
    targets = [former.target for former in old.formers] if old else []
    outcome = Keeper(OWNER, False, host.root).keep(targets, texts, extra)
    done.actions += [told for told in outcome.actions if PIN in told]
    done.diff += outcome.diff
    with managers.engines_kept(manager, host.root) as environment:
        manager.finish_interrupted(environment)
        manager.do("install", made.arguments, environment)


def _refuse_mismatched(view: View) -> None:
    refused = judge.mismatched(view, view.release)
    if refused:
        raise DriverRefusedError(
            f"{'; '.join(refused)}. Bring them to one release (mode install with an exact version "
            "brings all of them), then run again"
        )


def _difference(made: Transaction) -> dict[str, str]:
    def lines(versions: Mapping[str, str | None]) -> str:
        there = sorted((name, version) for name, version in versions.items() if version)
        return "".join(f"{name} {version}\n" for name, version in there)

    header_text = "packages of the driver"
    return {
        "before_header": header_text,
        "after_header": header_text,
        "before": lines(made.before),
        "after": lines(made.after),
    }
