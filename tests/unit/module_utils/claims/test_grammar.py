# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Claims: what is understood, what is refused and where the mark is put."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.claims import grammar, values
from ansible_collections.steadygpu.host.plugins.module_utils.claims.contradictions import (
    contradictions,
)
from ansible_collections.steadygpu.host.plugins.module_utils.claims.model import (
    ALL,
    Claim,
    ClaimError,
    Fault,
)

UUID = "GPU-12345678-9abc-def0-1234-56789abcdef0"


def test_the_claim_of_the_article_is_understood() -> None:
    claim = grammar.parse(f"device={UUID}+memory=8g+compute=on")
    assert (claim.devices, claim.memory_mib, claim.compute_percent) == ((UUID,), 8192, 100.0)
    assert claim.wanted == 1


def test_every_key_is_understood() -> None:
    claim = grammar.parse(
        "count=2+model=A100,H100 NVL+mig=off+memory=20g+compute=50%+link=nvlink+numa=single"
        "+policy=strict+share=mps+rdma=pix+priority=high+p99=200ms+wait=10m+minruntime=1h"
    )
    assert claim.as_dict() == {
        "count": 2,
        "models": ["A100", "H100 NVL"],
        "whole": True,
        "memory_mib": 20480,
        "compute_percent": 50.0,
        "link": "nvlink",
        "numa": "single",
        "policy": "strict",
        "share": "mps",
        "rdma": "pix",
        "priority": 75,
        "p99_s": 0.2,
        "wait_s": 600.0,
        "minruntime_s": 3600.0,
    }


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("count=all", "count", ALL),
        ("memory=7.5g", "memory_mib", 7680),
        ("memory=8GiB", "memory_mib", 8192),
        ("memory=20480m", "memory_mib", 20480),
        ("memory=1t", "memory_mib", 1024 * 1024),
        ("compute=off", "compute_percent", 0.0),
        ("compute=12.5%", "compute_percent", 12.5),
        ("link=any", "link", None),
        ("numa=1", "numa", "1"),
        ("wait=0", "wait_s", 0.0),
        ("priority=0", "priority", 0),
        ("device=0:1,1:0", "devices", ("0:1", "1:0")),
        (" count = 2 + memory = 8g ", "count", 2),
    ],
)
def test_values_and_their_units(text: str, field: str, value: object) -> None:
    assert getattr(grammar.parse(text), field) == value


@pytest.mark.parametrize("name", ["1g.5gb", "1g.5gb+me", "7g.80gb", "1c.3g.20gb", "1g.12gb+me.all"])
def test_the_plus_sign_of_a_profile_does_not_end_it(name: str) -> None:
    claim = grammar.parse(f"mig={name}+count=2")
    assert claim.mig is not None
    assert (claim.mig.name, claim.count) == (name, 2)


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("cuont=2", 1, "did you mean count"),
        ("count=2+Memory=8g", 9, "lower case: memory"),
        ("count=2+vram=8g", 9, "did you mean memory"),
        ("count=2+memory=20", 16, "write 20g for GiB"),
        ("count=0", 7, "1 to 1024"),
        ("count=2+count=3", 9, "given twice"),
        ("count=2++memory=8g", 9, "nothing between"),
        ("count=2+", 9, "nothing between"),
        ("count", 1, "count has no value"),
        ("count=", 1, "count has no value"),
        ("=2", 1, "without its key"),
        ("device=all", 8, "write count=all"),
        ("device=UUID:GPU-a", 8, "write the UUID alone"),
        ("device=gpu-12", 8, "the driver writes GPU-"),
        ("device=0,0", 8, "names 0 twice"),
        ("device=mig-1g.5gb", 8, "the driver writes MIG-"),
        ("mig=9g.5gb", 5, "profile"),
        ("link=fast", 6, "nvlink, pix"),
        ("p99=0ms", 5, "more than 0"),
        ("wait=10", 6, "10s for seconds"),
        ("compute=150%", 9, "1% to 100%"),
        ("", 1, "empty"),
    ],
)
def test_a_fault_has_its_place_and_what_to_write(text: str, column: int, words: str) -> None:
    with pytest.raises(ClaimError) as caught:
        grammar.parse(text)
    assert caught.value.faults[0].column == column
    assert words in str(caught.value.faults[0])


def test_all_faults_are_named_at_once() -> None:
    with pytest.raises(ClaimError) as caught:
        grammar.parse("cuont=2+memory=20+mig=x+policy=strict")
    assert [fault.column for fault in caught.value.faults] == [1, 16, 23]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("device=0,1+count=3", "count"),
        ("device=0+count=all", "count"),
        ("device=MIG-aaaa+mig=off", "mig"),
        ("mig=1g.10gb+memory=20g", "memory"),
        ("mig=1g.10gb+count=2+link=nvlink", "link"),
        ("device=0:0,0:1+link=pix", "link"),
    ],
)
def test_keys_that_exclude_each_other(text: str, key: str) -> None:
    assert [conflict.key for conflict in contradictions(grammar.parse(text))] == [key]


@pytest.mark.parametrize(
    "text",
    [
        "count=2+memory=20g+link=nvlink+policy=strict",
        "device=0,1+count=2",
        "mig=1g.10gb+memory=10g",
        "mig=1g.10gb+link=nvlink",
        "device=0+mig=1g.10gb",
        "policy=shared",
    ],
)
def test_sound_claims_do_not_contradict_themselves(text: str) -> None:
    assert contradictions(grammar.parse(text)) == []


@given(st.text(max_size=80) | st.from_regex(r"[a-z0-9]{1,9}=[a-z0-9+%:.,=]{0,30}", fullmatch=True))
@settings(max_examples=300)
def test_any_text_is_a_claim_or_has_faults_inside_it(text: str) -> None:
    faults: tuple[Fault, ...] = ()
    try:
        claim = grammar.parse(text)
    except ClaimError as error:
        faults, claim = error.faults, Claim()
    assert faults or claim.places
    assert all(1 <= fault.column <= len(text) + 1 for fault in faults)
    assert all(1 <= column <= len(text) for column in claim.places.values())
    contradictions(claim)


SAMPLES = {
    "count": ["1", "all", "8"],
    "model": ["A100", "H100 NVL"],
    "mig": ["1g.5gb", "1g.5gb+me", "off"],
    "memory": ["8g", "512m"],
    "compute": ["on", "50%"],
    "link": ["nvlink", "any"],
    "numa": ["single", "0"],
    "policy": ["strict", "shared"],
    "wait": ["30s", "0"],
}


@given(st.fixed_dictionaries({}, optional={k: st.sampled_from(v) for k, v in SAMPLES.items()}))
@settings(max_examples=200)
def test_the_order_of_pairs_means_nothing(chosen: dict[str, str]) -> None:
    if not chosen:
        return
    pairs = [f"{key}={value}" for key, value in chosen.items()]
    there, back = grammar.parse("+".join(pairs)), grammar.parse("+".join(reversed(pairs)))
    assert there.as_dict() == back.as_dict()
    assert set(there.places) == set(chosen)
    for key, column in there.places.items():
        assert there.text[column - 1 :].startswith(chosen[key])


def test_every_key_of_the_grammar_is_a_field() -> None:
    assert {name for name, _read in values.KEYS.values()} <= set(vars(Claim()))
