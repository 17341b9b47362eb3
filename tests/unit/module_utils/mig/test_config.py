# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.mig.config import (
    builtin,
    builtin_names,
    parse,
)
from ansible_collections.steadygpu.host.plugins.module_utils.mig.model import (
    ConfigError,
    GpuLayout,
    Wanted,
)
from ansible_collections.steadygpu.host.plugins.module_utils.mig.planner import plan, verify
from ansible_collections.steadygpu.host.plugins.module_utils.mig.tables import geometry_for
from ansible_collections.steadygpu.host.plugins.module_utils.mig.tables_data import MODELS
from ansible_collections.steadygpu.host.tests.unit.module_utils.mig.machine import (
    Hardware,
    gpu,
    table,
)

DEFAULT = json.loads(
    (Path(__file__).parent / "data" / "mig-parted-config-default.json").read_text(encoding="utf-8")
)


def document(**entry: Any) -> dict[str, Any]:
    """A document with one layout ``mine`` of one entry; keys written with ``_``."""
    keys = {key.replace("_", "-"): value for key, value in entry.items()}
    return {"version": "v1", "mig-configs": {"mine": [keys]}}


def of_model(device: int, name: str) -> GpuLayout:
    device_id = f"0x{device:04X}10DE"
    geometry = geometry_for("", device_id)
    assert geometry is not None
    return GpuLayout(0, "GPU-0", "0000:07:00.0", name, device_id, True, True, True, (), geometry)


def test_mig_parteds_own_file_is_read_whole() -> None:
    found = parse(DEFAULT)

    assert list(found) == list(DEFAULT["mig-configs"])
    assert [len(entries) for entries in found.values()] == [
        len(entries) for entries in DEFAULT["mig-configs"].values()
    ]
    assert found["all-disabled"][0].wanted == Wanted(False)
    assert found["all-enabled"][0].wanted == Wanted(True, {})
    assert found["all-1g.5gb.me"][0].wanted == Wanted(True, {"1g.5gb+me": 1})


@pytest.mark.parametrize(
    ("device", "model"),
    [(device, model.name) for model in MODELS for device in model.device_ids],
    ids=[f"{model.name}-{device:04X}" for model in MODELS for device in model.device_ids],
)
def test_every_entry_for_a_known_model_is_feasible_on_it(device: int, model: str) -> None:
    start = of_model(device, model)
    assert start.geometry is not None
    offered = {profile.name for profile in start.geometry.profiles}
    tried = 0
    for entries in parse(DEFAULT).values():
        for entry in entries:
            devices = entry.wanted.devices or {}
            filters = [one.lower() for one in entry.filters]
            if filters and start.device_id.lower() not in filters:
                continue
            if not filters and not devices.keys() <= offered:
                continue  # an entry for another model; the file writes no filter there
            done = Hardware(start, start.geometry).run(plan(start, entry.wanted).steps)
            assert verify(done, entry.wanted) == [], entry.where
            tried += bool(devices)
    # Its own profiles and the balanced mixture at least.
    assert tried >= 5


@pytest.mark.parametrize(
    ("device", "model"), [(model.device_ids[0], model.name) for model in MODELS]
)
def test_made_layouts_equal_those_of_mig_parteds_file(device: int, model: str) -> None:
    start = of_model(device, model)
    file = parse(DEFAULT)
    compared = 0
    for name in builtin_names(start.geometry):
        made = builtin(name, start.geometry)
        written = [
            entry.wanted
            for entry in file.get(name, ())
            if not entry.filters
            or start.device_id.lower() in [one.lower() for one in entry.filters]
        ]
        if written:
            assert made == written[0], name
            compared += 1
    assert compared >= 7


@pytest.mark.parametrize("model", ["A100", "A30", "RTX", "H100"])
def test_every_made_layout_is_feasible(model: str) -> None:
    start = gpu(model)
    for name in builtin_names(table(model)):
        wanted = builtin(name, table(model))
        assert wanted is not None, name
        done = Hardware(start, table(model)).run(plan(start, wanted).steps)
        assert verify(done, wanted) == [], name


def test_a_made_layout_is_not_guessed_at() -> None:
    assert builtin("all-3g.20gb", None) is None
    assert builtin("all-balanced", None) is None
    assert builtin("all-3g.40gb", table("A100")) is None
    assert builtin("nonsense", table("A100")) is None
    assert builtin("all-1g.5gb+me", table("A100")) == builtin("all-1g.5gb.me", table("A100"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ([], "mapping with version and mig-configs, not a list"),
        ({}, "version is None"),
        ({"version": "v2", "mig-configs": {"a": []}}, "version is 'v2'"),
        ({"version": 1, "mig-configs": {}}, "version is 1"),
        ({"version": "v1"}, "must name at least one layout, it is empty"),
        ({"version": "v1", "mig-configs": []}, "it is a list"),
        ({"version": "v1", "mig-configs": {"a": []}}, r"mig-configs\.a has no entry"),
        ({"version": "v1", "mig-configs": {"a": "all"}}, r"mig-configs\.a must be a list"),
        ({"version": "v1", "mig-configs": {1: []}}, "the name 1 must be text"),
        ({"version": "v1", "mig-config": {}}, "unknown key 'mig-config'"),
        (
            {"version": "v1", "mig-configs": {"a": ["all"]}},
            r"mig-configs\.a\[0\] must be a mapping",
        ),
        (document(mig_enabled=True), r"mine\[0\]: devices is missing"),
        (document(devices="all"), r"mine\[0\]: mig-enabled is missing"),
        (document(devices="all", mig_enabled="yes"), r"mine\[0\]\.mig-enabled .* 'yes'"),
        (document(devices="all", mig_enabled=1), r"mig-enabled must be true or false, it is 1"),
        (document(devices=[], mig_enabled=True), "names no GPU"),
        (document(devices=None, mig_enabled=True), "None names no GPU"),
        (document(devices=[True], mig_enabled=True), "True names no GPU"),
        (document(devices=[["all"]], mig_enabled=True), r"\['all'\] names no GPU"),
        (document(devices="all", mig_enabled=True, mig_device={}), "unknown key 'mig-device'"),
        (
            document(devices="all", mig_enabled=True, mig_devices=["1g.5gb"]),
            r"mine\[0\]\.mig-devices must map profiles to counts, it is a list",
        ),
        (
            document(devices="all", mig_enabled=True, mig_devices={"1g.5gb": -1}),
            r"mig-devices\.1g\.5gb is -1",
        ),
        (document(devices="all", mig_enabled=True, mig_devices={"1g.5gb": "7"}), "is '7'"),
        (document(devices="all", mig_enabled=True, mig_devices={"1g.5gb": True}), "is True"),
        (
            document(devices="all", mig_enabled=True, mig_devices={"mig-1g.5gb": 1}),
            "'mig-1g.5gb' is no MIG profile",
        ),
        (
            document(devices="all", mig_enabled=False, mig_devices={"1g.5gb": 7}),
            "although mig-enabled is false",
        ),
        (document(devices="all", mig_enabled=True, device_filter=0x20B0), "is no PCI device"),
        (document(devices="all", mig_enabled=True, device_filter=["A100"]), "'A100' is no PCI"),
    ],
)
def test_a_mistake_is_named_with_its_place(text: object, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        parse(text)


def test_the_mode_alone_and_a_single_selector_go_beyond_mig_parted() -> None:
    entry = parse(document(devices="GPU-1", mig_enabled=True))["mine"][0]

    assert entry.wanted == Wanted(True, None)
    assert entry.selectors == ("GPU-1",)


def test_empty_and_zero_are_nothing() -> None:
    entry = parse(
        document(
            devices=[0], mig_enabled=True, mig_devices={"1g.5gb": 0, "3g.20gb": 2}, device_filter=""
        )
    )["mine"][0]

    assert entry.wanted == Wanted(True, {"3g.20gb": 2})
    assert entry.filters == ()
    off = parse(document(devices="all", mig_enabled=False, mig_devices={}))["mine"][0]
    assert off.wanted == Wanted(False)


NESTED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["version", "mig-configs", "devices", "mig-enabled", "mig-devices", "device-filter"]
            )
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(NESTED)
def test_whatever_is_written_is_read_or_refused(value: object) -> None:
    for text in (value, {"version": "v1", "mig-configs": {"a": value}}):
        try:
            found = parse(text)
        except ConfigError:
            continue
        assert all(entry.selectors for entries in found.values() for entry in entries)
