# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The four stand-ins for the packages of NVIDIA's Container Toolkit.

Names, versions and dependencies between them are the real ones (from 1.18 all four must have
the same version); the content is ours and says everywhere that it is a simulation.
"""

from __future__ import annotations

from .deb import File, Package
from .tools import SOURCES

#: Two versions, so that a pin and a hold can be seen to hold. 1.19.1 is the oldest safe one.
VERSIONS = ("1.19.1-1", "1.20.0-1")

_TOOLKIT = SOURCES / "toolkit"
_HOME = "/usr/lib/nvidia-container-toolkit-simulation"
_DESCRIPTION = (
    "SIMULATION for the steadygpu lab: not NVIDIA's software. It takes the place of\n"
    " the real package on lab machines, where no NVIDIA GPU and no driver exist."
)


def all_packages() -> list[Package]:
    """Every package in every version."""
    return [package for version in VERSIONS for package in _of_version(version)]


def _of_version(version: str) -> list[Package]:
    base = _package(
        "nvidia-container-toolkit-base",
        version,
        depends=["python3"],
        files=_base_files(version),
        conffiles=[
            "/etc/nvidia-container-runtime/config.toml",
            "/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env",
        ],
        scripts={
            "postinst": _read("base.postinst", version),
            "prerm": _read("base.prerm", version),
        },
    )
    toolkit = _package(
        "nvidia-container-toolkit",
        version,
        depends=[
            f"nvidia-container-toolkit-base (= {version})",
            f"libnvidia-container-tools (= {version})",
        ],
        files={
            "/usr/bin/nvidia-container-runtime-hook": _program(
                "nvidia-container-runtime-hook", version
            )
        },
    )
    tools = _package(
        "libnvidia-container-tools",
        version,
        depends=[f"libnvidia-container1 (= {version})"],
        files={"/usr/bin/nvidia-container-cli": _program("nvidia-container-cli", version)},
    )
    return [toolkit, base, tools, _package("libnvidia-container1", version)]


def _package(
    name: str,
    version: str,
    *,
    depends: list[str] | None = None,
    files: dict[str, File] | None = None,
    conffiles: list[str] | None = None,
    scripts: dict[str, bytes] | None = None,
) -> Package:
    notice = {f"/usr/share/doc/{name}/README.simulation": File(f"{_DESCRIPTION}\n".encode())}
    return Package(
        name=name,
        version=version,
        architecture="amd64",
        summary=f"SIMULATION of NVIDIA's {name} (steadygpu lab)",
        description=_DESCRIPTION,
        depends=depends or [],
        files={**notice, **(files or {})},
        conffiles=conffiles or [],
        scripts=scripts or {},
    )


def _base_files(version: str) -> dict[str, File]:
    upstream = version.partition("-")[0]
    files = {f"{_HOME}/VERSION": File(f"{upstream}\n".encode())}
    for path in sorted((_TOOLKIT / "nvidia_ctk").glob("*.py")):
        files[f"{_HOME}/nvidia_ctk/{path.name}"] = File(path.read_bytes())
    for name in ("nvidia-ctk", "nvidia-cdi-hook", "nvidia-container-runtime"):
        files[f"/usr/bin/{name}"] = _program(name, version)
    # Below /usr/lib: where a package's units belong, whatever links the distribution keeps.
    for name in ("nvidia-cdi-refresh.service", "nvidia-cdi-refresh.path"):
        files[f"/usr/lib/systemd/system/{name}"] = File(_read(name, version))
    files["/etc/nvidia-container-runtime/config.toml"] = File(_read("config.toml", version))
    name = "nvidia-cdi-refresh.env"
    files[f"/etc/nvidia-container-toolkit/{name}"] = File(_read(name, version))
    return files


def _program(name: str, version: str) -> File:
    return File(_read(name, version), 0o755)


def _read(name: str, version: str) -> bytes:
    text = (_TOOLKIT / "files" / name).read_text(encoding="utf-8")
    return text.replace("@VERSION@", version.partition("-")[0]).encode()
