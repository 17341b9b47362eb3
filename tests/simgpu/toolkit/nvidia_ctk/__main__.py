# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""SIMULATION: a stand-in for NVIDIA's nvidia-ctk, for the steadygpu lab."""

from __future__ import annotations

import argparse
import json
import os
import stat
import sys
from pathlib import Path

from . import cdi, docker, nvml, text

HOME = Path(__file__).resolve().parent.parent
CONFIG = "/etc/nvidia-container-runtime/config.toml"


def main(arguments: list[str]) -> int:
    """Run one sub-command; 0 done, 1 failed with the reason on stderr, 2 usage."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except (nvml.NvmlError, ValueError, OSError) as error:
        _log("ERRO", f"{options.failure}: {error}")
        return 1
    return 0


def _log(level: str, message: str) -> None:
    """The real tool's log format."""
    print(f"{level}[0000] {message}", file=sys.stderr)


def _version() -> str:
    version = (HOME / "VERSION").read_text(encoding="ascii").strip()
    return f"NVIDIA Container Toolkit CLI version {version} (steadygpu simulation)"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="nvidia-ctk", description=__doc__)
    parser.add_argument("--version", "-v", action="version", version=_version())
    parser.add_argument("--quiet", "-q", action="store_true")
    parser.add_argument("--debug", "-d", action="store_true")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    group = commands.add_parser("cdi").add_subparsers(required=True, metavar="COMMAND")
    generate = group.add_parser("generate")
    generate.set_defaults(run=_generate, failure="failed to generate CDI spec")
    generate.add_argument("--output", default=os.environ.get("NVIDIA_CTK_CDI_OUTPUT_FILE_PATH", ""))
    generate.add_argument("--format", choices=("yaml", "json"))
    generate.add_argument("--mode", choices=("auto", "nvml"), default="auto")
    generate.add_argument("--device-name-strategy", choices=cdi.STRATEGIES, action="append")
    generate.add_argument("--vendor", default="nvidia.com")
    generate.add_argument("--class", dest="class_", default="gpu")
    listing = group.add_parser("list")
    listing.set_defaults(run=_list, failure="failed to list CDI devices")
    listing.add_argument("--spec-dir", action="append")

    group = commands.add_parser("runtime").add_subparsers(required=True, metavar="COMMAND")
    configure = group.add_parser("configure")
    configure.set_defaults(run=_configure, failure="unable to configure the runtime")
    configure.add_argument("--runtime", choices=("docker",), default="docker")
    configure.add_argument("--config", default="/etc/docker/daemon.json")
    configure.add_argument("--nvidia-runtime-name", default="nvidia")
    configure.add_argument("--nvidia-runtime-path", default="nvidia-container-runtime")
    configure.add_argument("--nvidia-set-as-default", "--set-as-default", action="store_true")
    configure.add_argument("--cdi.enabled", "--cdi.enable", dest="enable_cdi", action="store_true")
    configure.add_argument("--dry-run", action="store_true")

    config = commands.add_parser("config")
    config.set_defaults(run=_config, failure="unable to update the config")
    config.add_argument("--config", "--config-file", default=CONFIG)
    config.add_argument("--set", action="append", default=[])
    config.add_argument("--in-place", "-i", action="store_true")
    config.add_argument("--output", "-o", default="")

    group = commands.add_parser("system").add_subparsers(required=True, metavar="COMMAND")
    links = group.add_parser("create-dev-char-symlinks")
    links.set_defaults(run=_create_symlinks, failure="failed to create symlinks")
    links.add_argument("--create-all", action="store_true")
    links.add_argument("--dev-char-path", default="/dev/char")
    links.add_argument("--dry-run", action="store_true")
    return parser


def _generate(options: argparse.Namespace) -> None:
    strategies = options.device_name_strategy or ["index", "uuid"]
    document = cdi.spec(nvml.read(), strategies, f"{options.vendor}/{options.class_}")
    suffix = Path(options.output).suffix.lstrip(".")
    if (options.format or ("json" if suffix == "json" else "yaml")) == "json":
        rendered = json.dumps(document, indent=2) + "\n"
    else:
        rendered = "# SIMULATED GPUs of the steadygpu lab\n---\n" + text.yaml(document)
    _emit(options.output, rendered)
    _log("INFO", f"Generated CDI spec with version {cdi.CDI_VERSION}")


def _emit(path: str, content: str) -> None:
    """To stdout without a path; a file is replaced by rename, so no engine reads half of it."""
    if path in ("", "-"):
        sys.stdout.write(content)
        return
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.new")
    temporary.write_text(content, encoding="utf-8")
    temporary.chmod(0o644)
    os.replace(temporary, target)


def _list(options: argparse.Namespace) -> None:
    names, warnings = cdi.list_devices(options.spec_dir or list(cdi.SPEC_DIRS))
    for warning in warnings:
        _log("WARN", warning)
    _log("INFO", f"Found {len(names)} CDI devices")
    for name in names:
        print(name)


def _configure(options: argparse.Namespace) -> None:
    path = Path(options.config)
    config = json.loads(path.read_text(encoding="utf-8") or "{}") if path.exists() else {}
    changed = docker.configure(
        config,
        name=options.nvidia_runtime_name,
        path=options.nvidia_runtime_path,
        set_as_default=options.nvidia_set_as_default,
        enable_cdi=options.enable_cdi,
    )
    rendered = json.dumps(changed, indent=4, sort_keys=True) + "\n"
    if options.dry_run:
        sys.stdout.write(rendered)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(rendered, encoding="utf-8")  # in place and without a backup, as the real tool
    _log("INFO", f"Wrote updated config to {path}")
    _log("INFO", "It is recommended that docker daemon be restarted.")


def _config(options: argparse.Namespace) -> None:
    sections = text.read_toml(Path(options.config).read_text(encoding="utf-8"))
    for assignment in options.set:
        text.set_toml(sections, assignment)
    _emit(options.config if options.in_place else options.output, text.write_toml(sections))


def _create_symlinks(options: argparse.Namespace) -> None:
    directory = Path(options.dev_char_path)
    for node in sorted(Path("/dev").glob("nvidia*")):
        status = node.lstat()
        if not stat.S_ISCHR(status.st_mode):
            continue
        link = directory / f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
        _log("INFO", f"Creating link {link} => {node}")
        if not options.dry_run and not link.is_symlink():
            link.symlink_to(node)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
