# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What changes with which release: the tables that ``judge`` reads. Data, with sources.

Keys, flags and API versions of each release of Docker are in :mod:`..engine.daemon_keys`, faults
of runc and containerd in :mod:`..checks.versions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

# The major releases of Docker, oldest first: the hops of an upgrade. 21 and 22 were never made.
MAJORS = ("20.10", "23.0", "24.0", "25.0", "26.0", "27.0", "28.0", "29.0")

# Storage drivers, and the first release without them (docker/cli docs/deprecated.md).
STORAGE_GONE: Mapping[str, str] = MappingProxyType(
    {"aufs": "24.0.0", "overlay": "24.0.0", "devicemapper": "25.0.0"}
)
# Log drivers, likewise.
LOGGING_GONE: Mapping[str, str] = MappingProxyType({"logentries": "25.0.0"})
DEPRECATED = "docker/cli docs/deprecated.md"

# CDI: there from, on by default from (moby daemon/cdi.go and daemon/config of each release).
CDI_SINCE = "25.0.0"
CDI_DEFAULT = "28.2.0"
CDI_SOURCE = "moby daemon/cdi.go at v25.0.0, v27.5.0 and v28.2.0"

# From here on containers with CDI devices start with the daemon (restart policies).
CDI_RESTARTS = "28.2.0"
CDI_RESTARTS_SOURCE = "moby/moby issue 49989, pull request 49990"

# From here on --gpus is served by CDI where nvidia-cdi-hook is installed.
GPUS_BY_CDI = "29.2.0"
GPUS_SOURCE = "moby daemon/nvidia_linux.go at v27.1.0, daemon/devices_nvidia_linux.go at v29.2.0"

CGROUP_V1_DEPRECATED = "29.0.0"

# containerd.service without LimitNOFILE: containers inherit systemd's soft limit of 1024.
NOFILE_CONTAINERD = "2.1.5"
NOFILE_SOURCE = "moby/moby issue 51485, containerd pull request 8924"

# The containerd image store: there from, the default of fresh installations from.
IMAGE_STORE_SINCE = "24.0.0"
IMAGE_STORE_DEFAULT = "29.0.0"
IMAGE_STORE_SOURCE = "Docker release notes 29.0; docs.docker.com, containerd image store"

# The first generation of shims is gone.
SHIM_VERSION_SOURCE = (
    "containerd core/runtime/v2/shim.go (unsupported shim version); seen with 2.1.9 and 1.7.24"
)
SHIMS_GONE = "2.0.0"
SHIMS_SOURCE = "containerd docs/containerd-2.0.md"
CONTAINERD_CONFIG_SOURCE = "containerd docs/containerd-2.0.md, RELEASES.md, version/version.go"

API_SOURCE = "moby api/common.go and daemon/config/config.go of each release"
LIVE_RESTORE_SOURCE = "docs.docker.com, engine/daemon/live-restore"
RESTART_POLICY_SOURCE = "docs.docker.com, engine/containers/start-containers-automatically"
UNIT_SOURCE = "systemd.unit(5), Requires=, Requisite=, BindsTo=, PartOf="
RELOAD_SOURCE = "NVIDIA container toolkit, troubleshooting; nvidia-container-toolkit issue 48"

# Pairs of releases between which running containers were seen to be carried over by live-restore,
# with their processes, exec and GPU, in both directions (Debian's packages).
CARRIED = (("26.1.5", "28.5.2"),)
