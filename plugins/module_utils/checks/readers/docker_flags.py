# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The flags of docker run and create, docker itself, update, service create and dockerd; and those
that podman and nerdctl have besides. Pure.

Read from docker/cli v20.10.24 to v29.7.2 (cli/command/container/{opts,run,create,update}.go,
cli/flags/options.go, docs/reference/dockerd.md), podman 5 (podman-run.1.md) and nerdctl 2
(docs/command-reference.md).
"""

from __future__ import annotations

from collections.abc import Mapping

from .pflag import LIST, SWITCH, VALUE, Table


def _kinds(switches: str = "", values: str = "", lists: str = "") -> dict[str, str]:
    return {
        **dict.fromkeys(switches.split(), SWITCH),
        **dict.fromkeys(values.split(), VALUE),
        **dict.fromkeys(lists.split(), LIST),
    }


_RUN_KINDS = _kinds(
    switches="""
    detach disable-content-trust help init interactive no-healthcheck oom-kill-disable privileged
    publish-all quiet read-only rm sig-proxy tty use-api-socket
    """,
    values="""
    blkio-weight cgroup-parent cgroupns cidfile cpu-count cpu-percent cpu-period cpu-quota
    cpu-rt-period cpu-rt-runtime cpu-shares cpus cpuset-cpus cpuset-mems detach-keys domainname
    entrypoint health-cmd health-interval health-retries health-start-interval health-start-period
    health-timeout hostname io-maxbandwidth io-maxiops ip ip6 ipc isolation kernel-memory
    log-driver mac-address memory memory-reservation memory-swap memory-swappiness name
    oom-score-adj pid pids-limit platform pull restart runtime shm-size stop-signal stop-timeout
    user userns uts volume-driver workdir
    """,
    lists="""
    add-host annotation attach blkio-weight-device cap-add cap-drop device device-cgroup-rule
    device-read-bps device-read-iops device-write-bps device-write-iops dns dns-option dns-search
    env env-file expose gpus group-add label label-file link link-local-ip log-opt mount network
    network-alias publish security-opt storage-opt sysctl tmpfs ulimit volume volumes-from
    """,
)
_RUN_SHORTS = {
    "a": "attach",
    "c": "cpu-shares",
    "d": "detach",
    "e": "env",
    "h": "hostname",
    "i": "interactive",
    "l": "label",
    "m": "memory",
    "P": "publish-all",
    "p": "publish",
    "q": "quiet",
    "t": "tty",
    "u": "user",
    "v": "volume",
    "w": "workdir",
}
_RUN_ALIASES = {"net": "network", "net-alias": "network-alias", "dns-opt": "dns-option"}

DOCKER_RUN = Table(_RUN_KINDS, _RUN_SHORTS, _RUN_ALIASES)

# docker create is docker run without what belongs to being attached.
DOCKER_CREATE = Table(
    {k: v for k, v in _RUN_KINDS.items() if k not in ("detach", "sig-proxy", "detach-keys")},
    {letter: name for letter, name in _RUN_SHORTS.items() if letter != "d"},
    _RUN_ALIASES,
)

# The version of the docker command that brought a flag; those that are not here are older.
SINCE: Mapping[str, str] = {
    "quiet": "23.0",
    "annotation": "24.0",
    "health-start-interval": "25.0",
    "use-api-socket": "28.1",
}

_PODMAN_KINDS = {
    **_RUN_KINDS,
    **_kinds(
        switches="""
        env-host http-proxy no-hostname no-hosts passwd read-only-tmpfs replace rmi rootfs
        tls-verify unsetenv-all
        """,
        values="""
        arch authfile cert-dir cgroups conmon-pidfile creds group-entry health-log-destination
        health-max-log-count health-max-log-size health-on-failure health-startup-cmd
        health-startup-interval health-startup-retries health-startup-success
        health-startup-timeout hosts-file image-volume init-ctr init-path os passwd-entry
        personality pidfile pod pod-id-file preserve-fd preserve-fds rdt-class retry retry-delay
        sdnotify seccomp-policy shm-size-systemd signature-policy subgidname subuidname systemd
        timeout tz umask variant
        """,
        lists="""
        cgroup-conf chrootdirs decryption-key env-merge gidmap hostuser requires secret uidmap
        unsetenv
        """,
    ),
}
PODMAN_RUN = Table(_PODMAN_KINDS, _RUN_SHORTS, _RUN_ALIASES)

_NERDCTL_KINDS = {
    **_RUN_KINDS,
    **_kinds(
        switches="rootfs systemd-cgroup",
        values="""
        bypass4netns cosign-certificate-identity cosign-certificate-identity-regexp
        cosign-certificate-oidc-issuer cosign-certificate-oidc-issuer-regexp cosign-key
        ipfs-address pidfile rdt-class systemd umask verify
        """,
        lists="cgroup-conf",
    ),
}
NERDCTL_RUN = Table(_NERDCTL_KINDS, _RUN_SHORTS, _RUN_ALIASES)

# What stands between the engine's name and its subcommand.
GLOBAL: Mapping[str, Table] = {
    "docker": Table(
        _kinds(
            switches="debug tls tlsverify version help",
            values="config context log-level tlscacert tlscert tlskey",
            lists="host",
        ),
        {"D": "debug", "l": "log-level", "H": "host", "c": "context", "v": "version", "h": "help"},
    ),
    "podman": Table(
        _kinds(
            switches="remote noout syslog transient-store version help",
            values="""
            cgroup-manager config conmon connection events-backend identity imagestore log-level
            namespace network-cmd-path network-config-dir out root runroot runtime ssh
            storage-driver tmpdir url volumepath tls-ca tls-cert tls-key
            """,
            lists="cdi-spec-dir hooks-dir module pull-option runtime-flag storage-opt",
        ),
        {"r": "remote", "c": "connection", "v": "version", "h": "help"},
    ),
    "nerdctl": Table(
        _kinds(
            switches="""
            debug debug-full insecure-registry experimental kube-hide-dupe version help
            userns-remap
            """,
            values="""
            address namespace snapshotter cni-path cni-netconfpath data-root cgroup-manager
            bridge-ip host-gateway-ip cdi-spec-dirs storage-driver global-dns
            """,
            lists="hosts-dir host",
        ),
        {"a": "address", "n": "namespace", "H": "host", "v": "version", "h": "help"},
    ),
}

_UPDATE = _kinds(
    values="""
    blkio-weight cpu-period cpu-quota cpu-rt-period cpu-rt-runtime cpu-shares cpus cpuset-cpus
    cpuset-mems kernel-memory memory memory-reservation memory-swap pids-limit restart
    """,
    switches="help",
)
DOCKER_UPDATE = Table(_UPDATE, {"c": "cpu-shares", "m": "memory"})

DOCKER_SERVICE_CREATE = Table(
    _kinds(
        switches="detach help init no-healthcheck no-resolve-image quiet read-only tty"
        " with-registry-auth",
        values="""
        credential-spec endpoint-mode entrypoint health-cmd health-interval health-retries
        health-start-interval health-start-period health-timeout hostname isolation limit-cpu
        limit-memory limit-pids log-driver max-concurrent memory-swap memory-swappiness mode name
        oom-score-adj replicas replicas-max-per-node reserve-cpu reserve-memory restart-condition
        restart-delay restart-max-attempts restart-window rollback-delay rollback-failure-action
        rollback-max-failure-ratio rollback-monitor rollback-order rollback-parallelism
        stop-grace-period stop-signal update-delay update-failure-action
        update-max-failure-ratio update-monitor update-order update-parallelism user workdir
        """,
        lists="""
        cap-add cap-drop config constraint container-label dns dns-option dns-search env env-file
        generic-resource group host label log-opt mount network placement-pref publish secret
        sysctl ulimit
        """,
    ),
    {
        "d": "detach",
        "e": "env",
        "l": "label",
        "p": "publish",
        "q": "quiet",
        "t": "tty",
        "u": "user",
        "w": "workdir",
    },
)

# The flags of all dockerd from 20.10 to 29.7: which version has which is engine/daemon_keys.
DOCKERD = Table(
    _kinds(
        switches="""
        allow-direct-routing cri-containerd debug experimental help icc init ip-forward
        ip-forward-no-drop ip-masq ip6tables iptables ipv6 live-restore no-new-privileges
        raw-logs rootless selinux-enabled tls tlsverify userland-proxy validate version
        """,
        values="""
        api-cors-header bip bip6 bridge bridge-accept-fwmark cgroup-parent config-file containerd
        containerd-namespace containerd-plugins-namespace cpu-rt-period cpu-rt-runtime data-root
        default-cgroupns-mode default-gateway default-gateway-v6 default-ipc-mode default-runtime
        default-shm-size exec-root firewall-backend fixed-cidr fixed-cidr-v6 group http-proxy
        https-proxy init-path ip log-driver log-format log-level max-concurrent-downloads
        max-concurrent-uploads max-download-attempts metrics-addr mtu network-control-plane-mtu
        no-proxy oom-score-adjust pidfile seccomp-profile shutdown-timeout storage-driver
        swarm-default-advertise-addr tlscacert tlscert tlskey userland-proxy-path userns-remap
        cluster-advertise cluster-store graph
        """,
        lists="""
        add-runtime allow-nondistributable-artifacts authorization-plugin cdi-spec-dir
        cluster-store-opt default-address-pool default-network-opt default-ulimit dns dns-opt
        dns-search exec-opt feature host host-gateway-ip insecure-registry label log-opt
        node-generic-resource registry-mirror storage-opt
        """,
    ),
    {
        "b": "bridge",
        "D": "debug",
        "G": "group",
        "H": "host",
        "l": "log-level",
        "p": "pidfile",
        "s": "storage-driver",
        "v": "version",
        "g": "graph",
    },
)


def run_table(engine: str, how: str) -> Table:
    """The flags of ``run`` or ``create`` of an engine."""
    if engine == "podman":
        return PODMAN_RUN
    if engine == "nerdctl":
        return NERDCTL_RUN
    return DOCKER_CREATE if how == "create" else DOCKER_RUN
