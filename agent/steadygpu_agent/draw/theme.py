# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The colours and faces of the picture. One place, light and dark.

The classes of ``svg`` are all here. Colours stand in the rules themselves and not in variables,
which programs other than browsers do not understand.
"""

from __future__ import annotations

_SANS = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
_MONO = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace'

# selector: property: (light, dark)
_COLOURS = {
    ".page": {"fill": ("#ffffff", "#12161c")},
    ".panel": {"fill": ("#f5f6f8", "#1a2029"), "stroke": ("#dde1e7", "#2d3642")},
    ".bridge": {"fill": ("#dfe4ea", "#2c3744")},
    ".switch": {"fill": ("#c6ced9", "#3a4757")},
    ".path": {"stroke": ("#a3adba", "#566475")},
    ".gpu": {"fill": ("#ffffff", "#202833"), "stroke": ("#b9c3cf", "#465464")},
    ".edge": {"fill": ("#0d7a6f", "#2fb3a3")},
    ".nic": {"fill": ("#eef0fb", "#262b45"), "stroke": ("#bcc3ea", "#4a548c")},
    ".ink": {"fill": ("#18202b", "#e9edf2")},
    ".soft": {"fill": ("#5b6675", "#9aa7b6")},
    ".barink": {"fill": ("#3d4856", "#c4cedb")},
    ".nicink": {"fill": ("#3a4594", "#b9c1f2")},
    ".link": {"stroke": ("#0d7a6f", "#2fb3a3")},
    ".gap": {"stroke": ("#ffffff", "#12161c")},
    ".pill": {"fill": ("#ffffff", "#12161c"), "stroke": ("#0d7a6f", "#2fb3a3")},
    ".linkink": {"fill": ("#0a5f57", "#7fd8cc")},
    ".nvswitch": {"fill": ("#0d7a6f", "#14665d")},
    ".nvswitchink": {"fill": ("#ffffff", "#f1fbf9")},
    ".slice": {"fill": ("#d5ece8", "#1d4a45"), "stroke": ("#0d7a6f", "#2fb3a3")},
    ".room": {"fill": ("#eef1f4", "#2a3440")},
    ".inside": {"stroke": ("#f5f6f8", "#1a2029")},
    ".sick": {"stroke": ("#c22f24", "#ff7a6e")},
    ".sickink": {"fill": ("#b3261b", "#ff8a7f")},
    ".sickcard": {"fill": ("#fdf1f0", "#33201f"), "stroke": ("#c22f24", "#ff7a6e")},
    ".sickedge": {"fill": ("#c22f24", "#ff7a6e")},
}

_SHAPES = """\
text{font-family:%s;font-variant-numeric:tabular-nums}
.title{font-size:24px;font-weight:650;letter-spacing:-.2px}
.source{font-size:13px}
.node{font-size:14px;font-weight:650}
.detail{font-size:12px}
.bar{font-size:11px}
.name{font-size:15px;font-weight:650}
.model{font-size:11.5px}
.small{font-size:10.5px}
.mono{font-family:%s;font-size:10px}
.strong{font-weight:650}
.note{font-size:12.5px}
.mid{text-anchor:middle}
.end{text-anchor:end}
.panel,.gpu,.nic,.slice,.pill,.sickcard{stroke-width:1}
.sickcard{stroke-width:1.5}
.path{stroke-width:1.5;fill:none}
.link,.gap,.sick{fill:none;stroke-linejoin:round}
.sick{stroke-dasharray:4 3}
"""


def style() -> str:
    """The style sheet: shapes, light colours, and dark ones where the reader's screen is dark."""
    light = "".join(_rule(selector, rules, 0) for selector, rules in _COLOURS.items())
    dark = "".join(_rule(selector, rules, 1) for selector, rules in _COLOURS.items())
    shapes = _SHAPES % (_SANS, _MONO)
    return f"{shapes}{light}@media (prefers-color-scheme:dark){{\n{dark}}}\n"


def _rule(selector: str, rules: dict[str, tuple[str, str]], side: int) -> str:
    return f"{selector}{{{';'.join(f'{key}:{pair[side]}' for key, pair in rules.items())}}}\n"
