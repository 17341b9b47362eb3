# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.checks.host import (
    HostPackage,
    HostView,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.model import Severity
from ansible_collections.steadygpu.host.plugins.module_utils.checks.versions import (
    matrix,
    pairs,
    vendor,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.versions.components import (
    TITLES,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.versions.faults import FAULTS
from ansible_collections.steadygpu.host.plugins.module_utils.checks.versions.regressions import (
    REGRESSIONS,
)
from ansible_collections.steadygpu.host.plugins.module_utils.versions import parse

LEAKY_VESSELS = "CVE-2024-21626"
NOVEMBER_2025 = {"CVE-2025-31133", "CVE-2025-52565", "CVE-2025-52881"}


def open_on(os, component, package, version, **more):
    """CVE to severity of what is open with one package of a distribution installed."""
    host = HostView(
        live=True,
        os=os,
        versions={component: version.split("-")[0]},
        packages={package: HostPackage(version)},
        **more,
    )
    return {e.cve: e.severity for e in matrix.exposures(component, host)}


def grave(found):
    return {cve for cve, severity in found.items() if severity > Severity.INFO}


def test_bookworms_runc_carries_the_fix_of_leaky_vessels():
    found = open_on("debian 12", "runc", "runc", "1.1.5+ds1-1+deb12u1")
    assert LEAKY_VESSELS not in found
    assert LEAKY_VESSELS in open_on("debian 12", "runc", "runc", "1.1.5+ds1-1")


def test_what_the_vendor_has_not_spoken_of_yet_is_an_info():
    found = open_on("debian 12", "runc", "runc", "1.1.5+ds1-1+deb12u1")
    assert {found[cve] for cve in NOVEMBER_2025} == {Severity.INFO}


def test_trixie_as_released_lacks_fixes_that_its_security_team_has():
    found = open_on("debian 13", "runc", "runc", "1.1.15+ds1-2+b4")
    assert found["CVE-2025-31133"] is Severity.ERROR
    assert grave(open_on("debian 13", "runc", "runc", "1.1.15+ds1-2+deb13u1")) == set()


@pytest.mark.parametrize(
    ("os", "component", "package", "version"),
    [
        ("debian 12", "containerd", "containerd", "1.6.20~ds1-1+deb12u3"),
        ("debian 12", "docker", "docker.io", "20.10.24+dfsg1-1+deb12u1+b6"),
        ("debian 13", "containerd", "containerd", "1.7.24~ds1-6+deb13u1"),
        ("debian 13", "docker", "docker.io", "26.1.5+dfsg1-9+deb13u1+b1"),
        ("debian forky/sid", "runc", "runc", "1.3.6+ds1-1"),
        ("debian forky/sid", "containerd", "containerd", "2.1.9+ds1-5"),
        ("debian forky/sid", "docker", "docker.io", "28.5.2+dfsg4-5"),
        ("rhel 9", "runc", "runc", "4:1.2.5-3.el9_6"),
    ],
)
def test_patched_packages_are_no_alarm(os, component, package, version):
    assert grave(open_on(os, component, package, version)) == set()


def test_forkys_engine_has_all_fixes_we_know_of():
    assert open_on("debian forky/sid", "docker", "docker.io", "28.5.2+dfsg4-5") == {}


def test_an_old_number_of_a_distribution_nobody_told_us_of_is_never_more_than_an_info():
    found = open_on("ubuntu 22.04", "runc", "runc", "1.1.7-0ubuntu1~22.04.2")
    assert LEAKY_VESSELS in found
    assert grave(found) == set()


def test_the_build_that_a_program_prints_has_no_revision_to_judge():
    host = HostView(live=True, os="debian 12", versions={"runc": "1.1.5+ds1"})
    assert {e.severity for e in matrix.exposures("runc", host)} == {Severity.INFO}


def test_a_package_names_its_distribution_itself():
    assert vendor.os_of("1.1.5+ds1-1+deb12u1") == "debian 12"
    assert vendor.os_of("4:1.2.5-3.el9_6") == "rhel 9"
    assert vendor.os_of("1.3.3-0ubuntu1~24.04.2") == "ubuntu 24.04"
    assert vendor.os_of("1.7.27-1") is None


def test_a_package_of_another_release_than_the_program_is_not_the_one_in_use():
    # containerd.io brings a runc of its own; the distribution's package lies unused beside it.
    host = HostView(
        live=True,
        os="debian 13",
        versions={"runc": "1.4.3"},
        packages={"runc": HostPackage("1.1.15+ds1-2+b4")},
    )
    assert list(matrix.exposures("runc", host)) == []


def test_a_hole_in_authorization_plugins_is_an_alarm_only_where_there_are_any():
    def severity(facts):
        host = HostView(live=True, versions={"docker": "29.3.0"}, facts=facts)
        return {e.cve: e.severity for e in matrix.exposures("docker", host)}.get("CVE-2026-34040")

    keys = {"docker": {"flags": {}, "daemon_json": {"keys": ["authorization-plugins"]}}}
    assert severity(keys) is Severity.ERROR
    assert severity({"docker": {"flags": {}, "daemon_json": {"keys": []}}}) is None
    assert severity({}) is Severity.INFO


@pytest.mark.parametrize(
    ("version", "goal"),
    [("1.2.4", "1.2.8"), ("1.1.12", "1.2.8"), ("1.3.1", "1.3.3")],
)
def test_the_goal_is_the_nearest_good_release(version, goal):
    fault = next(f for f in FAULTS if "CVE-2025-31133" in f.cves)
    assert matrix.goal(version, fault) == goal


def test_the_tables_are_in_order():
    for fault in FAULTS:
        assert fault.component in TITLES
        assert fault.only in matrix.EXPOSED
        assert list(fault.fixed) == sorted(fault.fixed, key=parse)
        assert fault.source
        assert len(fault.published) == len("2026-01-01")
    assert {row.only for row in REGRESSIONS} <= set(matrix.EXPOSED)
    assert set(matrix.ONLY) == set(matrix.EXPOSED) - {""}
    cudas = [parse(cuda) for cuda, _driver in pairs.CUDA_DRIVER]
    drivers = [parse(driver) for _cuda, driver in pairs.CUDA_DRIVER]
    assert cudas == sorted(cudas)
    assert drivers == sorted(drivers)


@pytest.mark.parametrize(
    ("driver", "cuda"),
    [
        ("550.54.15", "12.4"),
        ("535.183.06", "12.2"),
        ("470.256.02", "11.4"),
        ("580.178.04", "13.0"),
        ("300.1", None),
        ("999.1", None),
    ],
)
def test_a_driver_serves_a_level_of_cuda(driver, cuda):
    assert pairs.cuda_level(driver) == cuda


@pytest.mark.parametrize(
    ("cuda", "driver"),
    [("12.9", "525.60.13"), ("11.8", "450.80.02"), ("10.2", "440.33"), ("99.0", None)],
)
def test_cuda_needs_a_driver_of_its_major_version(cuda, driver):
    assert pairs.driver_for(cuda) == driver


@pytest.mark.parametrize(
    ("model", "driver"),
    [
        ("NVIDIA H100 80GB HBM3", "525.85.12"),
        ("NVIDIA A100-SXM4-80GB", "450.80.02"),
        ("NVIDIA GB200", "570.133.20"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "575.51.03"),
        ("Tesla T4", None),
    ],
)
def test_mig_came_to_each_model_with_a_driver(model, driver):
    assert pairs.mig_driver(model) == driver


def test_the_table_for_the_docs_has_every_row():
    text = matrix.table()
    for cve in ("CVE-2024-21626", "CVE-2026-24260", "CVE-2026-53488"):
        assert cve in text
    for row in REGRESSIONS:
        assert f"`{row.id}`" in text
    for patched in vendor.PATCHED:
        assert patched.since in text
    widths = {line.count("|") - line.count("\\|") for line in text.splitlines() if line[:1] == "|"}
    assert widths == {4, 6, 7}


@pytest.mark.parametrize(
    ("model", "architecture", "last"),
    [
        ("Tesla P100-PCIE-16GB", "pascal", 580),
        ("Tesla V100-SXM2-32GB", "volta", 580),
        ("NVIDIA GeForce GTX 1080 Ti", "pascal", 580),
        ("Tesla K80", "kepler", 470),
        ("Tesla M60", "maxwell", 580),
        ("Tesla T4", None, None),
        ("NVIDIA GeForce GTX 1650", None, None),
        ("NVIDIA H100 80GB HBM3", None, None),
    ],
)
def test_old_models_end_with_a_branch(model, architecture, last):
    assert pairs.architecture_of(model) == architecture
    assert pairs.last_branch(architecture) == last


@pytest.mark.parametrize(
    ("model", "first"),
    [
        ("NVIDIA GeForce RTX 5070 Ti", (570, "12.8")),
        ("NVIDIA GeForce RTX 4090", (520, "11.8")),
        ("NVIDIA GB200", (570, "12.8")),
        ("NVIDIA A100-SXM4-80GB", (450, "11.0")),
        ("NVIDIA RTX 5000 Ada Generation", None),
        ("Quadro RTX 4000", None),
        ("NVIDIA A1000", None),
    ],
)
def test_new_models_begin_with_a_branch(model, first):
    assert pairs.first_for(model) == first


@pytest.mark.parametrize(
    "version", ["5:28.1.1-1~ubuntu.22.04~jammy", "5:28.1.1-1~debian.12~bookworm", "28.1.1-1.el9"]
)
def test_dockers_own_packages_are_judged_by_their_number(version):
    assert not vendor.built_by_distribution(version, "docker-ce")
    found = open_on("ubuntu 22.04", "containerd", "containerd.io", "1.7.27-1")
    assert found["CVE-2024-25621"] is Severity.WARNING


def test_an_el_package_from_before_a_fix_is_told_the_package_with_it():
    found = open_on("rhel 9", "runc", "runc", "4:1.1.9-2.el9")
    assert found[LEAKY_VESSELS] is Severity.ERROR
    assert "CVE-2023-28642" not in found


@pytest.mark.parametrize(
    ("version", "bad"),
    [("1.3.4", True), ("1.3.6", False), ("1.3", False), ("1.4.1", True), ("", False)],
)
def test_a_regression_holds_for_its_releases_only(version, bad):
    row = next(row for row in REGRESSIONS if row.id == "runc-exec-stuck")
    assert row.covers(version) is bad


def test_a_bare_number_that_the_distribution_ships_is_taken_for_its_package():
    debian = HostView(os="debian 12", versions={"runc": "1.1.5"})
    assert grave({e.cve: e.severity for e in matrix.exposures("runc", debian)}) == set()
    elsewhere = HostView(versions={"runc": "1.1.5"})
    assert LEAKY_VESSELS in grave({e.cve: e.severity for e in matrix.exposures("runc", elsewhere)})
