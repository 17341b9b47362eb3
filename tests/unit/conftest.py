# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How all unit tests run: the same examples every time, and nothing of this machine changes."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from ansible_collections.steadygpu.host.plugins.module_utils import vouched

# No deadline: a busy machine is no fault of the code. Derandomised: a lane that failed fails again.
# `pytest --hypothesis-profile search` looks for examples that were never tried.
settings.register_profile("lane", deadline=None, derandomize=True)
# `few` is for another Python, which is there to show that the code runs at all.
settings.register_profile("few", deadline=None, derandomize=True, max_examples=20)
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile("lane")


@pytest.fixture(autouse=True, scope="session")
def ledger_of_this_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is written outside a root of the test's own is vouched for in a ledger of the tests."""
    real = vouched._ledger
    instead = str(tmp_path_factory.mktemp("vouched") / "vouched.jsonl")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            vouched,
            "_ledger",
            lambda root: instead if os.path.abspath(root) == "/" else real(root),
        )
        yield
