# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.checks.versions import order

FIXED = ("1.2.8", "1.3.3", "1.4.0")


@pytest.mark.parametrize(
    ("version", "has"),
    [
        ("1.1.15", False),
        ("1.2.7", False),
        ("1.2.8", True),
        ("1.3.2", False),
        ("1.3.10", True),
        ("1.4.0-rc.3", True),
        ("1.6.0", True),
        ("1.3", True),  # only a branch is named: its newest release is meant
        ("1.1", False),  # a branch that never got the fix
        ("unknown", False),
    ],
)
def test_a_fix_is_in_each_branch_from_its_own_release_on(version, has):
    assert order.at_least_one(version, FIXED) is has


@pytest.mark.parametrize(
    ("version", "has"),
    [
        ("580.126.09", False),
        ("580.159.03", True),
        ("550.163.01", False),
        ("610.1", True),
        ("535", True),
    ],
)
def test_a_branch_of_the_driver_is_its_first_number(version, has):
    fixed = ("535.309.01", "580.159.03", "595.71.05")
    assert order.at_least_one(version, fixed, width=1) is has


def test_package_versions_are_ordered_as_dpkg_orders_them():
    ordered = [
        "1.0~rc1",
        "1.0",
        "1.1.5+ds1-1+deb12u1",
        "1.1.15+ds1-2",
        "1.1.15+ds1-2+b4",
        "1.1.15+ds1-2+deb13u1",
        "1.3.3-0ubuntu1~24.04.2",
        "4:1.2.5-1.el9",
        "4:1.2.5-3.el9_6",
    ]
    for place, version in enumerate(ordered):
        assert order.compare(version, version) == 0
        for later in ordered[place + 1 :]:
            assert order.compare(version, later) == -1
            assert order.compare(later, version) == 1


def test_an_epoch_that_one_of_two_lacks_is_not_counted():
    assert order.not_older("1.2.5-3.el9_6", "4:1.2.5-3.el9_6")
    assert not order.not_older("1.2.5-1.el9", "4:1.2.5-3.el9_6")
    assert not order.not_older("1:9.0-1", "2:1.0-1")


VERSION = st.from_regex(r"\A[0-9][0-9a-z.+~]{0,8}(-[0-9a-z.+~]{1,6})?\Z")


@pytest.mark.skipif(shutil.which("dpkg") is None, reason="compares with dpkg itself")
@settings(max_examples=2 * settings.default.max_examples // 5)
@given(VERSION, VERSION)
def test_dpkg_agrees(left, right):
    done = subprocess.run(["dpkg", "--compare-versions", left, "lt", right], check=False)
    assert (order.compare(left, right) == -1) is (done.returncode == 0)
