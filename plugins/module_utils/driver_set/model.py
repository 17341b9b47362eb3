# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wanted of the driver, and what the host has of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..hardware.host_model import FabricManager
from ..osinfo import OsInfo
from ..packages import Installed
from .daemon import Unit
from .kernels import Build, Kernel
from .names import driver_packages, release_installed
from .tables import Card

ADOPT = "adopt"
INSTALL = "install"

# Where a driver came from.
PACKAGES = "packages"
RUNFILE = "runfile"
CONTAINER = "container"
UNKNOWN = "unknown"
NOBODY = "none"


class DriverError(Exception):
    """Something was done and did not come true. Says what to look at."""


class DriverRefusedError(DriverError):
    """Nothing was changed; says what was seen, what was wanted and what to do."""


@dataclass(frozen=True)
class Wish:
    """The options of the module ``gpu_driver``, which documents them."""

    mode: str = ADOPT
    version: str | None = None
    packages: tuple[str, ...] = ()
    flavour: str = "auto"
    hold: bool = True
    uvm: bool = True
    nouveau_off: bool = True
    persistence: bool | None = None
    files: tuple[str, ...] = ()
    offline: bool = False
    options: tuple[str, ...] = ()
    also_change: tuple[str, ...] = ()
    update_cache: bool = True
    source: str = ""
    uploads: str = ""
    lock_timeout_s: float = 300.0
    deadline_s: float = 3600.0


@dataclass(frozen=True)
class View:
    """One look at the host. Releases are as NVIDIA writes them, ``550.163.01``.

    ``loaded`` is the module in the kernel, ``on_disk`` the one that the running kernel would load,
    ``library`` that of libnvidia-ml. ``holders`` are those who have a GPU, in words.
    ``unit`` is that of the persistence daemon, ``persistence_mode`` what the driver says of all
    GPUs, None where it was not asked. ``can_hold``: does a package manager here keep a version?
    ``key_enrolled``: does the firmware know the key that DKMS signs with; None: nobody can tell.
    """

    os: OsInfo
    installed: Installed
    kernel: str | None = None
    loaded: str | None = None
    flavour: str | None = None
    library: str | None = None
    on_disk: str | None = None
    cards: Sequence[Card] = ()
    modules: Mapping[str, bool] = field(default_factory=dict)
    kernels: Sequence[Kernel] = ()
    builds: Sequence[Build] = ()
    nvswitches: int | None = None
    fabric_manager: FabricManager = field(default_factory=lambda: FabricManager("absent"))
    persistence: str = "absent"
    unit: Unit = field(default_factory=Unit)
    persistence_mode: bool | None = None
    can_hold: bool = True
    secure_boot: str = "disabled"
    key_enrolled: bool | None = None
    origin: str = NOBODY
    holders: Sequence[str] = ()

    @property
    def versions(self) -> dict[str, str]:
        """The driver's packages: version by name."""
        return driver_packages(self.installed)

    @property
    def release(self) -> str | None:
        """The release that is installed: of the module's file, else of the packages."""
        return self.on_disk or release_installed(self.versions)

    @property
    def running(self) -> Kernel | None:
        """The running kernel."""
        return next((one for one in self.kernels if one.running), None)

    @property
    def has_uvm(self) -> bool:
        """Is there a file of nvidia-uvm that the running kernel could load?"""
        return self.running is not None and self.running.uvm is not None

    @property
    def is_vendor_image(self) -> bool:
        """Does the machine's vendor look after this image, with its driver?"""
        return self.os.vendor_image is not None
