# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a person learns from comparing two states of a host."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.rollback import scope
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.difference import (
    diff,
    show_html,
    show_text,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import (
    ABSENT,
    Area,
    Change,
    Difference,
    Entry,
    PackageState,
    RollbackError,
    State,
    UnitState,
)

DAEMON = "/etc/docker/daemon.json"
AREAS = scope.areas(["/srv/app/config"])
MIG_OFF = {"uuid": "GPU-a", "mig": False, "devices": None, "instances": None}
MIG_ON = {
    "uuid": "GPU-a",
    "mig": True,
    "devices": {"3g.20gb": 1},
    "instances": [{"profile": "3g.20gb", "start": 4, "size": 4, "compute_slices": [3]}],
}


class Contents:
    """Remembers what it made entries of."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}

    def file(self, content: str | bytes, mode: int = 0o644, **more: Any) -> Entry:
        """A file with this content."""
        data = content.encode() if isinstance(content, str) else content
        digest = hashlib.sha256(data).hexdigest()
        self.held[digest] = data
        return Entry("file", mode, digest=digest, size=len(data), **more)

    def compare(self, before: State, after: State) -> Difference:
        """The difference, with all contents at hand."""
        return diff.difference(before, after, ("a", "b"), self.held.get, self.held.get, AREAS)


def files(contents: Contents, before: Entry, after: Entry, path: str = DAEMON) -> Change:
    """The one change that comes of two entries at a path."""
    (found,) = contents.compare(State({path: before}), State({path: after})).changes
    return found


def of(before: State, after: State) -> list[Change]:
    """The changes between two states without files."""
    return list(Contents().compare(before, after).changes)


def words(before: State, after: State) -> list[tuple[str, str, str, str]]:
    """Subject, kind, before and after of each change."""
    return [(one.subject, one.kind, one.before, one.after) for one in of(before, after)]


# -- files ------------------------------------------------------------------------------


def test_equal_states_do_not_differ() -> None:
    contents = Contents()
    state = State({DAEMON: contents.file("{}\n")}, units={"x": UnitState("loaded", "active", "")})
    assert contents.compare(state, state).empty
    assert contents.compare(state, state).changes == ()


def test_a_changed_text_has_its_lines() -> None:
    contents = Contents()
    found = files(contents, contents.file("a\nb\n"), contents.file("a\nc\n"))
    assert (found.part, found.subject, found.kind) == ("file", DAEMON, "changed")
    assert found.lines == ("@@ -1,2 +1,2 @@", " a", "-b", "+c")


def test_added_and_removed_files_have_all_lines_and_what_they_were() -> None:
    contents = Contents()
    entry = contents.file("a\n", 0o600, uid=3, gid=4)
    added = files(contents, ABSENT, entry)
    assert (added.kind, added.before) == ("added", "")
    assert added.after == "file of 2 bytes, mode 0600, owner 3:4"
    assert added.lines == ("@@ -0,0 +1 @@", "+a")
    removed = files(contents, entry, ABSENT)
    assert (removed.kind, removed.after) == ("removed", "")
    assert removed.lines == ("@@ -1 +0,0 @@", "-a")


def test_a_path_that_is_not_named_is_not_there() -> None:
    contents = Contents()
    assert contents.compare(State({DAEMON: ABSENT}), State()).changes == ()
    (found,) = contents.compare(State(), State({DAEMON: contents.file("x")})).changes
    assert found.kind == "added"


@pytest.mark.parametrize(
    ("change", "before", "after"),
    [
        ({"mode": 0o600}, "mode 0644", "mode 0600"),
        ({"uid": 5, "gid": 6}, "owner 0:0", "owner 5:6"),
        ({"xattrs": {"user.a": b"xy"}}, "no user.a", "user.a of 2 bytes"),
        (
            {"xattrs": {"security.selinux": b"system_u:object_r:etc_t:s0\0"}},
            "no security.selinux",
            "security.selinux system_u:object_r:etc_t:s0",
        ),
        ({"mode": 0o600, "uid": 1}, "mode 0644, owner 0:0", "mode 0600, owner 1:0"),
    ],
)
def test_metadata_in_words(change: Mapping[str, Any], before: str, after: str) -> None:
    contents = Contents()
    entry = contents.file("x\n")
    found = files(contents, entry, dataclasses.replace(entry, **change))
    assert (found.before, found.after, found.lines) == (before, after, ())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff\xfe" * 6144, "binary, 12 KiB"),
        (b"a\0b", "binary, 3 bytes"),
        (b"x" * (300 * 1024), "large, 300 KiB"),
        (b"x" * (5 * 1024 * 1024), "large, 5 MiB"),
    ],
)
def test_what_is_no_short_text_is_named_by_its_size(content: bytes, words: str) -> None:
    contents = Contents()
    found = files(contents, contents.file("a\n"), contents.file(content))
    assert (found.before, found.after, found.lines) == ("2 bytes", words, ())


def test_equal_sizes_still_show_that_the_content_changed() -> None:
    contents = Contents()
    found = files(contents, contents.file(b"\xff1"), contents.file(b"\xff2"))
    assert (found.before, found.after) == ("binary, 2 bytes", "binary, 2 bytes, changed")


def test_links_and_kinds_in_words() -> None:
    contents = Contents()
    link, other = Entry("link", target="/usr/a"), Entry("link", target="/usr/b")
    assert files(contents, link, other).before == "link to /usr/a"
    assert files(contents, link, other).after == "link to /usr/b"
    found = files(contents, Entry("directory", 0o755), contents.file("x"))
    assert found.before == "directory, mode 0755, owner 0:0"
    assert found.after == "file of 1 byte, mode 0644, owner 0:0"


def test_content_that_was_not_kept_or_is_damaged_is_said() -> None:
    contents = Contents()
    was, now = contents.file("one\n"), contents.file("two\n")

    def damaged(digest: str) -> bytes | None:
        raise RollbackError("damaged")

    found = diff.difference(
        State({DAEMON: was}), State({DAEMON: now}), ("a", "b"), lambda _digest: None, damaged, AREAS
    )
    assert found.changes[0].before == "content not kept, 4 bytes"
    assert found.changes[0].after == "content damaged, 4 bytes"


def test_a_secret_area_shows_neither_content_nor_size() -> None:
    contents = Contents()
    path = "/etc/apt/auth.conf.d/x.conf"
    was, now = (
        contents.file("machine a login b password c\n"),
        contents.file("longer than that " * 9),
    )
    found = files(contents, was, now, path)
    assert (found.before, found.after) == ("content not shown", "content not shown, changed")
    assert found.lines == ()
    assert files(contents, ABSENT, was, path).after == "file, mode 0644, owner 0:0"


# -- the rest ---------------------------------------------------------------------------


def test_units_in_words() -> None:
    before = {"docker.service": UnitState("loaded", "active", "enabled")}
    after = {
        "docker.service": UnitState("loaded", "failed", "disabled", ("/etc/x.conf",)),
        "new.service": UnitState("not-found", "inactive", ""),
    }
    assert words(State(units=before), State(units=after)) == [
        (
            "docker.service",
            "changed",
            "enabled, active",
            "disabled, failed, drop-ins /etc/x.conf",
        ),
        ("new.service", "added", "", "not-found, inactive"),
    ]


def test_settings_and_packages_in_words() -> None:
    before = State(
        sysctls={"vm.swappiness": "60", "net.ipv4.tcp_fastopen_key": "0011-2233"},
        packages={"docker.io": PackageState("26.1", False), "gone": PackageState("1", False)},
    )
    after = State(
        sysctls={"vm.swappiness": "10", "net.ipv4.tcp_fastopen_key": "4455-6677"},
        packages={"docker.io": PackageState("26.1", True)},
    )
    assert words(before, after) == [
        ("net.ipv4.tcp_fastopen_key", "changed", "<redacted>", "<redacted, changed>"),
        ("vm.swappiness", "changed", "60", "10"),
        ("docker.io", "changed", "26.1", "26.1, held"),
        ("gone", "removed", "1", ""),
    ]


def test_mig_in_words() -> None:
    (found,) = of(State(mig=[MIG_OFF]), State(mig=[MIG_ON]))
    assert (found.part, found.subject) == ("mig", "GPU-a")
    assert (found.before, found.after) == ("MIG off", "MIG on, 3g.20gb@4:4")
    assert found.lines[1:] == ("-MIG off", "+MIG on", "+3g.20gb@4:4")
    assert words(State(mig=None), State(mig=[MIG_ON])) == [
        ("GPU-a", "added", "", "MIG on, 3g.20gb@4:4")
    ]


def test_the_kernel_command_line_by_word() -> None:
    before = State(kernel_cmdline="ro quiet console=tty0 x.password=abc y_token=1234567 a.b=1")
    after = State(
        kernel_cmdline="ro console=tty0 console=ttyS0 x.password=abd y_token=1234567 iommu=pt a.b=1"
    )
    assert words(before, after) == [
        ("console", "changed", "console=tty0", "console=tty0 console=ttyS0"),
        ("iommu", "added", "", "iommu=pt"),
        ("quiet", "removed", "", ""),
        ("x.password", "changed", "x.password=<redacted>", "x.password=<redacted>, changed"),
    ]


def test_words_of_the_kernel_in_another_order() -> None:
    (found,) = of(State(kernel_cmdline="a=1 b=2"), State(kernel_cmdline="b=2 a=1"))
    assert (found.subject, found.after) == ("order of the words", "b=2 a=1")


def test_a_value_behind_an_option_of_init_is_secret_too() -> None:
    found = of(State(), State(kernel_cmdline="ro -- --token hunter2hunter2"))
    assert "hunter2" not in str(found)


def container(**changes: Any) -> State:
    """A host with one GPU container."""
    shown = {
        "name": "training",
        "namespace": "moby",
        "runtime": "runc",
        "device_rules": ["c 195:0 rw allow"],
        "gpu_memory_mib": 100,
        **changes,
    }
    return State(runtime={"containers": {"0123456789abcdef": shown}})


def test_rules_of_a_container_count() -> None:
    (found,) = of(container(), container(device_rules=["c 195:0 rw allow", "c 511:1 rw allow"]))
    assert (found.subject, found.counts) == ("training (0123456789ab) device rules", True)
    assert found.lines[1:] == (" c 195:0 rw allow", "+c 511:1 rw allow")


@pytest.mark.parametrize(
    "after",
    [
        container(gpu_memory_mib=None),
        container(changed_files=["A /x"]),
        State(),
    ],
)
def test_what_comes_and_goes_by_itself_does_not_count(after: State) -> None:
    found = Contents().compare(container(), after)
    assert found.empty
    assert len(found.changes) == 1


def test_devices_driver_and_toolkit() -> None:
    before = State(
        runtime={
            "devices": {"/dev/nvidia0": "195:0"},
            "driver": {"version": "550.90", "gpus": {"0000:07:00.0": {"Model": "A100", "x": "1"}}},
            "toolkit": {"/usr/bin/nvidia-ctk": "aa"},
        }
    )
    after = State(
        runtime={
            "devices": {"/dev/nvidia0": "195:1"},
            "driver": {"version": "550.163", "gpus": {"0000:07:00.0": {"Model": "H100", "y": "2"}}},
            "toolkit": {},
        }
    )
    found = of(before, after)
    assert [(one.part, one.subject, one.before, one.after) for one in found if one.counts] == [
        ("driver", "NVIDIA driver", "550.90", "550.163"),
        ("driver", "GPU 0000:07:00.0, Model", "A100", "H100"),
        ("device", "/dev/nvidia0", "195:0", "195:1"),
        ("toolkit", "/usr/bin/nvidia-ctk", "aa", ""),
    ]
    # What the driver tells only once a GPU was opened.
    assert [one.subject for one in found if not one.counts] == [
        "GPU 0000:07:00.0, x",
        "GPU 0000:07:00.0, y",
    ]


@pytest.mark.parametrize(
    ("part", "state"),
    [
        ("units", State(units={"a.service": UnitState("loaded", "active", "")})),
        ("packages", State(packages={"a": PackageState("1", False)})),
        ("mig", State(mig=[MIG_ON])),
        ("sysctls", State(sysctls={"a.b": "1"})),
        ("containers", container(name="x")),
        ("devices", State(runtime={"devices": {"/dev/nvidia0": "195:0"}})),
    ],
)
def test_what_was_not_read_is_told_and_not_compared(part: str, state: State) -> None:
    found = Contents().compare(state, State(unknown={part: "no answer within 20 s"}))
    assert found.empty
    assert [(one.subject, one.before, one.after) for one in found.changes] == [
        (part, "known", "not known: no answer within 20 s")
    ]


def test_a_reason_stands_there_once() -> None:
    state = State(unknown={"mig": "no answer\nfrom http://u:hunter2@x/"})
    (found,) = of(state, state)
    assert found.before == "not known: no answer from http://<redacted>@x/"
    assert found.after == "not known either"


def test_what_a_restore_leaves_by_its_kind() -> None:
    contents = Contents()
    before = State(
        {"/etc/default/grub": contents.file("a"), "/etc/steadygpu/x": contents.file("a")},
        packages={"docker.io": PackageState("1", False), "nvidia-driver": PackageState("1", False)},
        kernel_cmdline="quiet",
    )
    left = diff.not_restored(contents.compare(before, State()), AREAS)
    assert [one.subject for one in left] == [
        "/etc/default/grub",
        "docker.io",
        "nvidia-driver",
        "kernel command line, quiet",
    ]
    assert "never changed on their own" in left[2].reason


def test_many_files_are_compared_at_once() -> None:
    contents = Contents()
    entry, other = contents.file("x\n"), contents.file("y\n")
    before = {f"/etc/steadygpu/{number}": entry for number in range(50_000)}
    after = {**before, "/etc/steadygpu/7": other}
    assert [one.subject for one in contents.compare(State(before), State(after)).changes] == [
        "/etc/steadygpu/7"
    ]


# -- no secret in any output ------------------------------------------------------------

SECRET = st.text(
    "abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789", min_size=12, max_size=30
)


@settings(max_examples=40)
@given(one=SECRET, other=SECRET, name=st.sampled_from(["password", "API_TOKEN", "auth", "apiKey"]))
def test_secrets_are_in_no_output(one: str, other: str, name: str) -> None:
    contents = Contents()

    def state(secret: str) -> State:
        files = {
            DAEMON: contents.file(json.dumps({name: secret, "p": f"http://u:{secret}@x:1/"})),
            "/etc/containerd/config.toml": contents.file(f'[a.auth]\n  x = "{secret}"\n'),
            "/etc/steadygpu/agent.yml": contents.file(f"a:\n  {name}: {secret}\n"),
            "/etc/steadygpu/env": contents.file(f"export {name}={secret}\n"),
            "/etc/steadygpu/registry.token": contents.file(secret),
            "/etc/apt/auth.conf.d/x": contents.file(f"machine x login y password {secret}\n"),
            "/etc/docker/certs.d/x/ca.crt": contents.file(secret),
            "/etc/cdi/x.json": Entry("link", target=f"https://u:{secret}@x/"),
            "/etc/docker": Entry("directory", 0o755, xattrs={"user.x": secret.encode()}),
        }
        return State(
            files=files,
            sysctls={f"net.{name}": secret},
            kernel_cmdline=f'ro x.{name}={secret} "y.{name}=a {secret}" -- --{name} {secret}',
            runtime={
                "containers": {
                    "a" * 64: {"name": f"x{name}={secret}", "device_rules": [f"{name}={secret}"]}
                },
                "driver": {"version": "1", "gpus": {"a": {name: secret}}},
            },
            unknown={"units": f"http://u:{secret}@x/ did not answer"},
        )

    outputs = []
    for before, after in ((state(one), state(other)), (State(), state(one)), (state(one), State())):
        found = contents.compare(before, after)
        left = diff.not_restored(found, AREAS)
        outputs += [
            show_text.plain(found, left),
            show_text.coloured(found, left),
            show_html.page(found, left),
            json.dumps(dataclasses.asdict(found)),
        ]
    for output in outputs:
        for secret in (one, other):
            assert secret not in output
            assert base64.b64encode(secret.encode()).decode().rstrip("=") not in output
    assert ("redacted, changed" in outputs[0]) == (one != other)


def test_areas_that_others_declare_hide_too() -> None:
    contents = Contents()
    was, now = contents.file("one\n"), contents.file("two\n")
    found = diff.difference(
        State({"/srv/x": was}),
        State({"/srv/x": now}),
        ("a", "b"),
        contents.held.get,
        contents.held.get,
        [Area("/srv/x", "own", secret=True)],
    )
    assert found.changes[0].lines == ()
