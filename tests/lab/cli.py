# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verbs of ``python3 tests/lab``."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
from types import FrameType
from typing import Any, NoReturn

from . import image as images
from . import power, setup, suites, vm
from .cache import Cache, limit_bytes
from .console import LabError, say
from .host import Hosts, Request
from .inventory import inventory

# What a shell reports for a program ended by Ctrl-C.
_INTERRUPTED = 130


def main(arguments: list[str]) -> int:
    """Run one verb. Returns the exit status: 0, 1 for a reported error, 130 for an interrupt."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
        return status
    except LabError as error:
        print(f"lab: ERROR: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        say("interrupted; nothing was left running")
        return _INTERRUPTED


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    """Ctrl-C, a closed terminal and `kill` end a verb alike: with everything cleaned up."""
    raise KeyboardInterrupt


def _hosts() -> Hosts:
    return Hosts(Cache.of_user(os.environ), os.environ)


def _answer(value: Any) -> int:
    print(json.dumps(value, sort_keys=True))
    return 0


def _setup(_options: argparse.Namespace) -> int:
    setup.install()
    return 0


def _image(options: argparse.Namespace) -> int:
    cache = Cache.of_user(os.environ)
    with cache.in_use():
        print(images.ensure(cache, suites.suite(options.suite), os.environ).path / vm.DISK)
    return 0


def _start(options: argparse.Namespace) -> int:
    request = Request(options.name, options.suite, options.profile, options.snapshot, options.cold)
    return _answer(_hosts().start(request))


def _stop(options: argparse.Namespace) -> int:
    hosts = _hosts()
    if bool(options.name) == options.all:
        raise LabError("stop what? give one NAME, or --all for every host of this checkout")
    for name in hosts.names() if options.all else [options.name]:
        say("{}: {}".format(name, "stopped" if hosts.stop(name) else "not there"))
    return 0


def _list(_options: argparse.Namespace) -> int:
    hosts = _hosts()
    running = {entry.manifest["name"]: entry for entry in hosts.running()}
    for name in hosts.names():
        if name in running:
            _answer(hosts.describe(running[name]))
        else:
            say(f"{name}: starting, or ended by itself; `stop` removes what is left")
    return 0


def _ssh(options: argparse.Namespace) -> int:
    hosts = _hosts()
    guest = hosts.guest(hosts.get(options.name))
    argv = guest.argv(options.command)
    os.execvp(argv[0], argv)


def _reboot(options: argparse.Namespace) -> int:
    seconds = power.reboot(_hosts(), options.name)
    say(f"{options.name} is up again after {seconds:.1f} s")
    return 0


def _cut(options: argparse.Namespace) -> int:
    seconds = power.cut(_hosts(), options.name)
    say(f"{options.name} is up again {seconds:.1f} s after its power was cut")
    return 0


def _freeze(options: argparse.Namespace) -> int:
    frozen = _hosts().freeze(options.name, options.snapshot)
    say(f"snapshot {options.snapshot}: {frozen.size() >> 20} MiB")
    return 0


def _inventory(_options: argparse.Namespace) -> int:
    hosts = _hosts()
    return _answer(inventory(hosts.cache, hosts, os.environ))


def _log(options: argparse.Namespace) -> int:
    hosts = _hosts()
    if options.name not in hosts.names():
        raise LabError(f"no lab host {options.name!r} in this checkout")
    with open(hosts.directory(options.name) / vm.CONSOLE_LOG, "rb") as log:
        shutil.copyfileobj(log, sys.stdout.buffer)
    return 0


def _gc(_options: argparse.Namespace) -> int:
    hosts = _hosts()
    for ident in hosts.collect(wait=True):
        say("removed " + ident)
    used = sum(
        entry.size()
        for kind in ("rootfs", "images", "frozen", "snapshots", "hosts")
        for entry in hosts.cache.entries(kind)
    )
    say(f"{hosts.cache.root}: {used >> 20} MiB of at most {limit_bytes(os.environ) >> 20} MiB")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 tests/lab", description="Virtual lab hosts with simulated GPUs."
    )
    verbs = parser.add_subparsers(metavar="VERB", required=True)

    def verb(name: str, run: Any, text: str) -> argparse.ArgumentParser:
        added = verbs.add_parser(name, help=text, description=text)
        added.set_defaults(run=run)
        return added

    verb("setup", _setup, "install the system packages the lab needs (as root)")
    image = verb("image", _image, "build or reuse the image of a suite; print its path")
    image.add_argument("suite", choices=sorted(suites.SUITES))
    start = verb("start", _start, "start a host, wait until it is usable, describe it as JSON")
    start.add_argument("name")
    start.add_argument("--suite", choices=sorted(suites.SUITES), default="trixie")
    start.add_argument("--profile", help="simulated GPUs to load, for example dgx-a100")
    start.add_argument(
        "--from", dest="snapshot", metavar="SNAPSHOT", help="resume a snapshot of this checkout"
    )
    start.add_argument("--cold", action="store_true", help="boot instead of resuming")
    stop = verb("stop", _stop, "end a host and remove its files")
    stop.add_argument("name", nargs="?")
    stop.add_argument("--all", action="store_true", help="every host of this checkout")
    verb("list", _list, "the hosts of this checkout, one JSON line each")
    ssh = verb("ssh", _ssh, "a shell, or a command, as root on a host")
    ssh.add_argument("name")
    ssh.add_argument("command", nargs=argparse.REMAINDER)
    reboot = verb("reboot", _reboot, "reboot a host and wait until it is up")
    reboot.add_argument("name")
    cut = verb("cut", _cut, "cut a host's power (kill -9), boot its disk and wait until it is up")
    cut.add_argument("name")
    freeze = verb("freeze", _freeze, "freeze a running host, which goes on, as a snapshot")
    freeze.add_argument("name")
    freeze.add_argument("snapshot")
    listing = verb("inventory", _inventory, "the running hosts as an Ansible inventory")
    listing.add_argument("--list", action="store_true", help="as Ansible asks; the default")
    log = verb("log", _log, "the console log of a host")
    log.add_argument("name")
    verb("gc", _gc, "bring the cache below its bound now")
    return parser
