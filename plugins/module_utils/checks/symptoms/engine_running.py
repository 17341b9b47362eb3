# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Docker that does not answer or run, and the old wrapper nvidia-docker. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from .engine import FLAG_AND_FILE, JOURNAL, UNKNOWN_FLAG, VALIDATE
from .engine_gpu import BAD_JSON

PERMISSION = Cause(
    id="docker-socket-permission",
    title="The user may not open Docker's socket",
    why="It belongs to root and the group docker.",
    proof="ls -l /var/run/docker.sock; id",
    shows="a user who is not in the group docker",
    fix="Use sudo, or add the user to the group (which is as good as root) and log in again.",
    commands=("usermod -aG docker $USER",),
    sources=("Docker documentation, post-installation",),
    hints=(r"permission denied",),
)

NOT_RUNNING = Cause(
    id="docker-not-running",
    title="The daemon does not run, or another one is asked",
    why="A faulty configuration, a full disk or DOCKER_HOST that points elsewhere.",
    proof=f"systemctl status docker --no-pager; {JOURNAL}; echo $DOCKER_HOST; docker context "
    f"ls; df "
    "-h /var/lib/docker",
    shows="failed, and the reason in the journal",
    fix="Correct what the journal names, then start it.",
    commands=(VALIDATE, "systemctl reset-failed docker", "systemctl start docker"),
    sources=("Docker documentation, troubleshooting",),
    hints=(r"is the docker daemon running",),
)

_DISK = Cause(
    id="host-disk-full",
    title="The disk is full",
    why="Images, build cache, logs without a limit.",
    proof="df -h /var/lib/docker /var/lib/containerd /tmp; df -i /var/lib/docker; docker system df",
    shows="100 %, of bytes or inodes",
    fix="Remove what is not used, limit logs (log-opts max-size), move data-root.",
    commands=("docker system df", "docker system prune"),
    sources=("Docker documentation, pruning",),
    hints=(r"no space left",),
)

_STORAGE = Cause(
    id="storage-driver-refused",
    title="The storage driver does not start on this disk",
    why="The driver of before is gone from the engine (aufs, devicemapper, overlay), or the file "
    "system below data-root cannot carry overlay2 (ftype=0, NFS, another overlay).",
    proof="journalctl -u docker -n 30 --no-pager | grep -i -E 'graphdriver|overlay|storage'; "
    "docker info -f '{{.Driver}}'; findmnt -T /var/lib/docker",
    shows="the driver's own reason",
    fix="Correct storage-driver and data-root in daemon.json; images of a removed driver must be "
    "saved with the older engine first.",
    commands=("findmnt -T /var/lib/docker",),
    sources=("Docker documentation, storage drivers",),
    hints=(r"graphdriver|storage driver",),
)

_MASKED = Cause(
    id="restart-loop",
    title="systemd has given up after too many restarts",
    why="The unit failed several times within seconds; the reason stands before it in the journal.",
    proof=JOURNAL,
    shows="the first failure",
    fix="Correct that, then reset the counter and start.",
    commands=("systemctl reset-failed docker", "systemctl start docker"),
    sources=("systemd.unit(5), StartLimitBurst",),
    hints=(r"repeated too quickly|start-limit",),
)

_NOT_CONTAINER_USE = Cause(
    id="nvidia-docker-retired",
    title="nvidia-docker and its unit are gone",
    why="nvidia-docker2 was removed with toolkit 1.15; there is no nvidia-docker.service and no "
    "nvidia-container-runtime.service.",
    proof="command -v nvidia-docker; systemctl cat nvidia-docker",
    shows="nothing",
    fix="docker run --gpus all, and restart docker.",
    commands=("systemctl restart docker",),
    sources=("NVIDIA Container Toolkit release notes 1.15",),
    hints=(r"nvidia-docker",),
)

SELINUX_WRAPPER = Cause(
    id="nvidia-docker-mislabelled",
    title="SELinux labels the wrapper nvidia-docker as an X server program",
    why="The pattern for nvidia* programs gave it xserver_exec_t, which may not start docker.",
    proof="ls -Z /bin/nvidia-docker; ausearch -m avc -ts recent | tail -2",
    shows="xserver_exec_t",
    fix="Use docker --gpus directly, or relabel it.",
    commands=("chcon -t bin_t /bin/nvidia-docker",),
    sources=("NVIDIA/nvidia-docker issue 814", "NVIDIA/dgx-selinux PR 6"),
    cases=("TK-035",),
    hints=(r"/bin/nvidia-docker", r"selinux|xserver"),
)

_IPTABLES = Cause(
    id="engine-firewall",
    title="The engine cannot write its firewall rules",
    why="Missing kernel modules, nft and legacy tables side by side, or a flushed table.",
    proof="iptables -t nat -L DOCKER -n; lsmod | grep -E 'nf_nat|br_netfilter|ip_tables'; "
    "iptables --version",
    shows="no chain DOCKER, or an error",
    fix="Restart docker after firewall changes; load the modules of the running kernel (reboot "
    "after "
    "a kernel update).",
    commands=("systemctl restart docker",),
    sources=("Docker documentation, packet filtering",),
    hints=(r"iptables|nft",),
)

SYMPTOMS = (
    Symptom(
        id="docker-socket-denied",
        title="Docker's socket is shut",
        patterns=(
            r"permission denied while trying to connect to the Docker daemon socket",
            r"dial unix \S{0,80}docker\.sock: connect: permission denied",
            r"Got permission denied while trying to connect",
        ),
        causes=(PERMISSION,),
        tell_apart="ls -l /var/run/docker.sock; id; echo $DOCKER_HOST",
        sources=("Docker documentation, post-installation",),
    ),
    Symptom(
        id="docker-not-running",
        title="The Docker daemon does not answer",
        patterns=(
            r"Cannot connect to the Docker daemon",
            r"Is the docker daemon running",
            r"docker\.service: (Failed|Main process exited|Start request repeated)",
            r"Failed to start (Docker Application Container Engine|docker\.service)",
            r"Job for docker\.service failed",
            r"failed to start daemon",
        ),
        causes=(
            NOT_RUNNING,
            BAD_JSON,
            FLAG_AND_FILE,
            UNKNOWN_FLAG,
            _MASKED,
            _DISK,
            _IPTABLES,
            _STORAGE,
        ),
        tell_apart=f"systemctl status docker --no-pager; {JOURNAL}; {VALIDATE}; df -h "
        "/var/lib/docker; docker context ls",
        sources=("Docker documentation, troubleshooting",),
    ),
    Symptom(
        id="disk-full",
        title="No space left on device",
        patterns=(r"(?<!fallocate failed : )no space left on device", r"disk quota exceeded"),
        causes=(_DISK,),
        tell_apart="df -h; df -i; docker system df",
        sources=("Docker documentation, pruning",),
    ),
    Symptom(
        id="nvidia-docker-gone",
        title="nvidia-docker is gone",
        patterns=(
            r"nvidia-docker(2|\.service)?:? .{0,30}(not found|could not be found|no such)",
            r"Unit nvidia-(docker|container-runtime|container-toolkit)\.service (could not be "
            r"found|"
            r"not found)",
            r"(Unable to locate package|has no installation candidate).{0,20}nvidia-docker2?",
            r"Unable to locate package nvidia-docker",
        ),
        causes=(_NOT_CONTAINER_USE,),
        tell_apart="command -v nvidia-docker nvidia-container-runtime; docker info -f '{{json "
        ".Runtimes}}'",
        sources=("NVIDIA Container Toolkit release notes 1.15",),
    ),
    Symptom(
        id="nvidia-docker-denied",
        title="nvidia-docker may not start docker",
        patterns=(r"nvidia-docker: line \d+: \S{0,80}docker: Permission denied",),
        causes=(SELINUX_WRAPPER,),
        tell_apart="ls -Z /bin/nvidia-docker /bin/docker; getenforce",
        sources=("NVIDIA/nvidia-docker issue 814",),
        cases=("TK-035",),
    ),
)
