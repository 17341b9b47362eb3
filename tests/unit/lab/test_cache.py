# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Entries are complete or absent, and the cache stays within its bound."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.tests.lab.cache import (
    Cache,
    key,
    limit_bytes,
    tree_digest,
)
from ansible_collections.steadygpu.host.tests.lab.console import LabError

MIB = 1 << 20


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path)


def add(cache: Cache, ident: str, mib: int, age_s: int, needs: Any = ()) -> None:
    with cache.building(ident, {"needs": list(needs)}) as work:
        (work / "data").write_bytes(os.urandom(mib * MIB))
    os.utime(cache.root / ident / "entry.json", (1_700_000_000 - age_s,) * 2)


def left(cache: Cache) -> list[str]:
    kinds = ("rootfs", "images", "frozen", "snapshots", "hosts")
    return sorted(entry.ident for kind in kinds for entry in cache.entries(kind))


def build_and_fail(cache: Cache, ident: str, error: BaseException) -> None:
    with cache.building(ident, {}) as work:
        (work / "half").write_text("x")
        raise error


def test_an_interrupted_build_leaves_no_entry_and_no_files(cache: Cache) -> None:
    with pytest.raises(KeyboardInterrupt):
        build_and_fail(cache, "images/a", KeyboardInterrupt())
    assert cache.find("images/a") is None
    assert os.listdir(cache.root / "images") == []


def test_a_failed_rebuild_keeps_the_former_entry(cache: Cache) -> None:
    add(cache, "images/a", 1, 0)
    with pytest.raises(LabError):
        build_and_fail(cache, "images/a", LabError("no"))
    assert cache.find("images/a") is not None


def test_what_a_killed_builder_left_goes_with_the_next_build(cache: Cache) -> None:
    leftover = cache.root / "images" / "a.building-1234"
    leftover.mkdir(parents=True)
    assert cache.entries("images") == []
    add(cache, "images/a", 1, 0)
    assert not leftover.exists()


def test_the_least_recently_used_goes_until_the_rest_fits(cache: Cache) -> None:
    for name, age_s in (("old", 300), ("middle", 200), ("new", 100)):
        add(cache, "rootfs/" + name, 2, age_s)
    removed = cache.collect(5 * MIB, list)
    assert removed == ["rootfs/old"]
    assert left(cache) == ["rootfs/middle", "rootfs/new"]


def test_nothing_a_running_host_stands_on_is_removed(cache: Cache) -> None:
    add(cache, "images/i", 2, 300)
    add(cache, "frozen/f", 2, 300, ["images/i"])
    add(cache, "images/idle", 2, 100)
    add(cache, "hosts/h", 1, 300, ["frozen/f"])
    removed = cache.collect(0, lambda: ["hosts/h"])
    assert removed == ["images/idle"]
    assert left(cache) == ["frozen/f", "hosts/h", "images/i"]


def test_an_image_takes_along_what_was_made_from_it(cache: Cache) -> None:
    add(cache, "images/i", 2, 300)
    add(cache, "frozen/f", 1, 100, ["images/i"])
    add(cache, "rootfs/r", 1, 200)
    assert cache.collect(2 * MIB, list) == ["frozen/f", "images/i"]
    assert left(cache) == ["rootfs/r"]


def test_using_an_entry_keeps_it_and_what_it_needs_young(cache: Cache) -> None:
    add(cache, "images/i", 1, 300)
    add(cache, "frozen/f", 1, 300, ["images/i"])
    before = cache.entries("images")[0].used_at()
    cache.find("frozen/f")
    assert cache.entries("images")[0].used_at() > before


def test_the_collector_waits_for_nobody_who_starts_a_host(cache: Cache) -> None:
    add(cache, "rootfs/r", 2, 0)
    with cache.in_use():
        assert cache.collect(0, list) == []
    assert cache.collect(0, list) == ["rootfs/r"]


def test_the_collector_removes_abandoned_builds_but_none_under_way(cache: Cache) -> None:
    for name in ("left", "under-way"):
        (cache.root / "images" / f"{name}.building-1234").mkdir(parents=True)
    with cache.lock("images/under-way"):
        cache.collect(MIB, list)
    assert os.listdir(cache.root / "images") == ["under-way.building-1234"]


def test_a_lock_ends_with_the_process_that_held_it(cache: Cache) -> None:
    script = (
        "import sys, os; sys.path.insert(0, sys.argv[1])\n"
        "from lab.cache import Cache; from pathlib import Path\n"
        "with Cache(Path(sys.argv[2])).lock('x'):\n"
        "    os.write(1, b'held'); os.read(0, 1)\n"
    )
    tests = str(Path(sys.modules[Cache.__module__].__file__ or "").parents[1])
    holder = subprocess.Popen(
        [sys.executable, "-c", script, tests, str(cache.root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert holder.stdout.read(4) == b"held"
    with pytest.raises(BlockingIOError), cache.lock("x", wait=False):
        pass
    holder.kill()
    holder.communicate()
    with cache.lock("x", wait=False):
        pass


def test_keys_follow_content_and_not_bytecode(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one")
    before = tree_digest(tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "a.pyc").write_text("x")
    assert tree_digest(tmp_path) == before
    (tmp_path / "a.py").chmod(0o755)
    assert tree_digest(tmp_path) != before
    assert key("a", 1) != key("a", 2)


def test_too_little_disk_is_said_before_the_work(cache: Cache) -> None:
    with pytest.raises(LabError, match=r"needs 1099511627776 MiB .* gc"):
        cache.require_free(1 << 40, "a test")


@pytest.mark.parametrize("text", ["much", "-1", "0", "nan", "inf"])
def test_a_bound_that_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(LabError, match="not a size"):
        limit_bytes({"STEADYGPU_LAB_CACHE_GIB": text})


def test_the_bound_has_a_default() -> None:
    assert limit_bytes({}) == limit_bytes({"STEADYGPU_LAB_CACHE_GIB": ""}) == 12 << 30
    assert limit_bytes({"STEADYGPU_LAB_CACHE_GIB": "1.5"}) == 3 << 29
