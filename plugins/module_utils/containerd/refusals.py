# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why containerd's configuration is left as it is, where somebody else keeps it. Pure."""

from __future__ import annotations

from .tool import UNIT, ContainerdState


class ContainerdRefusedError(Exception):
    """Nothing was changed, and the message says why and what to do."""


_RANCHER = (
    "{0} runs a containerd of its own and writes its configuration anew at every start. Put "
    "settings into a drop-in below /var/lib/rancher/{1}/agent/etc/containerd/config-v3.toml.d "
    "(releases from March 2026 on), else into config-v3.toml.tmpl there (config.toml.tmpl up to "
    'containerd 1.7) that begins with {{{{ template "base" . }}}}, and restart {0} when its pods '
    "may wait. It finds the NVIDIA runtime by itself"
)
_KEEPER_TEXT = {
    "k3s": _RANCHER.format("k3s", "k3s"),
    "RKE2": _RANCHER.format("RKE2", "rke2"),
    "k0s": "k0s runs a containerd of its own. Put settings into /etc/k0s/containerd.d/*.toml",
    "MicroK8s": "MicroK8s runs a containerd of its own. Put settings into its "
    "/var/snap/microk8s/current/args/containerd-template.toml",
    "a distribution of Kubernetes": "this file belongs to the containerd of k3s, RKE2, k0s or "
    "MicroK8s, which write it themselves; see there for a template or drop-in",
}


def refuse_keepers(state: ContainerdState, path: str) -> None:
    """Raise ContainerdRefusedError unless the file at ``path`` is for us to change."""
    keeper = state.keeper
    if "/rancher/" in path or "/k0s" in path or "/microk8s/" in path:
        keeper = keeper or "a distribution of Kubernetes"
    elif state.has_unit or (state.status == "absent" and keeper is None):
        if path != state.config_path and state.status != "absent":
            raise ContainerdRefusedError(
                f"{UNIT} reads {state.config_path}, not {path}; leave the option path out"
            )
        return
    if keeper is None:
        raise ContainerdRefusedError(
            f"there is a containerd here but no {UNIT}: who starts it (dockerd starts one of its "
            "own where it finds none) gives it a configuration of its own, which reads no file of "
            f"ours. Install containerd's package with its unit, or leave the settings out"
        )
    raise ContainerdRefusedError(f"nothing was changed: {_KEEPER_TEXT[keeper]}")
