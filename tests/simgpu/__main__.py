# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""python3 tests/simgpu VERB: build the SIMULATED GPUs of the lab. Nothing is installed here."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from simgpu_guest import profiles
from simgpu_image import library, local, overlay
from simgpu_image.tools import BuildError


def main(arguments: list[str]) -> int:
    """Run one verb; 0 done, 1 failed with the reason on stderr, 2 usage."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except (BuildError, profiles.ProfileError) as error:
        print(f"simgpu: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 tests/simgpu", description=__doc__)
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    build = verbs.add_parser(
        "overlay", help="the tree a lab image gets on top of its root file system"
    )
    build.set_defaults(run=lambda options: overlay.build(options.output, options.suite))
    build.add_argument("--output", type=Path, required=True, help="directory, made anew")
    build.add_argument("--suite", choices=overlay.SUITES, required=True)

    only = verbs.add_parser("library", help="the simulated libnvidia-ml alone")
    only.set_defaults(run=lambda options: print(library.compile_library(options.output)))
    only.add_argument("--output", type=Path, required=True, help="directory")

    alone = verbs.add_parser(
        "local", help="library and state of a profile, for tests without a machine"
    )
    alone.set_defaults(run=lambda options: print(local.build(options.output, options.profile)))
    alone.add_argument("--output", type=Path, required=True, help="directory")
    alone.add_argument("--profile", required=True)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
