# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One rule for each row of the table of regressions."""

from __future__ import annotations

from collections.abc import Iterator

from ..host import HostView
from ..model import Hit, Judge
from ..place import place
from ..registry import rule
from ..versions.components import TITLES
from ..versions.matrix import ONLY, weighed
from ..versions.regressions import REGRESSIONS, Regression


def _judge_of(row: Regression) -> Judge:
    def judge(host: HostView, known: HostView) -> Iterator[Hit]:
        version = host.version(row.component)
        severity = weighed(row.severity, row.only, host)
        if version and row.covers(version) and severity is not None:
            told = not row.only or severity is row.severity
            yield Hit(
                at=place(host, row.component),
                seen=f"{TITLES[row.component]} is {version}",
                severity=severity,
                assumed=() if told else (ONLY[row.only],),
            )

    return judge


for _row in REGRESSIONS:
    rule(
        _row.id,
        _row.title,
        _row.severity,
        reads=HostView,
        reason=_row.reason,
        fix=_row.fix,
        sources=_row.sources,
        cases=_row.cases,
    )(_judge_of(_row))
