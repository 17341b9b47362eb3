# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Control groups and slices, as runc and systemd refuse them. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from .runc import INNER_NODE, V1

PARENT_FORM = Cause(
    id="cgroup-parent-not-slice",
    title="--cgroup-parent is not the name of a slice",
    why="With the systemd driver (the default on control groups v2) the parent must be xxx.slice; "
    "paths, scopes and services are refused.",
    proof="docker info -f '{{.CgroupDriver}} {{.CgroupVersion}}'",
    shows="systemd",
    fix="Use --cgroup-parent=gpu-batch.slice and define that slice as a unit.",
    commands=("docker run --cgroup-parent=gpu-batch.slice IMAGE",),
    sources=("moby PR 20310", "moby daemon/daemon_unix.go"),
    cases=("CG-013",),
    hints=(r"slice",),
)

DRIVERS_DIFFER = Cause(
    id="containerd-systemd-cgroup-differs",
    title="Kubelet, containerd and its runtimes use different cgroup drivers",
    why="SystemdCgroup is an option of each containerd runtime; the nvidia runtime often lacks it "
    "while runc and the kubelet use systemd.",
    proof="containerd config dump | grep -B8 SystemdCgroup; grep cgroupDriver "
    "/var/lib/kubelet/config.yaml; docker info -f '{{.CgroupDriver}}'",
    shows="true for one runtime and false for another, or cgroupfs beside systemd",
    fix="SystemdCgroup = true in the options of every runtime, cgroupDriver: systemd in the "
    "kubelet.",
    commands=("systemctl restart containerd kubelet",),
    sources=("k3s-io/k3s PR 8470", "containerd issue 4857"),
    cases=("CG-012",),
    hints=(r"kubepods|containerd\.service/", r"SystemdCgroup", r"slice:prefix:name", r"kubelet"),
)

_DELEGATE = Cause(
    id="slice-delegate",
    title="Delegate= stands on a slice",
    why="Delegation is for services and scopes; systemd takes controllers away that it thinks "
    "unused.",
    proof="systemctl cat NAME.slice | grep Delegate",
    shows="Delegate=yes in a .slice",
    fix="Move it to the service or scope below the slice.",
    commands=("systemctl daemon-reload",),
    sources=("greenplum-db/gpdb PR 16567", "systemd.resource-control(5)"),
    cases=("SY-002",),
    hints=(r"delegate", r"controllers"),
)

_SLICE_NAME = Cause(
    id="slice-name-nests",
    title="A dash in a slice's name makes it a child",
    why="gpu-batch.slice lies in gpu.slice, whose limits count, too.",
    proof="systemctl show -p ControlGroup gpu-batch.slice; systemd-cgls /gpu.slice",
    shows="/gpu.slice/gpu-batch.slice",
    fix="Name it without a dash, or set the limits along the whole chain.",
    commands=("systemctl show -p MemoryMax -p CPUQuotaPerSecUSec gpu.slice",),
    sources=("systemd.slice(5)", "moby PR 20310"),
    cases=("SY-001",),
    hints=(r"-\w+\.slice", r"unexpected"),
)

_ROOTLESS_DELEGATION = Cause(
    id="rootless-without-delegation",
    title="The user's session has no delegated controllers",
    why="A rootless engine can limit only what systemd delegates to the user.",
    proof="cat /sys/fs/cgroup/user.slice/user-$(id -u).slice/user@$(id -u).service/"
    "cgroup.controllers",
    shows="no cpu, cpuset or io",
    fix="Delegate=cpu cpuset io memory pids in user@.service.d, and log in again.",
    commands=(
        "mkdir -p /etc/systemd/system/user@.service.d",
        "printf '[Service]\\nDelegate=cpu cpuset io memory pids\\n' "
        ">/etc/systemd/system/user@.service.d/delegate.conf",
        "systemctl daemon-reload",
    ),
    sources=("rootlesscontaine.rs, control groups v2",),
    hints=(r"rootless|not available",),
)

SYMPTOMS = (
    Symptom(
        id="cgroup-parent-refused",
        title="The cgroup parent is refused",
        patterns=(
            r"cgroup-parent for systemd cgroup should be a valid slice",
            r"invalid slice name",
            r"cgroup parent .{0,60}(invalid|not a slice)",
        ),
        causes=(PARENT_FORM,),
        tell_apart="docker info -f '{{.CgroupDriver}} {{.CgroupVersion}}'",
        sources=("moby daemon/daemon_unix.go",),
        cases=("CG-013",),
    ),
    Symptom(
        id="cgroup-path-format",
        title="The runtime gets a path of the other cgroup driver",
        patterns=(
            r"expected cgroupsPath to be of format",
            r"slice:prefix:name",
            r"cgroup driver.{0,60}(differ|mismatch|is different)",
            r"misconfiguration: kubelet cgroup driver",
            r"(killed|land|lands) (or land )?in the wrong (hierarchy|cgroup)",
            r"nvidia runtime class are killed",
        ),
        causes=(DRIVERS_DIFFER,),
        tell_apart="containerd config dump | grep -B8 SystemdCgroup; grep cgroupDriver "
        "/var/lib/kubelet/config.yaml; docker info -f '{{.CgroupDriver}}'",
        sources=("containerd issue 4857",),
        cases=("CG-012",),
    ),
    Symptom(
        id="cgroup-controllers",
        title="Control groups: controllers cannot be enabled, or vanish",
        patterns=(
            r"Controllers? (vanish|cannot be enabled|disappear)",
            r"cgroup\.subtree_control.{0,60}(busy|not supported|invalid|no such)",
            r"(write|open) \S{0,80}/sys/fs/cgroup/\S{1,80}.{0,40}(device or resource busy|no such "
            r"file|invalid "
            r"argument|operation not supported|permission denied)",
            r"cannot enter cgroupv2.{0,80}",
            r"cannot set \S{1,80} limit: container could not join",
            r"controller .?(cpu|cpuset|io|memory|pids).? is not available",
            r"(cpu|cpuset|io|memory|pids) controller (is )?not delegated",
            r"error adding pid \d+ to cgroups?.{0,80}(busy|not supported|permission|no such)",
        ),
        causes=(INNER_NODE, _DELEGATE, _ROOTLESS_DELEGATION, V1),
        tell_apart="stat -fc %T /sys/fs/cgroup; cat /sys/fs/cgroup/cgroup.subtree_control; "
        "systemctl "
        "cat NAME.slice; cat /sys/fs/cgroup/NAME.slice/cgroup.procs",
        sources=("kernel cgroup-v2 documentation",),
        cases=("SY-002", "SY-003"),
    ),
    Symptom(
        id="slice-limits-of-parent",
        title="Limits of another slice count, too",
        patterns=(
            r"Limits (set )?on \S{1,80}\.slice (unexpectedly )?(also )?appl(y|ies)",
            r"\.slice.{0,60}(unexpected(ly)?|also) (appl|inherit|limit)",
            r"limits? .{0,40}(do(es)?|has|have) (not|no) (apply|effect).{0,40}slice",
        ),
        causes=(_SLICE_NAME,),
        tell_apart="systemctl show -p ControlGroup gpu-batch.slice; systemd-cgls",
        sources=("systemd.slice(5)",),
        cases=("SY-001",),
    ),
    Symptom(
        id="cgroup-v1-deprecated",
        title="Control groups v1",
        patterns=(
            r"cgroup ?v1 (support )?(is|has been) (deprecated|in maintenance|removed|not "
            r"supported)",
            r"Support for cgroup v1 is deprecated",
            r"kubelet is configured to not run on a host using cgroup v1",
            r"(requires?|needs?) cgroup ?v2",
            r"mountpoint for (devices|cgroup) not found|cgroup mountpoint does not exist",
            r"cannot find cgroup mount destination",
            r"no cgroup mount found",
        ),
        causes=(V1,),
        tell_apart="stat -fc %T /sys/fs/cgroup; cat /proc/cmdline; docker info -f "
        "'{{.CgroupVersion}}'",
        sources=("Docker release notes 29.0",),
    ),
)
