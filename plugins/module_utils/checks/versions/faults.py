# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Known vulnerabilities and the releases that mend them. Data, with sources.

A row is added by hand when an advisory appears; nothing else has to be changed. The table in
``docs/versions.md`` is generated from here.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..model import Severity


@dataclass(frozen=True)
class Fault:
    """One advisory, or several that one release mends.

    ``fixed`` has the first good release of each branch, oldest first. ``since`` is the first bad
    release ("": all before). ``published`` is the day (ISO) on which it became known. ``only``
    names what a host must have to be exposed, a key of ``matrix.EXPOSED``; where that is not
    known, the finding is an info. ``width`` is how many numbers name a branch.
    """

    component: str
    cves: tuple[str, ...]
    fixed: tuple[str, ...]
    what: str
    severity: Severity
    published: str
    source: str
    since: str = ""
    only: str = ""
    width: int = 2


_E, _W, _I = Severity.ERROR, Severity.WARNING, Severity.INFO

FAULTS: tuple[Fault, ...] = (
    # --- runc
    Fault(
        "runc",
        ("CVE-2019-5736",),
        ("1.0.0",),
        "a container overwrites the runc of the host",
        _E,
        "2019-02-11",
        "runc GHSA-gxmr-w5mj-v8hh",
    ),
    Fault(
        "runc",
        ("CVE-2021-30465",),
        ("1.0.0",),
        "a mount is redirected to the host by a race with symbolic links",
        _E,
        "2021-05-19",
        "runc GHSA-c3xm-pvg7-gh7r",
    ),
    Fault(
        "runc",
        ("CVE-2023-25809", "CVE-2023-27561", "CVE-2023-28642"),
        ("1.1.5",),
        "access control is bypassed through /proc or /sys/fs/cgroup",
        _W,
        "2023-03-29",
        "runc CHANGELOG 1.1.5",
    ),
    Fault(
        "runc",
        ("CVE-2024-21626",),
        ("1.1.12",),
        "a container reaches the host's file system through a leaked descriptor",
        _E,
        "2024-01-31",
        "runc GHSA-xr7r-f8xq-vfvv",
    ),
    Fault(
        "runc",
        ("CVE-2024-45310",),
        ("1.1.14", "1.2.0"),
        "empty files or directories can be made on the host",
        _I,
        "2024-09-03",
        "runc GHSA-jfvp-7x6p-h2pv",
    ),
    Fault(
        "runc",
        ("CVE-2025-31133", "CVE-2025-52565", "CVE-2025-52881"),
        ("1.2.8", "1.3.3", "1.4.0"),
        "a container breaks out through masked paths, /dev/console or redirected writes to /proc",
        _E,
        "2025-11-05",
        "runc CHANGELOG 1.2.8, 1.3.3 and 1.4.0-rc.3",
    ),
    Fault(
        "runc",
        ("CVE-2026-41579",),
        ("1.3.6", "1.4.3", "1.5.0"),
        "an image whose /dev is a symbolic link gets limited write access to the host",
        _I,
        "2026-06-30",
        "runc release notes 1.3.6; CVE-2026-41579 (CVSS 3.3)",
    ),
    # --- containerd
    Fault(
        "containerd",
        ("CVE-2022-23648",),
        ("1.4.13", "1.5.10", "1.6.1"),
        "an image reads arbitrary files of the host",
        _W,
        "2022-03-02",
        "containerd GHSA-crp2-qrr5-8pq7",
        only="cri",
    ),
    Fault(
        "containerd",
        ("CVE-2024-40635",),
        ("1.6.38", "1.7.27", "2.0.4"),
        "a user id above 32 bits makes a container run as root",
        _I,
        "2025-03-17",
        "containerd GHSA-265r-hfxg-fhmg",
    ),
    Fault(
        "containerd",
        ("CVE-2024-25621",),
        ("1.7.29", "2.0.7", "2.1.5", "2.2.0"),
        "its directories are open to every local user",
        _W,
        "2025-11-06",
        "containerd GHSA-pwhc-rpq9-4c8w",
    ),
    Fault(
        "containerd",
        ("CVE-2025-64329",),
        ("1.7.29", "2.0.7", "2.1.5", "2.2.0"),
        "repeated attach exhausts its memory",
        _I,
        "2025-11-06",
        "containerd GHSA-m6hq-p25p-ffr2",
        only="cri",
    ),
    Fault(
        "containerd",
        ("CVE-2026-53488",),
        ("1.7.33", "2.0.10", "2.1.9", "2.2.5", "2.3.2"),
        "a label of an image becomes a command that root runs on the host",
        _E,
        "2026-06-18",
        "containerd GHSA-xhf5-7wjv-pqxp",
        only="cri",
    ),
    Fault(
        "containerd",
        ("CVE-2026-47262",),
        ("1.7.33", "2.0.10", "2.1.9", "2.2.5", "2.3.2"),
        "an image with a huge group file exhausts its memory",
        _I,
        "2026-06-18",
        "containerd GHSA-jpcc-p29g-p8mq",
    ),
    Fault(
        "containerd",
        ("CVE-2026-50195", "CVE-2026-53489", "CVE-2026-53492"),
        ("2.1.9", "2.2.5", "2.3.2"),
        "a restored checkpoint reads host files or smuggles in CDI devices",
        _E,
        "2026-06-18",
        "containerd release notes 2.2.5",
        since="2.1.0",
        only="cri",
    ),
    # --- Docker Engine
    Fault(
        "docker",
        ("CVE-2023-28840", "CVE-2023-28841", "CVE-2023-28842"),
        ("20.10.24", "23.0.3"),
        "traffic of encrypted overlay networks may be unencrypted",
        _W,
        "2023-04-04",
        "moby GHSA-232p-vwff-86mp",
        only="swarm",
    ),
    Fault(
        "docker",
        ("CVE-2024-41110",),
        ("23.0.15", "25.0.6", "26.1.5", "27.1.1"),
        "requests without a body pass authorization plugins",
        _E,
        "2024-07-23",
        "moby GHSA-v23v-6jw2-98fq",
        only="authz",
    ),
    Fault(
        "docker",
        ("CVE-2026-34040",),
        ("29.3.1",),
        "requests with an oversized body pass authorization plugins",
        _E,
        "2026-03-27",
        "moby GHSA-x744-4wpc-v9h2",
        only="authz",
    ),
    Fault(
        "docker",
        ("CVE-2026-41567", "CVE-2026-41568", "CVE-2026-42306"),
        ("29.5.1",),
        "docker cp into a hostile container lets it write to the host or run code there",
        _I,
        "2026-06-05",
        "moby GHSA-x86f-5xw2-fm2r, GHSA-vp62-88p7-qqf5, GHSA-rg2x-37c3-w2rh",
    ),
    # --- NVIDIA Container Toolkit
    Fault(
        "toolkit",
        ("CVE-2024-0132", "CVE-2024-0133"),
        ("1.16.2",),
        "a crafted image reaches the host's file system (a race in the default mode)",
        _E,
        "2024-09-25",
        "NVIDIA security bulletin 5582",
    ),
    Fault(
        "toolkit",
        ("CVE-2024-0134",),
        ("1.17.0",),
        "a crafted image creates files on the host",
        _W,
        "2024-11-05",
        "NVIDIA security bulletin 5585",
    ),
    Fault(
        "toolkit",
        ("CVE-2024-0135", "CVE-2024-0136", "CVE-2024-0137"),
        ("1.17.1",),
        "a crafted image modifies a host binary; with other than default settings it also reaches "
        "devices or the host's network",
        _E,
        "2025-01-15",
        "NVIDIA security bulletin 5599",
    ),
    Fault(
        "toolkit",
        ("CVE-2025-23359",),
        ("1.17.4",),
        "a crafted image reaches the host's file system (the fix of CVE-2024-0132 was incomplete)",
        _E,
        "2025-02-11",
        "NVIDIA security bulletin 5616",
    ),
    Fault(
        "toolkit",
        ("CVE-2025-23266", "CVE-2025-23267"),
        ("1.17.8",),
        "hooks run as root with the environment of the image: code execution on the host",
        _E,
        "2025-07-15",
        "NVIDIA security bulletin 5659 (CVSS 9.0)",
    ),
    Fault(
        "toolkit",
        ("CVE-2026-24260",),
        ("1.19.1",),
        "a race leads to code execution with elevated rights",
        _E,
        "2026-06-30",
        "NVIDIA security bulletin 5850 (CVSS 8.5)",
    ),
    # --- GPU Operator, device plugin, MIG manager
    Fault(
        "gpu_operator",
        ("CVE-2024-0132", "CVE-2024-0133"),
        ("24.6.2",),
        "it brings a toolkit through which a crafted image reaches the host",
        _E,
        "2024-09-25",
        "NVIDIA security bulletin 5582",
    ),
    Fault(
        "gpu_operator",
        ("CVE-2024-0134",),
        ("24.9.0",),
        "it brings a toolkit through which a crafted image creates files on the host",
        _W,
        "2024-11-05",
        "NVIDIA security bulletin 5585",
    ),
    Fault(
        "gpu_operator",
        ("CVE-2024-0135", "CVE-2024-0136", "CVE-2024-0137"),
        ("24.9.1",),
        "it brings a toolkit through which a crafted image modifies host binaries",
        _E,
        "2025-01-15",
        "NVIDIA security bulletin 5599",
    ),
    Fault(
        "gpu_operator",
        ("CVE-2025-23359",),
        ("24.9.2",),
        "it brings a toolkit through which a crafted image reaches the host",
        _E,
        "2025-02-11",
        "NVIDIA security bulletin 5616",
    ),
    Fault(
        "gpu_operator",
        ("CVE-2025-23266", "CVE-2025-23267"),
        ("25.3.2",),
        "it brings a toolkit whose hooks run code of the image as root",
        _E,
        "2025-07-15",
        "NVIDIA security bulletin 5659 (range widened to 25.3.1 by its update)",
    ),
    Fault(
        "gpu_operator",
        ("CVE-2026-24260",),
        ("26.3.2",),
        "it brings a toolkit with a race that leads to code execution",
        _E,
        "2026-06-30",
        "NVIDIA security bulletin 5850",
    ),
    Fault(
        "device_plugin",
        ("CVE-2025-23266",),
        ("0.17.3",),
        "the CDI specs it writes run hooks with the environment of the image",
        _W,
        "2025-07-15",
        "NVIDIA security bulletin 5659 (CDI strategies only)",
    ),
    Fault(
        "mig_manager",
        ("CVE-2025-23266",),
        ("0.12.2",),
        "it brings a toolkit whose hooks run code of the image as root",
        _W,
        "2025-07-15",
        "NVIDIA security bulletin 5659",
    ),
    # --- DCGM
    Fault(
        "dcgm",
        ("CVE-2026-47483",),
        ("4.5.3",),
        "profiling requests without authentication exhaust it",
        _W,
        "2026-07-28",
        "NVIDIA security bulletin 5857",
    ),
    Fault(
        "dcgm_exporter",
        ("CVE-2026-47483",),
        ("4.8.2",),
        "its /debug/pprof answers without authentication and can be exhausted",
        _W,
        "2026-07-28",
        "NVIDIA security bulletin 5857",
    ),
    # --- the driver: faults that need a local user, so infos
    Fault(
        "driver",
        ("CVE-2026-24187", "CVE-2026-24190", "CVE-2026-24192", "CVE-2026-24197"),
        ("535.309.01", "580.159.03", "595.71.05"),
        "a local user gains rights or hangs a GPU; MIG changes may corrupt data",
        _I,
        "2026-05-19",
        "NVIDIA security bulletin 5821",
        width=1,
    ),
    Fault(
        "driver",
        ("CVE-2026-47501",),
        ("580.178.04", "595.91.07", "610.57.04"),
        "a local user gains rights",
        _I,
        "2026-08-05",  # the earliest: the list of 2026-08-04 lacks it
        "NVIDIA security bulletin 5861",
        width=1,
    ),
)
