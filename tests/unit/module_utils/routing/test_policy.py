# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Patterns, and what is wrong in a routing policy."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.routing import globs, images, read
from ansible_collections.steadygpu.host.plugins.module_utils.routing.judge import judge
from ansible_collections.steadygpu.host.plugins.module_utils.routing.model import Level, Policy

PATTERNS = st.text("ab*", max_size=6)
TEXTS = st.text("abc", max_size=6)


@given(PATTERNS, PATTERNS, TEXTS)
def test_what_covers_matches_all_that_the_other_matches(wide: str, narrow: str, text: str) -> None:
    if globs.covers(wide, narrow) and globs.matches(narrow, text):
        assert globs.matches(wide, text)


@given(PATTERNS, PATTERNS)
def test_what_does_not_cover_misses_something(wide: str, narrow: str) -> None:
    if not globs.covers(wide, narrow):
        # For patterns so short a witness of three characters for each star is enough.
        tries = [narrow.replace("*", filler) for filler in ("", "a", "b", "c", "ab", "ba", "cac")]
        tries += [
            narrow.replace("*", one, 1).replace("*", other) for one in "abc" for other in "abc"
        ]
        assert any(not globs.matches(wide, text) for text in tries)


@given(PATTERNS, PATTERNS, TEXTS)
def test_a_common_text_is_one(left: str, right: str, text: str) -> None:
    found = globs.common(left, right)
    if found is None:
        assert not (globs.matches(left, text) and globs.matches(right, text))
    else:
        assert globs.matches(left, found)
        assert globs.matches(right, found)


@pytest.mark.parametrize(
    ("image", "names"),
    [
        ("nginx", ("docker.io/library/nginx:latest",)),
        ("pytorch/pytorch:2.4", ("docker.io/pytorch/pytorch:2.4",)),
        ("registry.example.com:5000/ml/a", ("registry.example.com:5000/ml/a:latest",)),
        ("localhost/a:1", ("localhost/a:1",)),
        (
            "nginx:1@sha256:ab",
            ("docker.io/library/nginx:1", "docker.io/library/nginx@sha256:ab"),
        ),
    ],
)
def test_the_full_name_of_an_image(image: str, names: tuple[str, ...]) -> None:
    assert images.full_names(image) == names


@pytest.mark.parametrize(
    ("pattern", "image", "wanted"),
    [
        ("nginx", "nginx:1.27", True),
        ("nginx", "nginx@sha256:abc", True),
        ("nginx", "docker.io/library/nginx", True),
        ("nginx", "registry.example.com/nginx", False),
        ("nginx", "nginx-exporter", False),
        ("nginx:1.*", "nginx:1.27", True),
        ("nginx:1.*", "nginx", False),
        ("pytorch*", "pytorch/pytorch:2", True),
        ("pytorch/*", "docker.io/pytorch/pytorch:2", True),
        ("registry.example.com/*", "registry.example.com/ml/train:7", True),
        ("registry.example.com:5000/a", "registry.example.com:5000/a:2", True),
        ("*/untrusted/*", "registry.example.com/untrusted/x", True),
        ("*/untrusted/*", "untrusted/x", True),
        ("*:nightly", "a/b:nightly", True),
        ("*", "anything", True),
    ],
)
def test_a_pattern_means_what_a_person_means(pattern: str, image: str, wanted: bool) -> None:
    patterns = images.full_patterns(pattern)
    names = images.full_names(image)
    assert any(globs.matches(p, n) for p in patterns for n in names) is wanted


def policy(*routes: dict[str, Any], **top: Any) -> Policy:
    found, faults = read.from_value({"routes": list(routes), **top})
    assert found is not None, [str(one) for one in faults]
    return found


def said(found: Policy, *known: str) -> list[tuple[str, str]]:
    return [(one.level.label, str(one)) for one in judge(found, known or None)]


def route(runtime: str, **match: Any) -> dict[str, Any]:
    return {"match": match, "runtime": runtime}


def test_the_canonical_form_is_read_back_as_the_same_policy() -> None:
    whole = policy(
        {"name": "a", **route("crun", image=["x/*", "y"], label={"t": None}, user=7)},
        route("runsc", project="shop", service="w*", name="n-*"),
        default="runc",
    )
    again, faults = read.from_text(json.dumps(whole.as_dict()))
    assert (again, faults) == (whole, [])
    assert whole.as_dict()["routes"][0]["match"]["user"] == ["7"]


FAULTY = """\
version: 1
routes:
  - match: {imag: "x/*"}
    runtime: crun
  - match: {}
    runtime: crun
  - match:
      image: "a?b"
      user: "1000:1000"
      label: tier=gpu
    runtme: crun
  - match: {project: a, label: {com.docker.compose.project: a}}
    runtime: "no name"
  - {name: twice, match: {name: a}, runtime: crun}
  - {name: twice, match: {name: b}, runtime: crun}
defualt: runc
"""


def test_all_faults_of_a_file_are_told_at_once_with_their_places() -> None:
    found, faults = read.from_text(FAULTY)
    assert found is None
    told = {(one.line, one.path): one.said + "; " + one.advice for one in faults}
    assert "is it image?" in told[3, "routes[0].match"]
    assert "for the key default" in told[5, "routes[1].match"]
    assert "the one special character is *" in told[8, "routes[2].match.image"]
    assert "without a group" in told[9, "routes[2].match.user"]
    assert "names with values" in told[10, "routes[2].match.label"]
    assert "is it runtime?" in told[11, "routes[2]"]
    assert "keep one of the two" in told[12, "routes[3].match.project"]
    assert "is no name of a runtime" in told[13, "routes[3].runtime"]
    assert "that of routes[4] too" in told[15, "routes[5]"]
    assert "is it default?" in told[16, ""]


@pytest.mark.parametrize("text", ["{", "[]", "a: [", "--- \n---\n", "routes: 3", "version: 2", ""])
def test_what_is_no_policy_is_a_fault_and_no_crash(text: str) -> None:
    found, faults = read.from_text(text)
    assert found is None
    assert faults[0].level is Level.ERROR


def test_a_runtime_that_nobody_defined() -> None:
    found = policy(route("crum", name="a"), default="kata")
    assert said(found, "runc", "crun") == [
        ("error", "routes[0].runtime: no runtime 'crum' is defined; is it crun?"),
        ("error", "default: no runtime 'kata' is defined; known are crun, runc"),
    ]
    assert said(found) == []
    assert said(policy(route("io.containerd.kata.v2", name="a")), "crun") == []


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ({"image": "a/*"}, {"image": "a/b"}),
        ({"image": "a/*"}, {"image": "a/b:1", "user": "0"}),
        ({"image": ["x", "a/*"]}, {"image": ["a/b", "a/c"]}),
        ({"user": "root"}, {"user": 0}),
        ({"label": {"t": "*"}}, {"label": {"t": "gpu"}, "name": "x"}),
        ({"project": "shop*"}, {"label": {"com.docker.compose.project": "shop-2"}}),
    ],
)
def test_a_route_behind_a_wider_one_is_never_reached(
    earlier: dict[str, Any], later: dict[str, Any]
) -> None:
    found = said(policy(route("crun", **earlier), route("runc", **later)))
    assert [level for level, _text in found] == ["error"]
    assert "no container gets here: routes[0] takes all" in found[0][1]


def test_routes_that_meet_are_told_with_an_example() -> None:
    found = said(policy(route("crun", image="a/*:1"), route("runc", image="a/b*")))
    level, text = found[0]
    assert level == "warning"
    assert "both match image docker.io/a/b:1" in text
    assert "routes[0] comes first and has crun, here it is runc" in text


def test_what_cannot_meet_or_has_one_runtime_is_no_overlap() -> None:
    assert said(policy(route("crun", image="a/*"), route("runc", image="b/*", user=0))) == []
    assert said(policy(route("crun", user=1), route("runc", user=2))) == []
    assert said(policy(route("crun", image="a/*"), route("crun", name="b*"))) == []


def test_routes_on_different_things_can_meet_which_is_a_note() -> None:
    found = said(policy(route("crun", image="a/*"), route("runc", user=0)))
    assert found[0][0] == "note"
    assert "a container can match both" in found[0][1]


def test_a_name_of_a_user_is_told_to_mean_little() -> None:
    found = said(policy(route("crun", user="alice")))
    assert found == [
        (
            "note",
            "routes[0].match.user: 'alice' is only met by containers that were given this very "
            "name; a uid is safer: what a name stands for, each image says for itself",
        )
    ]


def test_an_exception_before_its_rule_is_how_it_is_meant() -> None:
    assert said(policy(route("runc", image="a/b"), route("crun", image="a/*"))) == []
    assert said(policy(route("runc", image="a/b", user=0), route("crun", image="a/*"))) == []
