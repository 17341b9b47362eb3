# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""simgpu: load and break SIMULATED GPUs on a steadygpu lab machine.

State first, then effects: the state file is replaced as a whole, the effects (library, nodes,
mounts) follow from it and can be made again at any time, which `restore` does at every boot.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import hold, lab, library, mounts, nodes, profiles, state, tree
from .state import State, StateError

STATE = Path("/var/lib/simgpu/state")
PROFILES = library.HOME / "profiles"
#: "wrong_library" is what a driver package upgrade without a reboot leaves: the module is older.
OLDER_MODULE = "550.54.15"
MODES = (*state.LIBRARY_MODES[1:], "wrong_library", "uvm_missing", "gpu_lost")


def main(arguments: list[str]) -> int:
    """Run one verb; 0 done, 1 refused or failed (the reason on stderr), 2 usage."""
    options = _parser().parse_args(arguments)
    try:
        lab.require()
        options.run(options)
    except (
        lab.NotALabError,
        library.LibraryError,
        profiles.ProfileError,
        StateError,
        hold.HoldError,
        OSError,
    ) as error:
        print(f"simgpu: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="simgpu", description=(__doc__ or "").splitlines()[0])
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    def verb(name: str, run: object, text: str) -> argparse.ArgumentParser:
        sub = verbs.add_parser(name, help=text, description=text)
        sub.set_defaults(run=run)
        return sub

    verb("load", _load, "make this machine one with the GPUs of a profile").add_argument("profile")
    verb("unload", _unload, "make it a machine without GPUs and driver again")
    verb("restore", _restore, "make nodes, mounts and library again from the state (at boot)")
    verb("status", _status, "print profile, failure mode and GPUs")
    verb("profiles", _profiles, "list known profiles")
    setter = verb("set", _set, "change one value: gpu.N.KEY NUMBER or link.GPU.LINK up|down")
    setter.add_argument("key")
    setter.add_argument("value")
    holding = verb("hold", _hold, "keep a GPU or MIG instance open, as a process using it would")
    holding.add_argument("what", metavar="GPU[/GI[/CI]]", help="index of the GPU, ids below it")
    holding.add_argument("--name", default=hold.NAME, help="what ps calls the process")
    fail = verb("fail", _fail, "let the driver fail in one way, beside GPUs already lost")
    fail.add_argument("mode", choices=MODES)
    fail.add_argument("gpu", nargs="?", type=int, help="index of the GPU, for gpu_lost")
    verb("clear", _clear, "end every failure")
    verb("load-uvm", _load_uvm, "what nvidia-modprobe -u -c 0 does: nvidia_uvm and its nodes")
    return parser


def _load(options: argparse.Namespace) -> None:
    profile = profiles.load(PROFILES, options.profile)
    slots = tree.find_slots(Path("/"))
    loaded = state.read(STATE)
    if loaded is not None and loaded.settings["profile"] == profile["name"]:
        uvm, caps = (int(loaded.settings.get(key, "0")) for key in ("uvm_major", "caps_major"))
    else:
        devices = Path("/proc/devices").read_text(encoding="ascii")
        uvm = nodes.free_major(devices)
        caps = nodes.free_major(devices, taken=frozenset([uvm]))
    new = profiles.build_state(profile, slots, check_nodes=True, uvm_major=uvm, caps_major=caps)
    library.refuse_foreign()
    state.forget_mig(STATE)
    state.write(STATE, new)
    _apply(new)
    library.install()  # last: its appearing triggers nvidia-cdi-refresh, which needs the rest


def _unload(_options: argparse.Namespace) -> None:
    mounts.unmount_all()
    nodes.ensure({})
    library.ensure_removed()
    state.remove(STATE)
    state.forget_mig(STATE)


def _restore(_options: argparse.Namespace) -> None:
    current = state.read(STATE)
    if current is not None:
        _apply(current)
        if not library.is_installed():
            library.install()


def _apply(current: State) -> None:
    """Without the module there is no /proc/driver/nvidia and no node; sysfs shows the cards."""
    module_loaded = current.settings["fail"] != "driver_not_loaded"
    mounts.unmount_all()
    mounts.mount_all(current, module_loaded=module_loaded)
    nodes.ensure(nodes.wanted(current) if module_loaded else {})
    if module_loaded:
        library.sync_capabilities()


def _current() -> State:
    current = state.read(STATE)
    if current is None:
        raise StateError(
            f"no profile is loaded; `simgpu load` one of: {', '.join(profiles.names(PROFILES))}"
        )
    return current


def _profiles(_options: argparse.Namespace) -> None:
    for name in profiles.names(PROFILES):
        print(f"{name:20} {profiles.load(PROFILES, name)['title']}")


def _status(_options: argparse.Namespace) -> None:
    current = state.read(STATE)
    if current is None:
        print("SIMULATION: no profile loaded (a machine without GPUs and driver)")
        return
    profile, module, fail = (current.settings[key] for key in ("profile", "module", "fail"))
    print(f"SIMULATION: profile {profile}, module {module}, fail {fail}")
    for index, gpu in enumerate(current.gpus):
        name, address, uuid = (gpu.values[key] for key in ("name", "pci", "uuid"))
        lost = "  LOST" if gpu.values["lost"] != "0" else ""
        print(f"GPU {index}: {name} {address} (UUID: {uuid}){lost}")
    for line in state.mig_lines(STATE):
        print(f"MIG: {line}")


def _set(options: argparse.Namespace) -> None:
    current = _current()
    state.set_value(current, options.key, options.value)
    state.write(STATE, current)


def _hold(options: argparse.Namespace) -> None:
    hold.hold(_current(), options.what, options.name)


def _fail(options: argparse.Namespace) -> None:
    current = _current()
    if options.mode == "gpu_lost":
        if options.gpu is None:
            raise StateError(
                "gpu_lost: the index of the GPU is wanted, for example `simgpu fail gpu_lost 2`"
            )
        state.set_value(current, f"gpu.{options.gpu}.lost", "1")
    elif options.mode == "wrong_library":
        current.settings["module"] = OLDER_MODULE
    elif options.mode == "uvm_missing":
        current.settings["uvm"] = "missing"
    else:
        current.settings["fail"] = options.mode
    state.write(STATE, current)
    _apply(current)


def _load_uvm(_options: argparse.Namespace) -> None:
    current = _current()
    current.settings["uvm"] = "loaded"
    state.write(STATE, current)
    _apply(current)


def _clear(_options: argparse.Namespace) -> None:
    current = _current()
    current.settings["fail"] = "none"
    current.settings["uvm"] = "loaded"
    current.settings["module"] = library.source().name.partition(".so.")[2]
    for gpu in current.gpus:
        gpu.values["lost"] = "0"
    state.write(STATE, current)
    _apply(current)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
