# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.mig import fitting, names
from ansible_collections.steadygpu.host.plugins.module_utils.mig.model import (
    Geometry,
    Placement,
    Profile,
)
from ansible_collections.steadygpu.host.plugins.module_utils.mig.tables import (
    geometry_for,
    geometry_of,
    model_of,
)
from ansible_collections.steadygpu.host.plugins.module_utils.mig.tables_data import KINDS, MODELS
from ansible_collections.steadygpu.host.tests.unit.module_utils.mig.machine import gpu, table


def placements(model: str) -> dict[int | None, str]:
    """Profile number -> places, written as ``nvidia-smi mig -lgipp`` prints them."""
    return {
        profile.id: "{" + ",".join(str(place.start) for place in profile.placements) + "}"
        f":{profile.placements[0].size}"
        for profile in table(model).profiles
    }


@pytest.mark.parametrize("model", ["A100", "A100-80", "H100"])
def test_a_seven_slice_gpu_has_the_places_that_real_ones_print(model: str) -> None:
    assert placements(model) == {
        19: "{0,1,2,3,4,5,6}:1",
        20: "{0,1,2,3,4,5,6}:1",
        15: "{0,2,4,6}:2",
        14: "{0,2,4}:2",
        9: "{0,4}:4",
        5: "{0}:4",
        0: "{0}:8",
    }


def test_an_a30_has_four_slices() -> None:
    assert placements("A30") == {
        14: "{0,1,2,3}:1",
        21: "{0,1,2,3}:1",
        5: "{0,2}:2",
        6: "{0,2}:2",
        0: "{0}:4",
    }


def test_an_rtx_pro_6000_counts_twelve_memory_slices() -> None:
    found = placements("RTX")

    assert {found[number] for number in (14, 21, 47, 65, 67)} == {"{0,3,6,9}:3"}
    assert {found[number] for number in (5, 35, 64, 66)} == {"{0,6}:6"}
    assert {found[number] for number in (0, 32)} == {"{0}:12"}


@pytest.mark.parametrize(
    ("name", "device_id", "model"),
    [
        ("NVIDIA A100-SXM4-40GB", "0x20B010DE", "A100-40GB"),
        ("NVIDIA A100-PCIE-40GB", "", "A100-40GB"),
        ("NVIDIA A100 80GB PCIe", "", "A100-80GB"),
        ("NVIDIA A800-SXM4-80GB", "", "A100-80GB"),
        ("NVIDIA A30", "", "A30-24GB"),
        ("NVIDIA H100 PCIe", "", "H100-80GB"),
        ("NVIDIA H100 NVL", "", "H100-94GB"),
        ("NVIDIA GH200 480GB", "", "GH200-96GB"),
        ("NVIDIA GH200 144G HBM3e", "", "GH200-144GB"),
        ("NVIDIA H200 NVL", "", "H200-141GB"),
        ("NVIDIA B200", "", "B200-180GB"),
        ("NVIDIA GB200", "", "GB200"),
        ("NVIDIA B300 SXM6 AC", "", "B300"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "", "RTX PRO 6000 Blackwell"),
        # The number of the board decides, whatever it is called.
        ("Graphics Device", "0x233510DE", "H200-141GB"),
        # These have no MIG, or none that we know.
        ("Tesla T4", "0x1EB810DE", None),
        ("NVIDIA A10", "", None),
        ("NVIDIA RTX A3000", "", None),
        ("NVIDIA RTX PRO 5000 Blackwell", "", None),
        ("", "nonsense", None),
        ("Somebody else's", "0x20B01002", None),
    ],
)
def test_a_model_is_recognised_by_its_number_or_its_name(
    name: str, device_id: str, model: str | None
) -> None:
    assert model_of(name, device_id) == model
    geometry = geometry_for(name, device_id)
    assert (geometry.model if geometry else None) == model


def test_every_table_is_sound() -> None:
    for model in MODELS:
        memory, compute, rows = KINDS[model.kind]
        assert len(model.names) == len(rows), model.name
        geometry = geometry_for("", f"0x{model.device_ids[0]:04X}10DE")
        assert geometry is not None
        assert geometry.model == model.name
        for profile in geometry.profiles:
            assert names.slices_of(profile.name) == profile.slices
            assert all(place.start >= 0 and place.end <= memory for place in profile.placements)
            # So many of a profile as the driver counts do fit on an empty GPU.
            assert fitting.most_alone(geometry, profile) == profile.most, profile.name
        assert max(profile.slices for profile in geometry.profiles) == compute
        assert len({profile.name for profile in geometry.profiles}) == len(geometry.profiles)


def test_places_of_one_profile_may_overlap() -> None:
    profile = Profile("1g.6gb", 14, 1, tuple(Placement(start, 2) for start in range(3)), 4)

    # At 0 and 2, or only one in the middle.
    assert fitting.most_alone(Geometry("X900", 4, 4, (profile,)), profile) == 2
    assert fitting.capacity(Geometry("X900", 4, 4, (profile,)), (("1g.6gb", Placement(1, 2)),)) == (
        0,
    )


def test_room_counts_decoders_as_well() -> None:
    geometry = table("RTX")
    room = fitting.capacity(geometry, (("1g.24gb+me.all", Placement(9, 3)),))
    order = sorted(
        geometry.profiles, key=lambda one: (-one.slices, -one.placements[0].size, one.name)
    )
    left = {profile.name: count for profile, count in zip(order, room) if count}

    # The one with all media engines leaves none to anybody else.
    assert left == {"1g.24gb-me": 3, "2g.48gb-me": 1}


def test_the_drivers_own_answer_comes_before_the_tables() -> None:
    own = table("A30")
    asked = gpu("A100")

    assert geometry_of(asked) is asked.geometry
    assert geometry_of(gpu("A100", on=False)) == table("A100")
    assert own != table("A100")
    assert geometry_of(gpu("future", on=False)) is None


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("3g.20gb", (None, "3g.20gb")),
        ("1c.3g.20gb", (1, "3g.20gb")),
        ("3c.3g.20gb", (None, "3g.20gb")),
        ("1g.5gb+me", (None, "1g.5gb+me")),
        ("1c.2g.48gb+me.all", (1, "2g.48gb+me.all")),
        ("1g.24gb-me", (None, "1g.24gb-me")),
    ],
)
def test_a_profile_name_is_taken_apart(name: str, parts: tuple[int | None, str]) -> None:
    assert names.split(name) == parts


@pytest.mark.parametrize(
    "name",
    [
        "",
        "3g",
        "MIG 3g.20gb",
        "0g.5gb",
        "1g.5gb+",
        "1g.5gb.me",
        "3G.20GB",
        # reality.md row 137: not how a MIG device is asked for anywhere.
        pytest.param("mig-1g.5gb", id="137-mig-1g.5gb"),
        pytest.param("mig-7g.40gb", id="138-mig-7g.40gb"),
        " 1g.5gb",
    ],
)
def test_what_is_no_profile_name_is_refused_with_the_right_form(name: str) -> None:
    with pytest.raises(ValueError, match=r"written 3g\.20gb"):
        names.split(name)


def test_a_device_of_all_slices_has_the_plain_name() -> None:
    assert names.device_name("3g.20gb", 3, 3) == "3g.20gb"
    assert names.device_name("3g.20gb", 3, 2) == "2c.3g.20gb"
