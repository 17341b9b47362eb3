# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy
import difflib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.trees.toml_edit import (
    TomlTextError,
    assign,
    assign_raw,
    close,
    delete,
    flatten,
    is_opened,
    parse,
    raw,
    value_of,
)

TOOLKIT = """#accept-nvidia-visible-devices-as-volume-mounts = false
#accept-nvidia-visible-devices-envvar-when-unprivileged = true
disable-require = false
supported-driver-capabilities = "compat32,compute,display,graphics,ngx,utility,video"
#swarm-resource = "DOCKER_RESOURCE_GPU"

[nvidia-container-cli]
#debug = "/var/log/nvidia-container-toolkit.log"
environment = []
#ldcache = "/etc/ld.so.cache"
ldconfig = "@/sbin/ldconfig"
load-kmods = true

[nvidia-container-runtime]
#debug = "/var/log/nvidia-container-runtime.log"
log-level = "info"
mode = "auto"  # the toolkit chooses
runtimes = ["runc", "crun"]

[nvidia-container-runtime.modes]

[nvidia-container-runtime.modes.cdi]
annotation-prefixes = ["cdi.k8s.io/"]
default-kind = "nvidia.com/gpu"

[nvidia-container-runtime.modes.csv]
mount-spec-path = "/etc/nvidia-container-runtime/host-files-for-container.d"

[nvidia-container-runtime-hook]
path = "nvidia-container-runtime-hook"
skip-mode-detection = false
"""

CONTAINERD = """# kept by hand
version = 2
imports = [
    "/etc/containerd/conf.d/*.toml", # the vendor's
    '/etc/containerd/more/*.toml'
]

[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    sandbox_image = 'registry.example.com/pause:3.9'
    [plugins."io.containerd.grpc.v1.cri".containerd]
      default_runtime_name = "runc"
      runtimes.runc = { runtime_type = "io.containerd.runc.v2", options = { SystemdCgroup = true } }

[[proxies]]
name = "one"
[proxies.inside]
x = 1

[[proxies]]
name = "two"
"""


def lines_changed(before: str, after: str) -> tuple[list[str], list[str]]:
    """The lines that went and those that came."""
    said = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    gone = [line[2:] for line in said if line.startswith("- ")]
    return gone, [line[2:] for line in said if line.startswith("+ ")]


def put_in(document: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    document = copy.deepcopy(document)
    place = document
    for name in path[:-1]:
        place = place.setdefault(name, {})
    place[path[-1]] = value
    return document


@pytest.mark.parametrize(
    ("path", "value", "gone", "came"),
    [
        (("disable-require",), True, "disable-require = false", "disable-require = true"),
        (
            ("nvidia-container-runtime", "mode"),
            "cdi",
            'mode = "auto"  # the toolkit chooses',
            'mode = "cdi"  # the toolkit chooses',
        ),
        (
            ("nvidia-container-runtime", "runtimes"),
            ["runc", "crun", "kata"],
            'runtimes = ["runc", "crun"]',
            'runtimes = ["runc", "crun", "kata"]',
        ),
    ],
)
def test_one_value_changes_one_line(path: Any, value: Any, gone: str, came: str) -> None:
    assert lines_changed(TOOLKIT, assign(TOOLKIT, path, value)) == ([gone], [came])


@pytest.mark.parametrize(
    ("path", "value", "above", "line"),
    [
        (
            ("nvidia-container-runtime", "debug"),
            "/tmp/x.log",
            '#debug = "/var/log/nvidia-container-runtime.log"',
            'debug = "/tmp/x.log"',
        ),
        (
            ("swarm-resource",),
            "DOCKER_RESOURCE_NVIDIA-GPU",
            '#swarm-resource = "DOCKER_RESOURCE_GPU"',
            'swarm-resource = "DOCKER_RESOURCE_NVIDIA-GPU"',
        ),
        (
            ("accept-nvidia-visible-devices-as-volume-mounts",),
            True,
            "#accept-nvidia-visible-devices-as-volume-mounts = false",
            "accept-nvidia-visible-devices-as-volume-mounts = true",
        ),
        (
            ("nvidia-container-cli", "no-cgroups"),
            True,
            "load-kmods = true",
            "no-cgroups = true",
        ),
    ],
)
def test_a_new_key_stands_below_its_commented_default_or_last(
    path: Any, value: Any, above: str, line: str
) -> None:
    edited = assign(TOOLKIT, path, value)
    assert lines_changed(TOOLKIT, edited) == ([], [line])
    assert f"{above}\n{line}\n" in edited
    assert delete(edited, path) == TOOLKIT


def test_a_new_table_stands_with_those_it_belongs_to() -> None:
    edited = assign(
        TOOLKIT, ("nvidia-container-runtime", "modes", "legacy", "cuda-compat-mode"), "hook"
    )
    block = '\n[nvidia-container-runtime.modes.legacy]\ncuda-compat-mode = "hook"\n'
    assert edited == TOOLKIT.replace(
        "\n[nvidia-container-runtime-hook]", block + "\n[nvidia-container-runtime-hook]"
    )
    assert delete(edited, ("nvidia-container-runtime", "modes", "legacy")) == TOOLKIT


def test_a_list_over_several_lines_keeps_its_comments() -> None:
    imports = parse(CONTAINERD)["imports"]
    edited = assign(CONTAINERD, ("imports",), [*imports, "/etc/containerd/steadygpu.d/*.toml"])
    assert edited == CONTAINERD.replace(
        "    '/etc/containerd/more/*.toml'\n",
        "    '/etc/containerd/more/*.toml',\n    '/etc/containerd/steadygpu.d/*.toml'\n",
    )
    fewer = assign(edited, ("imports",), [imports[0], "/etc/containerd/steadygpu.d/*.toml"])
    assert "# the vendor's" in fewer
    assert parse(fewer)["imports"] == [imports[0], "/etc/containerd/steadygpu.d/*.toml"]


def test_indented_tables_inline_tables_and_dotted_keys_stay_what_they_are() -> None:
    cri = ("plugins", "io.containerd.grpc.v1.cri")
    runc = (*cri, "containerd", "runtimes", "runc")
    edited = assign(CONTAINERD, (*runc, "options", "SystemdCgroup"), False)
    edited = assign(edited, (*runc, "options", "BinaryName"), "/usr/bin/runc")
    assert '{ SystemdCgroup = false, BinaryName = "/usr/bin/runc" } }\n' in edited
    edited = assign(edited, (*cri, "containerd", "runtimes", "nvidia"), {"runtime_type": "x"})
    assert '      runtimes.nvidia = { runtime_type = "x" }\n' in edited
    edited = assign(edited, (*cri, "enable_cdi"), True)
    assert "    sandbox_image = 'registry.example.com/pause:3.9'\n    enable_cdi = true\n" in edited
    edited = assign(edited, (*cri, "sandbox_image"), "other")
    assert "    sandbox_image = 'other'\n" in edited


def test_what_is_in_a_list_of_tables_is_read_and_taken_out_as_a_whole() -> None:
    assert raw(CONTAINERD, ("proxies",)) == (
        '[{ name = "one", inside = { x = 1 } }, { name = "two" }]'
    )
    with pytest.raises(TomlTextError, match="proxies is no table"):
        assign(CONTAINERD, ("proxies", "name"), "three")
    assert "proxies" not in delete(CONTAINERD, ("proxies",))
    assert parse(assign(CONTAINERD, ("proxies",), []))["proxies"] == []


@pytest.mark.parametrize("text", ["", "\n", "# only words\n", "a = 1", "a = 1\n\n\n", "\n[t]\n"])
@pytest.mark.parametrize("path", [("k",), ("t", "k"), ("new", "below", "k")])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_put_in_and_deleted_leaves_the_very_bytes(
    text: str, path: tuple[str, ...], ends: str
) -> None:
    text = text.replace("\n", ends)
    edited = assign(text, path, 1)
    if ends in text:
        assert edited.count("\n") == edited.count(ends)
    cut = delete(edited, path)
    for depth in range(len(path) - 1, 0, -1):
        if raw(text, path[:depth]) is None:
            cut = delete(cut, path[:depth])
    assert cut == text


def test_a_key_of_the_top_stands_before_the_first_header_and_its_comments() -> None:
    text = "# of the file\n\n# of the table\n[t]\nx = 1\n"
    edited = assign(text, ("k",), 1)
    assert edited == "# of the file\n\nk = 1\n\n# of the table\n[t]\nx = 1\n"
    assert delete(edited, ("k",)) == text


def test_comments_of_a_table_that_goes_stay() -> None:
    text = "[t]\n# somebody's note\nk = 1 # ours\n\n[u]\n"
    assert delete(text, ("t",)) == "# somebody's note\n\n[u]\n"


def test_a_table_named_only_by_longer_headers_is_opened_and_closed() -> None:
    text = "[a.b]\nx = 1\n"
    assert not is_opened(text, ("a",))
    edited = assign(text, ("a", "k"), 1)
    assert edited == "[a.b]\nx = 1\n\n[a]\nk = 1\n"
    assert is_opened(edited, ("a",))
    assert close(edited, ("a",)) == edited
    assert close(delete(edited, ("a", "k")), ("a",)) == text


def test_a_table_is_compared_and_only_what_differs_is_edited() -> None:
    text = "[t]\na = 1 # one\nb = 0x10\n\n[t.u]\nc = 'x'\n"
    assert assign(text, ("t",), {"a": 1, "b": 16, "u": {"c": "x"}}) == text
    assert assign(text, ("t",), {"a": 2, "u": {"c": "x", "d": []}}) == (
        "[t]\na = 2 # one\n\n[t.u]\nc = 'x'\nd = []\n"
    )
    assert parse(assign(text, ("t",), {})) == {"t": {}}
    assert parse(assign(text, ("t",), 5)) == {"t": 5}


def test_the_text_of_a_value_comes_back_as_it_was() -> None:
    text = "a = 0x1F\nb = '''x'''\nc = 1979-05-27 # day\n"
    for key in ("a", "b", "c"):
        former = raw(text, (key,))
        assert assign_raw(assign(text, (key,), "other"), (key,), former) == text
    assert value_of("0x1F") == 31


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = 1\nb = yes\n", "line 2 column 5: 'yes' is not a TOML value"),
        ("a = 1\na = 2\n", "line 2 column 1: 'a' is there already, from line 1"),
        ("\ufeffa = 1\n", "line 1 column 1: it begins with a byte order mark"),
        ("a = " + "[" * 300, "nested deeper"),
    ],
)
def test_what_is_no_toml_is_said_with_its_place(text: str, words: str) -> None:
    for call in (parse, lambda text: raw(text, ("a",)), lambda text: assign(text, ("a",), 1)):
        with pytest.raises(TomlTextError) as caught:
            call(text)
        assert words in str(caught.value)


@pytest.mark.parametrize("value", [None, [None], 2**63, b"x"])
def test_what_toml_has_no_word_for_is_refused(value: Any) -> None:
    with pytest.raises(TomlTextError, match=r"a\.b: "):
        assign("", ("a", "b"), value)


# Documents as people write them: any mixture of headers, dotted keys and inline tables.

NAMES = st.sampled_from(["a", "b", "c", "d e", "x.y", 'q"', ""])
SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(blacklist_categories=("Cs",)), max_size=8),
)
VALUES = st.recursive(
    SCALARS,
    lambda inside: st.one_of(
        st.lists(inside, max_size=3), st.dictionaries(NAMES, inside, max_size=3)
    ),
    max_leaves=6,
)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
PIECES = st.sampled_from(
    [
        "a = 1",
        "  b = 'two' # said",
        "c.a = true",
        "c.b.a = [1, 2]",
        "b = { a = 1, c.d = {}, 'd e' = [ { a = 1 } ] }",
        "a = [\n  1, # one\n  'x',\n  { a = 2 }\n]",
        '"d e" = """\nlong # no comment\n"""',
        '"x.y" = {}',
        "# a = 5",
        "#[c]",
        "# words",
        "",
        "",
        "[a]",
        "[a.b]",
        "  [a.b.c]",
        "[b]",
        "[c.'d e']",
        "[[d]]",
        "[d.a]",
        "[[a.c]]",
        '["x.y"]',
    ]
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A text of pieces; those that would make it wrong are left out."""
    text = ""
    ends = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    for piece in draw(st.lists(PIECES, max_size=12)):
        longer = text + piece.replace("\n", ends) + ends
        try:
            parse(longer)
        except TomlTextError:
            continue
        text = longer
    if draw(st.booleans()):
        text = text[: -len(ends)] if text else text
    return text


def holds(document: Any, path: tuple[str, ...]) -> bool:
    """Are all that is above ``path`` tables, as far as they are there?"""
    for name in path[:-1]:
        if name not in document:
            return True
        document = document[name]
        if not isinstance(document, dict):
            return False
    return True


@given(documents(), PATHS, VALUES)
def test_the_parsed_result_is_the_edit_on_the_value(text: str, path: Any, value: Any) -> None:
    tomllib = pytest.importorskip("tomllib")
    before = tomllib.loads(text)
    if not holds(before, path):
        with pytest.raises(TomlTextError, match="is no table"):
            assign(text, path, value)
        return
    edited = assign(text, path, value)
    assert repr_sorted(tomllib.loads(edited)) == repr_sorted(put_in(before, path, value))
    if "\r\n" in edited:
        assert "\n" not in edited.replace("\r\n", "")


@given(documents(), PATHS, VALUES)
def test_what_is_new_goes_again_without_a_trace(text: str, path: Any, value: Any) -> None:
    before = parse(text)
    if not holds(before, path) or raw(text, path) is not None:
        return
    edited = assign(text, path, value)
    gone, _came = lines_changed(text, edited)
    assert "{" in "".join(gone) or not "".join(gone).strip()
    new = [path[:depth] for depth in range(1, len(path)) if raw(text, path[:depth]) is None]
    implied = [
        path[:depth]
        for depth in range(1, len(path))
        if raw(text, path[:depth]) is not None and not is_opened(text, path[:depth])
    ]
    edited = delete(edited, path)
    for parent in reversed(new):
        edited = delete(edited, parent)
    for parent in implied:
        edited = close(edited, parent)
    assert edited == text


@given(documents(), PATHS)
def test_a_deletion_takes_whole_lines_and_nothing_else(text: str, path: Any) -> None:
    tomllib = pytest.importorskip("tomllib")
    before = tomllib.loads(text)
    edited = delete(text, path)
    if raw(text, path) is None:
        assert edited == text
        return
    _gone, came = lines_changed(text, edited)
    assert all("{" in line for line in came)
    left = tomllib.loads(edited)
    place = before
    for name in path[:-1]:
        place = place[name]
    del place[path[-1]]
    assert repr_sorted(pruned(left)) == repr_sorted(pruned(before))


@given(documents(), PATHS, VALUES)
def test_a_former_text_put_back_says_the_former_thing(text: str, path: Any, value: Any) -> None:
    former = raw(text, path)
    if former is None:
        return
    back = assign_raw(assign(text, path, value), path, former)
    assert repr_sorted(parse(back)) == repr_sorted(parse(text))


def repr_sorted(value: Any) -> str:
    if isinstance(value, dict):
        inside = (f"{key!r}: {repr_sorted(value[key])}" for key in sorted(value))
        return "{" + ", ".join(inside) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(repr_sorted, value)) + "]"
    return repr(value)


def pruned(value: Any) -> Any:
    """Without empty tables: some go with the last of their members."""
    if not isinstance(value, dict):
        return value
    inside = {key: pruned(one) for key, one in value.items()}
    return {key: one for key, one in inside.items() if one != {}}


def test_flatten_gives_leaves_and_atoms() -> None:
    assert flatten({"a": {"b": 1, "c": {"d": 2}}, "e": {}}, [("a", "*")]) == [
        (("a", "b"), 1),
        (("a", "c"), {"d": 2}),
    ]
