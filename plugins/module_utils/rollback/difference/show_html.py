# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A difference as one HTML page that needs nothing else: no script, no font, no network. Pure.

The page forbids itself all but its own style sheet, named by its hash, so that nothing that stands
in a file of the host can do anything in a browser, should it ever get past the escaping.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterator, Sequence

from ..model import Change, Difference, Left
from .show_text import TITLES, parts, summary, told, visible

_STYLE = """
:root { color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --edge: #d9dde3; --text: #1c2128; --quiet: #59636e;
  --add: #116329; --add-on: #dafbe1; --cut: #a40e26; --cut-on: #ffebe9; --mod: #7d4e00;
  --mod-on: #fff1cf; --hunk: #0550ae; --hunk-on: #eaf3ff; --code: #f6f8fa; }
@media (prefers-color-scheme: dark) { :root {
  --page: #0f1216; --card: #181c22; --edge: #30363d; --text: #e6e9ed; --quiet: #9aa4af;
  --add: #7ee2a0; --add-on: #12331d; --cut: #ffa198; --cut-on: #431a1c; --mod: #f0c060;
  --mod-on: #3a2c0c; --hunk: #8ec5ff; --hunk-on: #14273f; --code: #12161b; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 66rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.45rem; line-height: 1.3; margin: 0 0 .35rem; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 2rem 0 .6rem; }
h2 small, .quiet { color: var(--quiet); font-weight: normal; }
p { margin: .3rem 0; }
pre, .subject, .told { font-size: .86em;
  font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
dl.about { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.2rem;
  margin: 1rem 0; }
dl.about dt { color: var(--quiet); } dl.about dd { margin: 0; overflow-wrap: anywhere; }
nav { display: flex; flex-wrap: wrap; gap: .5rem; margin: 1.2rem 0 0; padding: 0; }
nav a { border: 1px solid var(--edge); background: var(--card); border-radius: 99px;
  padding: .15rem .8rem; color: inherit; text-decoration: none; }
nav a b { margin-left: .35rem; }
nav a:hover, nav a:focus { border-color: var(--hunk); }
.same { border-left: 4px solid var(--add); background: var(--card); padding: .7rem 1rem; }
.list { border: 1px solid var(--edge); border-radius: 8px; background: var(--card);
  overflow: hidden; }
.item { padding: .5rem .9rem; display: flex; gap: .7rem; align-items: baseline; }
.list > * + * { border-top: 1px solid var(--edge); }
summary { cursor: pointer; list-style: none; }
summary::-webkit-details-marker { display: none; }
summary .item::after { content: "show"; margin-left: auto; flex: none; color: var(--quiet);
  font-size: .85em; text-decoration: underline; text-underline-offset: .2em; }
details[open] > summary .item::after { content: "hide"; }
.badge { flex: none; width: 5.2em; text-align: center; font-size: .78em; border-radius: 5px; }
.badge.added { color: var(--add); background: var(--add-on); }
.badge.removed { color: var(--cut); background: var(--cut-on); }
.badge.changed { color: var(--mod); background: var(--mod-on); }
.words { min-width: 0; flex: 0 1 auto; overflow-wrap: anywhere; }
.subject { font-weight: 600; margin-right: .7em; }
.told { color: var(--quiet); } .told del { color: var(--cut); text-decoration: none; }
.told ins { color: var(--add); text-decoration: none; }
pre { margin: 0; padding: .5rem 0; background: var(--code); border-top: 1px solid var(--edge);
  overflow-x: auto; line-height: 1.45; tab-size: 4; }
pre span { display: block; padding: 0 .9rem; min-height: 1.45em; width: max-content;
  min-width: 100%; }
pre .p { background: var(--add-on); color: var(--add); }
pre .m { background: var(--cut-on); color: var(--cut); }
pre .h { background: var(--hunk-on); color: var(--hunk); }
footer { margin-top: 2.5rem; color: var(--quiet); font-size: .88em; }
@media (max-width: 40rem) { .item { flex-wrap: wrap; } .words { flex-basis: 100%; order: 1; } }
@media print { summary .item::after { content: ""; } body { background: none; }
  pre { white-space: pre-wrap; } }
"""
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

# A diff that is longer is folded, so that a page begins as an overview.
_OPEN = 40


def page(
    difference: Difference, left: Sequence[Left] = (), about: Sequence[tuple[str, str]] = ()
) -> str:
    """The page. ``left`` is what a restore would leave, ``about`` are lines of a label and a text,
    such as who took the two checkpoints, when and why; both as they are, without their secrets.
    """
    return "".join(_page(difference, left, about))


def _page(
    difference: Difference, left: Sequence[Left], about: Sequence[tuple[str, str]]
) -> Iterator[str]:
    title = f"{_text(difference.before)} → {_text(difference.after)}"
    yield (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        f"style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>Checkpoints: {title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f'<h1><span class="quiet">What differs:</span> {title}</h1>\n'
    )
    counted = [change for change in difference.changes if change.counts]
    aside = [change for change in difference.changes if not change.counts]
    if difference.empty:
        yield '<p class="same">The two are the same in all that counts.</p>\n'
    else:
        yield f"<p>{_text(summary(difference).partition(': ')[2])}</p>\n"
    if about:
        yield '<dl class="about">\n'
        for label, text in about:
            yield f"<dt>{_text(label)}</dt><dd>{_text(text)}</dd>\n"
        yield "</dl>\n"
    yield from _contents(counted, aside, left)
    for part in parts(counted):
        yield from _section(part, TITLES.get(part, part), [c for c in counted if c.part == part])
    if aside:
        words = "not counted: comes and goes by itself, or is not known"
        ordered = [change for part in parts(aside) for change in aside if change.part == part]
        yield from _section("aside", "Besides", ordered, words)
    if left:
        yield f'<section id="left">\n<h2>Not restored <small>{len(left)}</small></h2>\n'
        yield '<p class="quiet">A restore leaves these as they are.'
        if any(one.pending for one in left):
            yield " Another one brings back what is marked later, once nothing is in the way."
        yield '</p>\n<div class="list">\n'
        for one in left:
            badge = '<span class="badge changed">later</span> ' if one.pending else ""
            yield (
                f'<div class="item">{badge}<span class="words"><span class="subject">'
                f'{_text(one.subject)}</span><span class="quiet">{_text(one.reason)}</span>'
                "</span></div>\n"
            )
        yield "</div>\n</section>\n"
    yield (
        "<footer>Secrets are never part of this page: &lt;redacted&gt; stands for one, and "
        "&lt;redacted, changed&gt; for one that is not the same as before.</footer>\n"
        "</main>\n</body>\n</html>\n"
    )


def _contents(
    counted: Sequence[Change], aside: Sequence[Change], left: Sequence[Left]
) -> Iterator[str]:
    entries = [
        (part, TITLES.get(part, part), sum(change.part == part for change in counted))
        for part in parts(counted)
    ]
    entries += [("aside", "Besides", len(aside))] if aside else []
    entries += [("left", "Not restored", len(left))] if left else []
    if len(entries) > 1:
        yield '<nav aria-label="Contents">\n'
        for name, title, count in entries:
            yield f'<a href="#{_text(name)}">{_text(title)} <b>{count}</b></a>\n'
        yield "</nav>\n"


def _section(name: str, title: str, changes: Sequence[Change], words: str = "") -> Iterator[str]:
    note = f"{len(changes)}, {words}" if words else str(len(changes))
    yield f'<section id="{_text(name)}">\n<h2>{_text(title)} <small>{note}</small></h2>\n'
    yield '<div class="list">\n'
    for change in changes:
        head = _head(change)
        if not change.lines:
            yield f"{head}\n"
            continue
        is_open = " open" if len(change.lines) <= _OPEN else ""
        yield f"<details{is_open}><summary>{head}</summary>\n<pre>"
        for line in change.lines:
            style = {"+": "p", "-": "m", "@": "h"}.get(line[:1], "c")
            yield f'<span class="{style}">{_text(line)}</span>'
        yield "</pre></details>\n"
    yield "</div>\n</section>\n"


def _head(change: Change) -> str:
    kind = change.kind if change.kind in ("added", "removed") else "changed"
    text = _text(told(change))
    if text and kind == "changed":
        before, after = _text(change.before) or "nothing", _text(change.after) or "nothing"
        text = f"<del>{before}</del> → <ins>{after}</ins>"
    return (
        f'<span class="item"><span class="badge {kind}">{kind}</span> <span class="words">'
        f'<span class="subject">{_text(change.subject)}</span>'
        f'<span class="told">{text}</span></span></span>'
    )


def _text(text: str) -> str:
    return html.escape(visible(text))
