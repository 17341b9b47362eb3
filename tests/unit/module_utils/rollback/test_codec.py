# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.rollback import codec
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import (
    ABSENT,
    Checkpoint,
    Entry,
    Host,
    Left,
    Moment,
    PackageState,
    Plan,
    Reason,
    RestoreJournal,
    RestoreOptions,
    RollbackError,
    State,
    Step,
    UnitState,
    Window,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.storage import documents

DIGEST = "0123456789abcdef" * 4

texts = st.text(max_size=8)
# os.fsdecode gives lone surrogates for a name that is not UTF-8.
paths = st.binary(min_size=1, max_size=12).map(
    lambda name: "/etc/" + name.decode("utf-8", "surrogateescape")
)
ids = st.integers(0, 0o7777)
files = st.builds(
    Entry,
    kind=st.just("file"),
    mode=ids,
    uid=ids,
    gid=ids,
    xattrs=st.dictionaries(st.just("user.note"), st.binary(max_size=6), max_size=1),
    digest=st.binary(min_size=32, max_size=32).map(bytes.hex),
    size=st.integers(0, 2**40),
)
links = st.builds(Entry, kind=st.just("link"), mode=ids, uid=ids, target=texts)
others = st.builds(Entry, kind=st.sampled_from(["directory", "other"]), mode=ids, size=ids)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
json_objects = st.dictionaries(texts, json_values, max_size=3)
states = st.builds(
    State,
    files=st.dictionaries(paths, files | links | others | st.just(ABSENT), max_size=4),
    units=st.dictionaries(
        texts,
        st.builds(UnitState, texts, texts, texts, st.lists(texts, max_size=2).map(tuple)),
        max_size=2,
    ),
    sysctls=st.dictionaries(texts, texts, max_size=2),
    packages=st.dictionaries(texts, st.builds(PackageState, texts, st.booleans()), max_size=2),
    mig=st.none() | st.lists(json_objects, max_size=2),
    kernel_cmdline=texts,
    runtime=json_objects,
    unknown=st.dictionaries(texts, texts, max_size=2),
)
reasons = st.builds(Reason, texts, texts, texts, texts, texts)
checkpoints = st.builds(
    Checkpoint,
    id=st.just("7-0123abcd"),
    sequence=st.just(7),
    taken_at=st.floats(0, 4e9),
    host=st.builds(Host, texts, texts),
    reason=reasons,
    state=states,
    declared=st.lists(paths, max_size=2).map(tuple),
)

WINDOW = Window(
    id="w1",
    run="run 1",
    base="7-0123abcd",
    opened=Moment(1.5, 2.5, "boot"),
    confirm_within_s=3600.0,
    reason=Reason("me", "why", "T-1", "night", "site"),
    joined=("engine", "slices"),
)
JOURNAL = RestoreJournal(
    target="7-0123abcd",
    replaced="9-0123abcd",
    window="w1",
    options=RestoreOptions(packages=True, other_host=False, deadline_s=60.0),
    plan=Plan(
        steps=(Step("file", "/etc/a", "put back /etc/a", {"entry": {"kind": "absent"}}),),
        conflicts=("/etc/a",),
        left=(Left("/etc/b", "not ours", True),),
    ),
)
CHECKPOINT = Checkpoint(
    id="7-0123abcd",
    sequence=7,
    taken_at=1.5e9,
    host=Host("machine", "name"),
    reason=Reason(who="me"),
    state=State(
        files={
            "/etc/a": Entry("file", 0o4755, 1, 2, {"user.x": b"\xff\x00"}, DIGEST, 3),
            "/etc/l": Entry("link", 0o777, target="/etc/a"),
            "/etc/n": ABSENT,
        },
        units={"docker.service": UnitState("loaded", "active", "enabled", ("/etc/d.conf",))},
        sysctls={"vm.swappiness": "60"},
        packages={"docker.io": PackageState("26.1", True)},
        mig=[{"uuid": "GPU-1"}],
        kernel_cmdline="quiet",
        runtime={"containers": {"c1": {"name": "train", "gpu_memory_mib": 40}}},
        unknown={"driver": "no answer"},
    ),
    declared=("/srv/mine",),
)


@given(checkpoints)
def test_a_checkpoint_comes_back_as_it_was(checkpoint: Checkpoint) -> None:
    content = documents.encode(codec.checkpoint_to_json(checkpoint))
    assert codec.checkpoint_from_json(documents.decode(content)) == checkpoint


def test_window_and_journal_come_back_as_they_were() -> None:
    for value, back in (
        (codec.window_to_json(WINDOW), codec.window_from_json),
        (codec.restore_to_json(JOURNAL), codec.restore_from_json),
    ):
        assert back(json.loads(json.dumps(value))) in (WINDOW, JOURNAL)


@given(states)
def test_the_digest_does_not_depend_on_the_order_of_reading(state: State) -> None:
    backwards = replace(
        state,
        files=dict(reversed(list(state.files.items()))),
        units=dict(reversed(list(state.units.items()))),
        runtime=dict(reversed(list(state.runtime.items()))),
    )
    assert codec.state_digest(backwards) == codec.state_digest(state)


def test_the_digest_counts_everything_but_gpu_memory_in_use() -> None:
    state = CHECKPOINT.state
    digest = codec.state_digest(state)

    def with_container(**fields: Any) -> State:
        return replace(state, runtime={"containers": {"c1": {"name": "train", **fields}}})

    assert codec.state_digest(with_container(gpu_memory_mib=70)) == digest
    assert codec.state_digest(with_container(gpu_memory_mib=None)) == digest
    for other in (
        with_container(gpu_memory_mib=40, device_rules=["c 195:0"]),
        replace(state, files={**state.files, "/etc/n": Entry("directory", 0o755)}),
        replace(state, units={}),
        replace(state, sysctls={"vm.swappiness": "10"}),
        replace(state, packages={}),
        replace(state, mig=None),
        replace(state, kernel_cmdline="quiet debug"),
    ):
        assert codec.state_digest(other) != digest


def _without_each_field(document: Any) -> Iterator[Any]:
    """The document, each time without another one of its required fields."""
    optional = {"xattrs", "size", "uid", "gid", "target", "gpu_memory_mib", "name"}
    if isinstance(document, dict):
        named = document.keys() & {"docker.service", "c1", "/etc/a", "/etc/l", "/etc/n"}
        free = {"vm.swappiness", "docker.io", "driver", "containers", "user.x", "uuid", "entry"}
        for key in document.keys() - optional - named - free - {"digest"}:
            yield {name: value for name, value in document.items() if name != key}
        for key, value in document.items():
            if key in ("details", "runtime", "mig"):
                continue
            for changed in _without_each_field(value):
                yield {**document, key: changed}
    elif isinstance(document, list):
        for number, value in enumerate(document):
            for changed in _without_each_field(value):
                yield [*document[:number], changed, *document[number + 1 :]]


@pytest.mark.parametrize(
    ("document", "read"),
    [
        (codec.checkpoint_to_json(CHECKPOINT), codec.checkpoint_from_json),
        (codec.window_to_json(WINDOW), codec.window_from_json),
        (codec.restore_to_json(JOURNAL), codec.restore_from_json),
    ],
)
def test_a_document_that_lacks_something_is_refused_by_name(document: Any, read: Any) -> None:
    lacking = list(_without_each_field(document))
    assert len(lacking) > 10
    for one in lacking:
        with pytest.raises(RollbackError, match="not what steadygpu writes"):
            read(one)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ([], "not an object"),
        ({"kind": "socket"}, "'socket'"),
        ({"kind": "file", "mode": "0644"}, "without a digest"),
        ({"kind": "file", "mode": "0644", "digest": "../../etc/shadow"}, "no SHA-256"),
        ({"kind": "link", "mode": "0777"}, "without a target"),
        ({"kind": "directory", "mode": "rwx"}, "not octal"),
        ({"kind": "directory", "mode": 493}, "not a text"),
        ({"kind": "directory", "mode": "0755", "uid": -1}, "not a whole number"),
        ({"kind": "directory", "mode": "0755", "uid": True}, "not a whole number"),
        ({"kind": "directory", "mode": "0755", "xattrs": {"user.x": "%"}}, "not base64"),
        ({"kind": "directory", "mode": "0755", "xattrs": {"user.x": 1}}, "not a text"),
    ],
)
def test_a_foreign_entry_is_refused_with_the_reason(entry: Any, said: str) -> None:
    with pytest.raises(RollbackError, match=said):
        codec.entry_from_json(entry)


@pytest.mark.parametrize("name", ["8-0123abcd", "7-0123ABCD", "../7-0123abcd", "7", "7-0123abcd\n"])
def test_an_id_that_is_none_is_refused(name: str) -> None:
    document = {**codec.checkpoint_to_json(CHECKPOINT), "id": name}
    with pytest.raises(RollbackError, match="no id of sequence 7"):
        codec.checkpoint_from_json(document)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 10**400, "1", True, None])
def test_a_time_that_is_none_is_refused(number: Any) -> None:
    document = {**codec.checkpoint_to_json(CHECKPOINT), "taken_at": number}
    with pytest.raises(RollbackError, match="not a number"):
        codec.checkpoint_from_json(document)


def test_every_changed_byte_of_a_document_is_noticed() -> None:
    content = documents.encode(codec.checkpoint_to_json(CHECKPOINT))
    for position in range(len(content)):
        spoilt = bytearray(content)
        spoilt[position] ^= 1
        with pytest.raises(RollbackError):
            documents.decode(bytes(spoilt))
    for length in range(len(content)):
        with pytest.raises(RollbackError):
            documents.decode(content[:length])


@given(json_objects, json_objects)
def test_the_light_way_reads_all_but_the_state(
    small: dict[str, Any], state: dict[str, Any]
) -> None:
    small = {f"x{name}": value for name, value in small.items()} | {"schema": 1}
    content = documents.encode({**small, "state": state})
    assert documents.decode(content, light=True) == small
    assert documents.decode(content)["state"] == state
    # To everybody else it is JSON as well.
    assert json.loads(content)["state"] == state
