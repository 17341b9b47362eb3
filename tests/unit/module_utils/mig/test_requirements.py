# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.mig.requirements import (
    driver_too_old,
    memory_limits_conflict,
    minimum_driver,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.mig.machine import gpu

MINIMUMS = [
    ("NVIDIA A100-SXM4-40GB", "0x20B010DE", "450.80.02"),
    ("NVIDIA A30", "0x20B710DE", "460.73.01"),
    ("NVIDIA H100 80GB HBM3", "0x233010DE", "525.85.12"),
    ("NVIDIA H20", "0x232910DE", "535.161.07"),
    ("NVIDIA H200", "0x233510DE", "550.90.07"),
    ("NVIDIA B200", "0x290110DE", "570.133.20"),
    ("NVIDIA GB200", "0x294110DE", "570.133.20"),
    ("NVIDIA B300 SXM6 AC", "0x318210DE", "580.82.07"),
    ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "0x2BB510DE", "575.51.03"),
]


@pytest.mark.parametrize(
    ("name", "device_id", "minimum"), MINIMUMS, ids=[f"146-{row[0]}" for row in MINIMUMS]
)
def test_each_model_has_its_own_minimum_driver(name: str, device_id: str, minimum: str) -> None:
    assert minimum_driver(name, device_id) == minimum


@pytest.mark.parametrize(
    ("model", "driver", "wrong"),
    [
        ("A100", "450.80.02", False),
        ("A100", "450.80", True),
        ("A100", "535.104.05", False),
        # 525.60.13 is the floor of CUDA 12, not of MIG on these.
        pytest.param("H100", "525.60.13", True, id="146-h100-525.60.13"),
        pytest.param("RTX", "525.60.13", True, id="146-rtx-525.60.13"),
        ("H100", "525.85.12", False),
        ("future", "1.0", False),
        ("H100", None, False),
    ],
)
def test_an_old_driver_is_named_with_what_is_needed(
    model: str, driver: str | None, wrong: bool
) -> None:
    reason = driver_too_old(driver, gpu(model))

    assert bool(reason) is wrong
    if reason:
        minimum = minimum_driver(gpu(model).name, gpu(model).device_id)
        assert str(driver) in reason
        assert str(minimum) in reason


@pytest.mark.parametrize(
    ("params", "conflict"),
    [
        ("", False),
        ('RegistryDwords: ""\nRegistryDwordsPerDevice: ""\n', False),
        ('RegistryDwords: "RmMemacctMode=0"', False),
        ('RegistryDwords: "RmMemacctMode=1"', True),
        ('options nvidia NVreg_RegistryDwords="Foo=1;RmMemacctMode=0x3"', True),
        ("NVreg_RegistryDwords=rmmemacctmode=2", True),
        ("RmMemacctMode=1;RmMemacctMode=0", False),
        ("NotRmMemacctMode=1", False),
    ],
)
def test_memory_limits_of_the_driver_and_mig_exclude_each_other(
    params: str, conflict: bool
) -> None:
    reason = memory_limits_conflict(params)

    assert bool(reason) is conflict
    if reason:
        assert "NVreg_RegistryDwords" in reason
