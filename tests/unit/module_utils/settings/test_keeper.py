# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings are kept, repaired, and taken back exactly, also after a kill at any point."""

from __future__ import annotations

import contextlib
import errno
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import vouched
from ansible_collections.steadygpu.host.plugins.module_utils.settings import apply, record
from ansible_collections.steadygpu.host.plugins.module_utils.settings.apply import Keeper
from ansible_collections.steadygpu.host.plugins.module_utils.settings.files import header
from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import (
    SettingsError,
    Target,
)
from ansible_collections.steadygpu.host.plugins.module_utils.settings.survey import survey

KEY = "/proc/sys/kernel/numa_balancing"
BALANCING = Target("kernel.numa_balancing", "sysctl", "kernel.numa_balancing", "0")
PAGES = Target("hugepages node 0", "number", "/sys/pages", "512")
QOS = Target("vda iocost", "line", "/sys/qos", "8:0 enable=1", neutral="8:0 enable=0")
BOOT = Target("iommu", "boot_parameter", "", "iommu=pt")
FILE = "/etc/sysctl.d/90-steadygpu-numa.conf"
TEXT = header("numa") + "kernel.numa_balancing = 0\n"
RECORD = "var/lib/steadygpu/owned/settings-numa.json"


@pytest.fixture
def host(tmp_path: Path) -> Path:
    for path, text in ((KEY, "1\n"), ("/sys/pages", "8\n"), ("/sys/qos", "")):
        place = tmp_path / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    (tmp_path / "proc/cmdline").write_text("quiet\n")
    return tmp_path


def tree(root: Path) -> dict[str, str]:
    """All files but the ledger of the rollback."""
    paths = [path for path in root.rglob("*") if path.is_file() and "rollback" not in path.parts]
    return {str(path.relative_to(root)): path.read_text() for path in paths}


def keeper(root: Path, check_mode: bool = False) -> Keeper:
    return Keeper("numa", check_mode, str(root))


def test_what_was_kept_is_effective_and_comes_back_exactly(host: Path) -> None:
    before = tree(host)
    foreseen = keeper(host, True).keep([BALANCING, PAGES, QOS, BOOT], {FILE: TEXT})
    assert tree(host) == before
    done = keeper(host).keep([BALANCING, PAGES, QOS, BOOT], {FILE: TEXT})
    assert foreseen.actions == done.actions
    assert foreseen.diff == done.diff
    assert done.actions == [
        f"write {FILE}",
        "set kernel.numa_balancing to 0 (was 1)",
        "set hugepages node 0 to 512 (was 8)",
        "set vda iocost to 8:0 enable=1 (was unset)",
    ]
    assert done.diff[-1]["before"].splitlines()[0] == "kernel.numa_balancing = 1"
    assert [one.verdict for one in done.settings] == ["effective"] * 3 + ["pending"]
    again = keeper(host).keep([BALANCING, PAGES, QOS, BOOT], {FILE: TEXT})
    assert (again.actions, again.changed, again.diff) == ([], False, [])
    assert record.owners(str(host)) == ["numa"]
    gone = keeper(host).absent()
    assert gone.changed
    assert tree(host) == {**before, "sys/qos": "8:0 enable=0\n"}
    assert not keeper(host).absent().changed


def test_drift_is_found_and_repaired_and_the_first_value_remembered(host: Path) -> None:
    keeper(host).keep([BALANCING])
    (host / KEY.lstrip("/")).write_text("2\n")
    repaired = keeper(host).keep([BALANCING])
    assert repaired.actions == ["set kernel.numa_balancing to 0 (was 2)"]
    keeper(host).absent()
    assert (host / KEY.lstrip("/")).read_text() == "1\n"


def test_what_is_no_longer_wanted_gets_its_former_value(host: Path) -> None:
    keeper(host).keep([BALANCING, PAGES], {FILE: TEXT})
    done = keeper(host).keep([PAGES])
    assert done.actions == [f"remove {FILE}", "put kernel.numa_balancing back to 1 (was 0)"]
    kept = record.load("numa", str(host))
    assert kept is not None
    assert [former.target for former in kept.formers] == [PAGES]
    assert kept.files == ()


def test_a_value_that_somebody_changed_after_us_stays(host: Path) -> None:
    keeper(host).keep([PAGES])
    (host / "sys/pages").write_text("64\n")
    gone = keeper(host).absent()
    assert "somebody changed it" in gone.warnings[0]
    assert (host / "sys/pages").read_text() == "64\n"


def test_a_foreign_file_is_refused_before_anything_is_written(host: Path) -> None:
    foreign = host / FILE.lstrip("/")
    foreign.parent.mkdir(parents=True)
    foreign.write_text("kernel.numa_balancing = 1\n")
    before = tree(host)
    with pytest.raises(SettingsError, match=r"is not of steadygpu\.host"):
        keeper(host).keep([BALANCING], {FILE: TEXT})
    assert tree(host) == before


@pytest.mark.parametrize(
    ("path", "line", "refused"),
    [
        ("etc/sysctl.d/99-mine.conf", "kernel.numa_balancing = 1", True),
        ("usr/lib/sysctl.d/99-theirs.conf", "-kernel/numa_balancing=1", True),
        ("etc/sysctl.d/99-mine.conf", "kernel.numa_balancing = 0", False),
        ("etc/sysctl.d/99-mine.conf", "# kernel.numa_balancing = 1", False),
        ("etc/sysctl.d/99-mine.conf", "kernel.* = 1", False),
        ("etc/sysctl.d/10-early.conf", "kernel.numa_balancing = 1", False),
    ],
)
def test_a_value_that_the_next_boot_would_take_back_is_refused(
    host: Path, path: str, line: str, refused: bool
) -> None:
    (host / path).parent.mkdir(parents=True, exist_ok=True)
    (host / path).write_text(line + "\n")
    before = tree(host)
    if refused:
        with pytest.raises(SettingsError, match=f"/{path} sets kernel.numa_balancing to 1"):
            keeper(host).keep([BALANCING], {FILE: TEXT})
        assert tree(host) == before
    else:
        assert keeper(host).keep([BALANCING], {FILE: TEXT}).changed


def test_a_value_that_the_kernel_refuses_puts_everything_back(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(host)
    really = apply.write_live

    def refuse(target: Target, value: str, root: str = "/") -> None:
        if target == PAGES:
            raise OSError(errno.EINVAL, "Invalid argument")
        really(target, value, root)

    monkeypatch.setattr(apply, "write_live", refuse)
    with pytest.raises(SettingsError) as caught:
        keeper(host).keep([BALANCING, PAGES], {FILE: TEXT})
    assert (
        "the kernel refused '512' for /sys/pages, which holds '8': Invalid argument (EINVAL)"
        in (str(caught.value))
    )
    assert "The host is as it was before." in str(caught.value)
    assert tree(host) == before


def test_what_the_kernel_grants_in_part_differs_and_changes_once(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def grant(target: Target, value: str, root: str = "/") -> None:
        (Path(root) / target.path.lstrip("/")).write_text(f"{min(int(value), 300)}\n")

    monkeypatch.setattr(apply, "write_live", grant)
    first = keeper(host).keep([PAGES])
    assert [(one.effective, one.verdict) for one in first.differing()] == [("300", "differs")]
    for check_mode in (True, False):
        again = keeper(host, check_mode).keep([PAGES])
        assert (again.actions, again.differing()[0].effective) == ([], "300")
    keeper(host).absent()
    assert (host / "sys/pages").read_text() == "8\n"


def test_what_the_kernel_has_not_is_recorded_and_not_written(host: Path) -> None:
    lacking = Target("kernel.sched_rt", "sysctl", "kernel.sched_rt", "950000", note="too new")
    done = keeper(host).keep([lacking])
    assert done.actions == ["remember the settings of numa"]
    assert [(one.verdict, one.reason) for one in done.settings] == [("unsupported", "too new")]
    assert not keeper(host).keep([lacking]).changed
    assert keeper(host).absent().actions == ["forget the settings of numa"]


def test_a_setting_that_is_wanted_twice_is_refused(host: Path) -> None:
    other = Target("balancing", "sysctl", "kernel.numa_balancing", "1")
    with pytest.raises(SettingsError, match="wanted twice: as '0' and as '1'"):
        keeper(host).keep([BALANCING, other])


def test_a_record_that_cannot_be_understood_stops_everything(host: Path) -> None:
    place = host / RECORD
    place.parent.mkdir(parents=True)
    for text in ("{", '{"version": 9}', '{"version": 1, "settings": [{"former": 1}], "files": []}'):
        place.write_text(text)
        with pytest.raises(SettingsError, match="cannot be understood"):
            keeper(host).keep([BALANCING])
    assert (host / KEY.lstrip("/")).read_text() == "1\n"


def refusing(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    really = apply.write_live

    def write(target: Target, new: str, root: str = "/") -> None:
        if new == value:
            raise OSError(errno.EBUSY, "Device or resource busy")
        really(target, new, root)

    monkeypatch.setattr(apply, "write_live", write)


def test_a_former_value_that_is_refused_is_tried_again_and_stops_nothing(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(host)
    keeper(host).keep([PAGES, BALANCING], {FILE: TEXT})
    with monkeypatch.context() as patch:
        refusing(patch, "8")
        gone = keeper(host).absent()
        assert gone.actions == [f"remove {FILE}", "put kernel.numa_balancing back to 1 (was 0)"]
        assert (
            "could not be put back to 8 and is 512: Device or resource busy (EBUSY)"
            in (gone.warnings[0])
        )
        assert record.owners(str(host)) == ["numa"]
        (waiting,) = survey(str(host))
        assert (waiting.setting.verdict, waiting.setting.wanted) == ("pending", "8")
        for check_mode in (True, False):
            assert keeper(host, check_mode).absent().actions == []
        # Wanted again, its former value is still the one from before the first run.
        assert not keeper(host).keep([PAGES], extra={}).warnings
        keeper(host).absent()
    assert keeper(host).absent().actions == ["put hugepages node 0 back to 8 (was 512)"]
    assert tree(host) == before


def test_a_former_value_that_is_granted_in_part_is_not_forgotten(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (host / "sys/pages").write_text("4096\n")
    none = Target(PAGES.name, PAGES.kind, PAGES.path, "0")
    keeper(host).keep([none])

    def grant(target: Target, value: str, root: str = "/") -> None:
        (Path(root) / target.path.lstrip("/")).write_text(f"{min(int(value), 300)}\n")

    with monkeypatch.context() as patch:
        patch.setattr(apply, "write_live", grant)
        gone = keeper(host).absent()
    assert "could not be put back to 4096 and is 300" in gone.warnings[0]
    assert keeper(host).absent().actions == ["put hugepages node 0 back to 4096 (was 300)"]
    assert record.owners(str(host)) == []


def test_a_file_that_appears_later_has_a_former_value(host: Path) -> None:
    (host / "sys/pages").unlink()
    assert keeper(host).keep([PAGES]).settings[0].verdict == "unsupported"
    (host / "sys/pages").write_text("8\n")
    assert keeper(host).keep([PAGES]).actions == ["set hugepages node 0 to 512 (was 8)"]
    keeper(host).absent()
    assert (host / "sys/pages").read_text() == "8\n"


def test_numbers_that_iocost_chose_itself_are_not_frozen(host: Path) -> None:
    (host / "sys/qos").write_text("8:0 enable=0 ctrl=auto rpct=0.00 rlat=250000\n")
    keeper(host).keep([QOS])
    keeper(host).absent()
    assert (host / "sys/qos").read_text() == "8:0 enable=0 ctrl=auto\n"


def test_notes_of_an_owner_and_another_order_are_no_change(host: Path) -> None:
    keeper(host).keep([PAGES, BALANCING], extra={"boot": "a"})
    again = keeper(host).keep([BALANCING, PAGES], extra={"boot": "b"})
    assert not again.changed
    kept = record.load("numa", str(host))
    assert kept is not None
    assert kept.extra == {"boot": "b"}


class Killed(BaseException):
    """The process is gone: nothing of it runs any more."""


def _killed_after(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counter = itertools.count(1)

    def cut(real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **named: Any) -> Any:
            if next(counter) > count:
                raise Killed
            return real(*args, **named)

        return step

    monkeypatch.setattr(apply, "write_live", cut(apply.write_live))
    monkeypatch.setattr(vouched, "write", cut(vouched.write))
    monkeypatch.setattr(vouched, "remove", cut(vouched.remove))


@pytest.mark.parametrize("count", range(9))
def test_a_kill_at_any_point_is_completed_by_the_next_run_and_can_be_taken_back(
    host: Path, count: int
) -> None:
    before = tree(host)
    steps: list[Callable[[], object]] = [
        lambda: keeper(host).keep([BALANCING, PAGES], {FILE: TEXT}),
        lambda: keeper(host).keep([Target(PAGES.name, "number", PAGES.path, "256")]),
        lambda: keeper(host).absent(),
    ]
    for step in steps:
        with pytest.MonkeyPatch.context() as patch:
            _killed_after(count, patch)
            with contextlib.suppress(Killed):
                step()
    keeper(host).absent()
    assert tree(host) == before
