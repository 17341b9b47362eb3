# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which claims a host can meet, and the words for why it cannot."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.checks.host import (
    Gpu,
    HostView,
    MigDevice,
)
from ansible_collections.steadygpu.host.plugins.module_utils.claims import fit, grammar, tools

A100 = "NVIDIA A100-SXM4-40GB"
LINKS = [
    ["X", "NV12", "PXB", "SYS"],
    ["NV12", "X", "PXB", "SYS"],
    ["PXB", "PXB", "X", "SYS"],
    ["SYS", "SYS", "SYS", "X"],
]


def _host(links: Any = tuple(LINKS), driver: str = "550.163.01", **changes: Any) -> HostView:
    gpus = [
        Gpu(n, f"GPU-{'abcd'[n] * 4}", A100, memory_mib=40960, numa_node=n // 2) for n in range(4)
    ]
    gpus = [changes.get(f"gpu{gpu.index}", gpu) for gpu in gpus]
    return HostView(
        live=True,
        gpus=tuple(gpus),
        versions={"driver": driver, "cgroup": "2"},
        facts={"gpu": {"links": links}},
    )


MIG = Gpu(
    0,
    "GPU-aaaa",
    A100,
    memory_mib=40960,
    numa_node=0,
    mig=True,
    mig_devices=(MigDevice(0, "MIG-1", "3g.20gb"), MigDevice(1, "MIG-2", "1g.5gb")),
)


@pytest.mark.parametrize(
    "text",
    [
        "count=4",
        "count=all",
        "device=GPU-aaaa",
        "device=GPU-a",
        "device=3",
        "model=A100",
        "model=a100-sxm4-40gb",
        "model=H100,A100",
        "memory=40g",
        "count=2+link=nvlink",
        "count=3+link=pxb",
        "count=2+numa=single",
        "count=2+numa=1",
        "count=2+link=nvlink+numa=single",
        "count=4+link=sys",
        "mig=off",
        "memory=20g+policy=strict",
        "memory=8g+share=mps",
    ],
)
def test_what_the_host_has_is_no_conflict(text: str) -> None:
    assert fit.conflicts(grammar.parse(text), _host()) == []


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ("count=5", "count", "wants 5 devices; this host has 4"),
        ("device=GPU-ffff", "device", "not on this host"),
        ("device=7", "device", "not on this host"),
        ("model=H100", "model", A100),
        ("model=A10", "model", A100),
        ("memory=41g", "memory", "the largest has 40960 MiB"),
        ("count=3+link=nvlink", "link", "write link=pxb"),
        ("device=0,3+link=pxb", "link", "have sys between them"),
        ("count=3+numa=single", "numa", "no NUMA node of this host has so many"),
        ("count=3+numa=0", "numa", "on NUMA node 0; this host has 2 of 4"),
        ("mig=1g.5gb", "mig", "steadygpu mig plan all-1g.5gb"),
        ("memory=8g+share=mps+policy=strict", "policy", "soft-mps"),
    ],
)
def test_what_it_has_not_is_said_with_its_numbers(text: str, key: str, words: str) -> None:
    (conflict,) = fit.conflicts(grammar.parse(text), _host())
    assert conflict.key == key
    assert words in str(conflict)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("mig=3g.20gb", None),
        ("device=0:1", None),
        ("device=MIG-2", None),
        ("device=0+mig=1g.5gb", None),
        ("memory=8g+mig=3g.20gb+policy=strict+share=any", None),
        ("count=3", None),
        ("count=4+mig=off", "mig"),
        ("device=0", "device"),
        ("device=GPU-aaaa", "device"),
        ("count=2+mig=1g.5gb", "mig"),
    ],
)
def test_a_gpu_that_is_cut_is_its_mig_devices(text: str, key: str | None) -> None:
    found = fit.conflicts(grammar.parse(text), _host(gpu0=MIG))
    assert [conflict.key for conflict in found] == ([key] if key else [])


def test_a_sick_gpu_does_not_count_and_is_named() -> None:
    sick = Gpu(3, "GPU-dddd", A100, memory_mib=40960, numa_node=1, error="GPU is lost")
    (conflict,) = fit.conflicts(grammar.parse("count=4"), _host(gpu3=sick))
    assert "GPU 3: GPU is lost" in str(conflict)
    assert fit.conflicts(grammar.parse("count=3"), _host(gpu3=sick)) == []


def test_what_is_not_known_raises_no_alarm() -> None:
    assert fit.conflicts(grammar.parse("count=9"), HostView()) == []
    assert fit.conflicts(grammar.parse("count=4+link=nvlink"), _host(links=None)) == []
    bare = Gpu(0, None, None)
    assert fit.conflicts(grammar.parse("model=B200+memory=8g+numa=1"), _host(gpu0=bare)) == []


@pytest.mark.parametrize(
    ("text", "driver", "level"),
    [
        ("count=1", "550.1", None),
        ("memory=8g", "550.1", "exclusive"),
        ("memory=5g+mig=1g.5gb", "550.1", "hard-hw"),
        ("memory=8g+share=any", "615.71.09", "hard-driver"),
        ("memory=8g+share=mps", "550.1", "soft-mps"),
        ("memory=8g+share=time", "550.1", "advisory"),
    ],
)
def test_how_firmly_memory_is_held_is_told(text: str, driver: str, level: str | None) -> None:
    assert fit.level(grammar.parse(text), _host(driver=driver)) == level


GOOD = {"gpu": {"source": "nvml", "driver": {"status": "loaded"}}, "cdi": {"specs": []}}
SPEC = {"status": "valid", "kind": "nvidia.com/gpu"}


@pytest.mark.parametrize(
    ("text", "facts", "programs", "missing"),
    [
        ("count=1", GOOD, {"nvidia-ctk": "/usr/bin/nvidia-ctk"}, []),
        ("count=1", GOOD, {"nvidia-ctk": None}, ["nvidia-ctk"]),
        ("count=1", {**GOOD, "cdi": {"specs": [SPEC]}}, {"nvidia-ctk": None}, []),
        ("count=1", GOOD, {}, []),
        ("share=mps", GOOD, {"nvidia-cuda-mps-control": None}, ["nvidia-cuda-mps-control"]),
        ("compute=on", GOOD, {"nvidia-cuda-mps-control": None}, []),
        ("compute=50%", GOOD, {"nvidia-cuda-mps-control": None}, ["nvidia-cuda-mps-control"]),
        ("count=1", {"gpu": {"source": "none", "driver": {"status": "absent"}}}, {}, ["nvml"]),
    ],
)
def test_the_tools_a_claim_needs(
    text: str, facts: Any, programs: dict[str, str | None], missing: list[str]
) -> None:
    found = tools.missing(grammar.parse(text), facts, programs)
    assert [one.tool for one in found] == missing
