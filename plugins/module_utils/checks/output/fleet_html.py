# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checks of a fleet as one HTML page that needs nothing else: no script, no network. Pure.

The page forbids itself all but its own style sheet, named by its hash, so that nothing that stands
in a file of a host can do anything in a browser, should it ever get past the escaping.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...secrets import mask
from ..model import Severity

_STYLE = """
:root { color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --edge: #d9dde3; --text: #1c2128; --quiet: #59636e;
  --fatal: #ffffff; --fatal-on: #86061d; --error: #a40e26; --error-on: #ffe3e0;
  --warning: #7d4e00; --warning-on: #fff1cf; --info: #0550ae; --info-on: #e3f0ff;
  --good: #116329; --good-on: #dafbe1; --code: #f2f4f7; --link: #0550ae; }
@media (prefers-color-scheme: dark) { :root {
  --page: #0f1216; --card: #181c22; --edge: #30363d; --text: #e6e9ed; --quiet: #9aa4af;
  --fatal: #ffffff; --fatal-on: #a40e26; --error: #ffa198; --error-on: #431a1c;
  --warning: #f0c060; --warning-on: #3a2c0c; --info: #8ec5ff; --info-on: #14273f;
  --good: #7ee2a0; --good-on: #12331d; --code: #12161b; --link: #8ec5ff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 70rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.5rem; line-height: 1.3; margin: 0 0 .35rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
h2 small, .quiet { color: var(--quiet); font-weight: normal; }
p { margin: .3rem 0; overflow-wrap: anywhere; }
a { color: var(--link); }
code, pre { font-size: .88em; background: var(--code);
  font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
code { padding: .05rem .3rem; border-radius: 4px; overflow-wrap: anywhere; }
pre { margin: .4rem 0; padding: .5rem .8rem; border-radius: 6px; white-space: pre-wrap;
  overflow-wrap: anywhere; }
.wide { overflow-x: auto; border: 1px solid var(--edge); border-radius: 8px;
  background: var(--card); }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 600; color: var(--quiet); font-size: .88em; }
th, td { padding: .45rem .8rem; vertical-align: baseline; }
tr + tr td { border-top: 1px solid var(--edge); }
td.count { text-align: right; font-variant-numeric: tabular-nums; }
th.count { text-align: right; }
.zero { color: var(--quiet); opacity: .55; }
.badge { display: inline-block; min-width: 4.8em; padding: 0 .5em; text-align: center;
  font-size: .8em; border-radius: 5px; }
.fatal { color: var(--fatal); background: var(--fatal-on); }
.error { color: var(--error); background: var(--error-on); }
.warning { color: var(--warning); background: var(--warning-on); }
.info { color: var(--info); background: var(--info-on); }
.good { color: var(--good); background: var(--good-on); }
.finding { border: 1px solid var(--edge); border-radius: 8px; background: var(--card);
  margin: .5rem 0; }
summary { cursor: pointer; padding: .5rem .8rem; display: flex; gap: .7rem;
  align-items: baseline; list-style: none; }
summary::-webkit-details-marker { display: none; }
summary .title { flex: 1; min-width: 0; font-weight: 600; overflow-wrap: anywhere; }
summary .place { color: var(--quiet); font-size: .88em; overflow-wrap: anywhere; }
.body { padding: 0 .8rem .7rem; border-top: 1px solid var(--edge); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; margin: .6rem 0 0; }
dt { color: var(--quiet); } dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
footer { margin-top: 2.5rem; color: var(--quiet); font-size: .88em; }
@media (max-width: 40rem) { summary { flex-wrap: wrap; } summary .title { flex-basis: 100%; }
  dl { grid-template-columns: 1fr; } }
@media print { body { background: none; } }
"""
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_LABELS = tuple(severity.label for severity in sorted(Severity, reverse=True))


@dataclass(frozen=True)
class HostChecks:
    """What became of one host. ``reason`` says why it was not checked (None: it was).

    ``findings`` are :meth:`Finding.as_dict`; ``unusable`` are inputs that could not be judged,
    each with ``file`` and ``said``; ``about`` is a line for a person, such as its engine and GPUs.
    """

    name: str
    findings: Sequence[Mapping[str, Any]] = ()
    unusable: Sequence[Mapping[str, Any]] = ()
    about: str = ""
    reason: str | None = None

    def count(self, label: str) -> int:
        """How many findings have this severity."""
        return sum(finding["severity"] == label for finding in self.findings)


def page(hosts: Sequence[HostChecks], made: str) -> str:
    """The page: an overview, the faults of the fleet, and each host. ``made``: when, as text."""
    return "".join(_page(sorted(hosts, key=_gravest), made))


def _gravest(host: HostChecks) -> tuple[Any, ...]:
    """Sort key: hosts that were not checked first, then the worst."""
    return (host.reason is None, *(-host.count(label) for label in _LABELS), host.name)


def _page(hosts: Sequence[HostChecks], made: str) -> Iterator[str]:
    yield (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        f"style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>GPU hosts: checks</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f'<h1>Checks of {_many(len(hosts), "GPU host")}</h1>\n<p class="quiet">{_text(made)}</p>\n'
        f"<p>{_text(_summary(hosts))}</p>\n"
    )
    yield from _overview(hosts)
    yield from _faults(hosts)
    for place, host in enumerate(hosts):
        yield from _host(host, place)
    yield (
        "<footer>Nothing was changed on any host. Values of secrets are never part of this page."
        "</footer>\n</main>\n</body>\n</html>\n"
    )


def _summary(hosts: Sequence[HostChecks]) -> str:
    unseen = [host for host in hosts if host.reason is not None]
    clean = [host for host in hosts if host.reason is None and not _serious(host)]
    parts = [f"{_many(len(clean), 'host')} with nothing above info"]
    parts += [
        f"{_many(sum(bool(host.count(label)) for host in hosts), 'host')} with {label} findings"
        for label in _LABELS[:-1]
        if any(host.count(label) for host in hosts)
    ]
    if unseen:
        parts.append(f"{_many(len(unseen), 'host')} not checked")
    return "; ".join(parts) + "."


def _serious(host: HostChecks) -> bool:
    return any(host.count(label) for label in _LABELS[:-1])


def _overview(hosts: Sequence[HostChecks]) -> Iterator[str]:
    heads = "".join(f'<th class="count">{label}</th>' for label in _LABELS)
    yield f'<h2>Hosts</h2>\n<div class="wide"><table>\n<tr><th>host</th>{heads}<th></th></tr>\n'
    for place, host in enumerate(hosts):
        if host.reason is not None:
            cells = f'<td colspan="{len(_LABELS)}" class="quiet">not checked</td>'
        else:
            cells = "".join(_count(host.count(label)) for label in _LABELS)
        about = host.reason if host.reason is not None else host.about
        yield (
            f'<tr><td><a href="#host-{place}">{_text(host.name)}</a></td>{cells}'
            f'<td class="quiet">{_text(about)}</td></tr>\n'
        )
    yield "</table></div>\n"


def _count(number: int) -> str:
    quiet = "" if number else " zero"
    return f'<td class="count{quiet}">{number}</td>'


def _faults(hosts: Sequence[HostChecks]) -> Iterator[str]:
    """The fleet's view: what one fix for many hosts would settle."""
    found: dict[tuple[str, str], tuple[Mapping[str, Any], list[str]]] = {}
    for host in hosts:
        for finding in host.findings:
            key = (finding["severity"], finding["rule"])
            names = found.setdefault(key, (finding, []))[1]
            if host.name not in names:
                names.append(host.name)
    ranked = sorted(
        found.values(),
        key=lambda pair: (_LABELS.index(pair[0]["severity"]), -len(pair[1]), pair[0]["rule"]),
    )
    if not ranked:
        return
    yield (
        f"<h2>What was found <small>{_many(len(ranked), 'kind')}</small></h2>\n"
        '<div class="wide"><table>\n<tr><th></th><th>rule</th><th>what</th><th>hosts</th></tr>\n'
    )
    for finding, names in ranked:
        names.sort()
        shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        yield (
            f"<tr><td>{_badge(finding['severity'])}</td><td><code>{_text(finding['rule'])}</code>"
            f"</td><td>{_text(finding['title'])}</td><td>{_text(shown)}</td></tr>\n"
        )
    yield "</table></div>\n"


def _host(host: HostChecks, place: int) -> Iterator[str]:
    about = f" <small>{_text(host.about)}</small>" if host.about else ""
    yield f'<section id="host-{place}">\n<h2>{_text(host.name)}{about}</h2>\n'
    if host.reason is not None:
        yield f"<p>{_badge('error', 'not checked')} {_text(host.reason)}</p>\n</section>\n"
        return
    if not host.findings and not host.unusable:
        yield f"<p>{_badge('good', 'clean')} Nothing was found.</p>\n"
    for finding in host.findings:
        yield from _finding(finding)
    for unusable in host.unusable:
        yield (
            f"<p>{_badge('warning', 'not judged')} <code>{_text(unusable['file'])}</code>: "
            f"{_text(unusable['said'])}</p>\n"
        )
    yield "</section>\n"


def _finding(finding: Mapping[str, Any]) -> Iterator[str]:
    grave = finding["severity"] in ("fatal", "error")
    place = str(finding["file"]) + (f":{finding['line']}" if finding.get("line") else "")
    yield (
        f'<details class="finding"{" open" if grave else ""}>\n<summary>'
        f'{_badge(finding["severity"])}<span class="title">{_text(finding["title"])}</span>'
        f'<span class="place">{_text(place)}</span></summary>\n<div class="body"><dl>\n'
        f"<dt>seen</dt><dd>{_text(finding['seen'])}</dd>\n"
        f"<dt>why</dt><dd>{_text(finding['reason'])}</dd>\n"
        f"<dt>fix</dt><dd>{_text(finding['fix'])}"
    )
    if finding.get("commands"):
        yield "<pre>{}</pre>".format(_text("\n".join(finding["commands"])))
    for told in finding.get("costs") or []:
        yield f"<p>{_badge('warning', 'careful')} {_text(told)}</p>"
    yield "</dd>\n"
    if finding.get("assumed"):
        yield f"<dt>assumed</dt><dd>{_text('; '.join(finding['assumed']))}</dd>\n"
    yield f"<dt>rule</dt><dd><code>{_text(finding['rule'])}</code></dd>\n</dl></div>\n</details>\n"


def _badge(kind: str, words: str | None = None) -> str:
    return f'<span class="badge {kind}">{_text(words or kind)}</span>'


def _many(count: int, word: str) -> str:
    return f"{count} {word}" + ("" if count == 1 else "s")


def _text(text: Any) -> str:
    """Text for HTML: escaped, without secrets, and control characters visible as U+FFFD."""
    said = mask.message(str(text))
    shown = "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in said)
    return html.escape(shown)
