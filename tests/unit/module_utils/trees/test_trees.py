# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Values and places of JSON, TOML and YAML, and an error with a place for everything else."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.trees import (
    json_tree,
    toml_tree,
    yaml_tree,
)
from ansible_collections.steadygpu.host.plugins.module_utils.trees.node import Node, TreeError

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.text(), inside, max_size=4),
    max_leaves=12,
)
MARKS = "[]{}\"',:=#.-&*|>!%@`\n\t\\ "
WORDS = ("<<", "'''", '"""', "a", "1", "0x", "- ", "\\u", "\\U00110000", "nan", "[[", "]]", "é")
SCRAPS = st.lists(st.sampled_from([*MARKS, *WORDS]), max_size=25).map("".join)


def place(node: Node | None) -> tuple[int, int]:
    assert node is not None
    return node.line, node.column


class TestJson:
    """The reader of JSON."""

    @settings(max_examples=150, deadline=None)
    @given(JSON_VALUES, st.sampled_from([None, 0, 2]))
    def test_it_reads_what_json_writes(self, value: Any, indent: int | None) -> None:
        text = json.dumps(value, indent=indent)
        assert json_tree.parse(text).plain() == json.loads(text)

    def test_every_value_and_key_knows_its_place(self) -> None:
        tree = json_tree.parse('{"a": [1, 2.50],\n  "b": {"c": null}}\n')
        assert place(tree.get("a", 1)) == (1, 11)
        assert place(tree.get("b", "c")) == (2, 14)
        assert (tree.keys["b"].line, tree.keys["b"].column) == (2, 3)
        second = tree.get("a", 1)
        assert second is not None
        assert second.words() == "2.50"

    @pytest.mark.parametrize(
        ("text", "said", "line", "column"),
        [
            ("", "ends where a value", 1, 1),
            ('{"a": 1,\n}', "comma before", 2, 1),
            ('{\n// why\n"a": 1}', "no comments", 2, 1),
            ("{a: 1}", "double quotes", 1, 2),
            ('{"a": True}', "wanted is true", 1, 7),
            ('{"a": 1} x', "follows the end", 1, 10),
            ('{"a": 1,\n "a": 2}', "appears twice", 2, 2),
            ('{"a": 01}', "not a number", 1, 7),
            ('"a\nb"', "control character", 1, 3),
            ("\ufeff{}", "byte order mark", 1, 1),
            ("[" * 300, "deeper than 200", 1, 202),
            ("1" * 5000, "400 digits", 1, 1),
        ],
    )
    def test_an_error_says_what_and_where(
        self, text: str, said: str, line: int, column: int
    ) -> None:
        with pytest.raises(TreeError, match=said) as caught:
            json_tree.parse(text)
        assert (caught.value.line, caught.value.column) == (line, column)

    def test_half_a_surrogate_pair_can_be_printed(self) -> None:
        json_tree.parse('"\\ud800"').words().encode()


class TestToml:
    """The reader of TOML."""

    def test_a_containerd_config(self) -> None:
        tree = toml_tree.parse(
            "version = 3\n"
            "imports = ['/etc/containerd/conf.d/*.toml'] # more\n"
            "[plugins.'io.containerd.cri.v1.runtime'.containerd]\n"
            '  default_runtime_name = "nvidia"\n'
            "  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia]\n"
            "    options.SystemdCgroup = true\n"
        )
        name = tree.get(
            "plugins", "io.containerd.cri.v1.runtime", "containerd", "default_runtime_name"
        )
        assert name is not None
        assert (name.value, place(name)) == ("nvidia", (4, 26))
        nvidia = tree.get(
            "plugins", "io.containerd.cri.v1.runtime", "containerd", "runtimes", "nvidia"
        )
        assert nvidia is not None
        assert nvidia.plain() == {"options": {"SystemdCgroup": True}}
        assert place(nvidia) == (5, 3)
        assert place(tree.get("imports", 0)) == (2, 12)

    def test_all_kinds_of_values(self) -> None:
        tree = toml_tree.parse(
            "i = +1_000\nh = 0xdead_BEEF\no = 0o755\nb = 0b11\nf = 6.626e-34\n"
            "n = -inf\nt = 1979-05-27 07:32:00.5Z\nd = 07:32:00\n"
            "s = \"a\\tb\\u00e9\\U0001F600\"\nl = 'C:\\x'\n"
            "m = \"\"\"\r\none \\\n   two\"\"\"\"\nq = '''it's'''\n"
            "x = { y = [1, 2,\n # here\n ], 'z w'.v = {} }\n[[k]]\na = 1\n[[k]]\n"
        )
        assert tree.plain() == {
            "i": 1000,
            "h": 0xDEADBEEF,
            "o": 0o755,
            "b": 3,
            "f": 6.626e-34,
            "n": -math.inf,
            "t": "1979-05-27 07:32:00.5Z",
            "d": "07:32:00",
            "s": "a\tbé😀",
            "l": "C:\\x",
            "m": 'one two"',
            "q": "it's",
            "x": {"y": [1, 2], "z w": {"v": {}}},
            "k": [{"a": 1}, {}],
        }

    @pytest.mark.parametrize(
        ("text", "said", "line", "column"),
        [
            ("a", "wanted is =", 1, 2),
            ("a =", "wanted is a value", 1, 4),
            ("a = 1 b = 2", "end of the line", 1, 7),
            ("a = 1\na = 2", "there already, from line 1", 2, 1),
            ("[a]\n[a]", "there already", 2, 2),
            ("[a]\nb.c = 1\n[a.b]", "there already", 3, 4),
            ("a = {b = 1}\n[a.c]", "cannot be added to", 2, 2),
            ("a = []\n[[a]]", "there already", 2, 3),
            ("[a.b.c]\n[a]\nb.d = 1", "there already", 3, 1),
            ("a = yes", "text needs quotes", 1, 5),
            ("a = True", "wanted is true", 1, 5),
            ("a = 09", "not a TOML value", 1, 5),
            ('a = "x', "not closed", 1, 7),
            ("a = [1, 2", "wanted is , or \\]", 1, 10),
            ("a = {b = 1,}", "end with a comma", 1, 12),
            ("a = {\nb = 1}", "wanted is a key", 1, 6),
            ("a = " + "[" * 300, "deeper than 200", 1, 205),
        ],
    )
    def test_an_error_says_what_and_where(
        self, text: str, said: str, line: int, column: int
    ) -> None:
        with pytest.raises(TreeError, match=said) as caught:
            toml_tree.parse(text)
        assert (caught.value.line, caught.value.column) == (line, column)

    @settings(max_examples=400, deadline=None)
    @given(SCRAPS)
    def test_it_agrees_with_the_standard_library(self, text: str) -> None:
        tomllib = pytest.importorskip("tomllib")
        try:
            wanted = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            with pytest.raises(TreeError):
                toml_tree.parse(text)
        else:
            assert repr(toml_tree.parse(text).plain()) == repr(wanted)


@pytest.fixture(name="yaml_is_here", params=["libyaml", "pure"])
def fixture_yaml_is_here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    yaml = pytest.importorskip("yaml")
    if request.param == "pure":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    elif not hasattr(yaml, "CSafeLoader"):
        pytest.skip("this PyYAML is without libyaml")


@pytest.mark.usefixtures("yaml_is_here")
class TestYaml:
    """The reader of YAML, with both parsers of PyYAML."""

    def test_places_merges_and_what_scalars_mean(self) -> None:
        tree = yaml_tree.parse_all(
            "x-base: &base\n"
            "  image: a\n"
            "  restart: no\n"
            "services:\n"
            "  trainer:\n"
            "    <<: *base\n"
            '    ports: ["8080:80", 22:22, 0777, 0o17, 1e3, ~]\n'
            "    image: b\n"
            "    privileged: true\n"
            "    mem: !reset null\n"
            '    cpus: "2"\n'
        )[0]
        trainer = tree.get("services", "trainer")
        assert trainer is not None
        assert trainer.plain() == {
            "image": "b",
            "restart": "no",
            "ports": ["8080:80", "22:22", 511, 15, 1000.0, None],
            "privileged": True,
            "mem": None,
            "cpus": "2",
        }
        assert trainer.keys["restart"].line == 3
        assert (trainer.keys["image"].line, trainer.keys["image"].column) == (8, 5)
        assert place(trainer.get("ports", 1)) == (7, 24)
        assert trainer.get("ports", 4).words() == "1e3"  # type: ignore[union-attr]

    def test_documents_in_order(self) -> None:
        found = yaml_tree.parse_all("a: 1\n---\n- b\n---\n")
        assert [node.plain() for node in found] == [{"a": 1}, ["b"], None]
        assert yaml_tree.parse_all("# nothing\n") == []

    @pytest.mark.parametrize(
        ("text", "said", "line"),
        [
            ("a:\n  b: 1\n  b: 2\n", "twice in one mapping, first in line 2", 3),
            ("a: *x", "no anchor", 1),
            ("a: &a [*a]", "inside what it names", 1),
            ("a:\n b: {{ c }}", "needs quotes", 2),
            ("a:\n\tb: 2", "cannot start", 2),
            ("a: 1\nb: c: d", "not allowed", 2),
            ("<<: 1", "wants a mapping", 1),
            ("a\ud800", "not UTF-8", 1),
            ("a: \x00", "not allowed", 1),
            ('a: "\\UFFFFFFFF"', ".", 1),
            ("[" * 300, "deeper than 200", 1),
            ("- " * 300 + "a", "deeper than 200", 1),
            ("a" * (2 * 1024 * 1024 + 1), "limit of 2097152 bytes", 0),
        ],
    )
    def test_an_error_says_what_and_where(self, text: str, said: str, line: int) -> None:
        with pytest.raises(TreeError, match=said) as caught:
            yaml_tree.parse_all(text)
        assert caught.value.line == line

    def test_a_key_that_appears_twice_can_be_let_through(self) -> None:
        assert yaml_tree.parse_all("a: 1\na: 2", unique=False)[0].plain() == {"a": 2}

    def test_a_bomb_ends_at_once(self) -> None:
        lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
        for level in range(1, 12):
            inside = ", ".join([f"*a{level - 1}"] * 10)
            lines.append(f"a{level}: &a{level} [{inside}]")
        begin = time.monotonic()
        with pytest.raises(TreeError, match="more than 300000 values"):
            yaml_tree.parse_all("\n".join(lines))
        assert time.monotonic() - begin < 2

    @settings(max_examples=150, deadline=None)
    @given(st.dictionaries(st.text("ab:#-' \"", max_size=5), st.text("ab\n:#-'\"{é")))
    def test_json_is_yaml(self, value: Any) -> None:
        assert yaml_tree.parse_all(json.dumps(value))[0].plain() == value


@settings(max_examples=400, deadline=None)
@given(SCRAPS | st.text(max_size=40))
def test_no_text_makes_another_error(text: str) -> None:
    refused: list[TreeError] = []
    readers = [json_tree.parse, toml_tree.parse]
    if yaml_tree.available():
        readers.append(yaml_tree.parse_all)  # type: ignore[arg-type]
    for reader in readers:
        try:
            reader(text)
        except TreeError as error:
            refused.append(error)
    assert all(error.said and error.line >= 1 and error.column >= 1 for error in refused)
