# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Our policy binds our own run only, and the policy of the host is there before and after."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.package_sets import guard


class CutError(Exception):
    """The process ends here."""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    directory = tmp_path / "usr/sbin"
    directory.mkdir(parents=True)
    return directory / "policy-rc.d"


def _asked(policy: Path, *words: str, **environment: str) -> int:
    return subprocess.run([str(policy), *words], env=environment, check=False).returncode


def test_it_binds_nobody_but_our_own_package_manager(tmp_path: Path, policy: Path) -> None:
    with guard.engines_kept(str(tmp_path)) as environment:
        ours = dict(environment)
        assert _asked(policy, "docker.service", "restart", **ours) == 101
        # invoke-rc.d names the init script.
        assert _asked(policy, "--quiet", "containerd", "stop", "2", **ours) == 101
        assert _asked(policy, "nvidia-persistenced.service", "start", **ours) == 0
        assert _asked(policy, "docker.service", "restart") == 0
    assert not policy.exists()


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_policy_of_the_host_is_asked_too_and_comes_back(
    tmp_path: Path, policy: Path, kind: str
) -> None:
    theirs = tmp_path / "theirs" if kind == "link" else policy
    theirs.write_text("#!/bin/sh\nexit 104\n")
    theirs.chmod(0o750)
    if kind == "link":
        policy.symlink_to(theirs)
    with guard.engines_kept(str(tmp_path)):
        assert guard.left_behind(str(tmp_path))
        former = policy.with_name("policy-rc.d.steadygpu-former")
        assert former.read_text() == "#!/bin/sh\nexit 104\n"
        assert "exec /usr/sbin/policy-rc.d.steadygpu-former" in policy.read_text()
    assert policy.is_symlink() == (kind == "link")
    assert (policy.read_text(), policy.stat().st_mode & 0o777) == ("#!/bin/sh\nexit 104\n", 0o750)
    assert os.listdir(policy.parent) == ["policy-rc.d"]


@pytest.mark.parametrize("theirs", [None, "#!/bin/sh\nexit 101\n"])
@pytest.mark.parametrize("name", ["link", "replace", "unlink", "open"])
@pytest.mark.parametrize("when", [1, 2])
@pytest.mark.parametrize("after", [False, True])
def test_a_kill_anywhere_costs_nobody_the_policy(
    tmp_path: Path,
    policy: Path,
    monkeypatch: pytest.MonkeyPatch,
    theirs: str | None,
    name: str,
    when: int,
    after: bool,
) -> None:
    if theirs:
        policy.write_text(theirs)
    real, left = getattr(os, name), [when]

    def cut(*arguments: Any, **more: Any) -> Any:
        left[0] -= 1
        if left[0] == 0 and not after:
            raise CutError
        answer = real(*arguments, **more)
        if left[0] == 0:
            raise CutError
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(guard.os, name, cut)
        try:
            guard.install(str(tmp_path))
            guard.remove(str(tmp_path))
        except CutError:
            pass
    # Whatever is there binds nobody else more than before.
    if policy.exists() and guard._is_ours(str(policy)):
        assert _asked(policy, "docker.service", "restart") == 0
    guard.remove(str(tmp_path))
    assert not guard.left_behind(str(tmp_path))
    assert (policy.read_text() if policy.exists() else None) == theirs
    assert os.listdir(policy.parent) == (["policy-rc.d"] if theirs else [])


@pytest.mark.parametrize("busy", [True, False])
def test_it_stays_for_a_package_manager_that_was_given_up_and_works_on(
    tmp_path: Path, policy: Path, busy: bool
) -> None:
    with pytest.raises(CutError), guard.engines_kept(str(tmp_path), lambda: busy):
        raise CutError
    assert policy.exists() == busy
    # One that has ended needs it no more, whoever is at work by now.
    with guard.engines_kept(str(tmp_path), lambda: busy):
        assert policy.exists()
    assert not policy.exists()
