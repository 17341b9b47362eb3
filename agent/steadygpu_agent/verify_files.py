# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu verify``: are these files what a manifest, and who signed it, says they are?"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steadygpu_agent.verify_manifest import Manifest

# Exit statuses. 0, 3 and 7 are those of the article that the command answers.
GOOD = 0
NOT_STRICT = 1
USAGE = 2
MISMATCH = 3
NO_MANIFEST = 7


def register(commands: Any) -> None:
    """Add ``verify`` to the sub-parsers of the command."""
    verify = commands.add_parser(
        "verify",
        help="compare files with a signed manifest of their SHA-256 sums",
        description="Exit status: 0 good, 1 good but not as --strict wants it, 2 not understood, 3 "
        "a file or the signature does not match, 7 the manifest is missing or malformed.",
    )
    verify.add_argument("files", nargs="*", metavar="FILE", help="what to verify")
    verify.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="FILE",
        help="the same as FILE",
    )
    verify.add_argument(
        "--manifest",
        metavar="FILE",
        help="the sums; without it FILE.sha256 or manifest.json beside each file. Without any FILE "
        "all that it names is verified",
    )
    verify.add_argument(
        "--signature", metavar="FILE", help="the manifest's signature (default: MANIFEST.sig)"
    )
    verify.add_argument(
        "--allowed-signers", metavar="FILE", help="who may sign, as ssh-keygen(1) has it"
    )
    verify.add_argument("--identity", metavar="NAME", help="whose signature it must be")
    verify.add_argument(
        "--strict",
        action="store_true",
        help="also wanted: a good signature, a directory that this user may write, and no one else",
    )
    verify.add_argument("--json", action="store_true", help="print JSON")
    verify.add_argument(
        "--write-manifest",
        metavar="FILE",
        help="instead of verifying, write the sums of the files to FILE",
    )
    verify.set_defaults(run=run)


@dataclass
class File:
    """One file: ``wanted`` is None where the manifest does not name it."""

    path: str
    ok: bool
    wanted: str | None
    found: str | None
    said: str = ""


@dataclass
class Report:
    """What was verified. ``signature`` is ``good``, ``none``, ``not checked`` or ``bad``."""

    time: str
    status: int = GOOD
    manifests: list[str] = field(default_factory=list)
    signature: str = "none"
    signed_by: str | None = None
    files: list[File] = field(default_factory=list)
    permissions: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def result(self) -> str:
        """The status in one word."""
        words = {GOOD: "good", NOT_STRICT: "not strict", MISMATCH: "mismatch"}
        return words.get(self.status, "manifest")

    def worse(self, status: int, said: str) -> None:
        """Note a problem; the gravest status stays."""
        order = (GOOD, NOT_STRICT, MISMATCH, NO_MANIFEST)
        self.status = max(self.status, status, key=order.index)
        self.problems.append(said)


def run(arguments: argparse.Namespace) -> int:
    """Verify or write; print the report; the exit status."""
    files = [*arguments.files, *arguments.target]
    fault = _fault(arguments, files)
    if fault:
        print(f"steadygpu verify: {fault}", file=sys.stderr)
        return USAGE
    if arguments.write_manifest:
        return _write(arguments.write_manifest, files)
    report = verify(arguments, files)
    if arguments.json:
        import json

        print(json.dumps({"result": report.result, **asdict(report)}, indent=2))
    else:
        print(page(report))
    return report.status


def _fault(arguments: argparse.Namespace, files: list[str]) -> str | None:
    if arguments.write_manifest:
        return None if files else "which files? For example: --write-manifest manifest.json FILE"
    if not files and not arguments.manifest:
        return "wanted is a file to verify, or --manifest"
    if bool(arguments.allowed_signers) != bool(arguments.identity):
        return "--allowed-signers and --identity belong together: who may sign, and who must have"
    if arguments.signature and not arguments.allowed_signers:
        return "a signature proves nothing by itself: wanted are --allowed-signers and --identity"
    return None


def verify(arguments: argparse.Namespace, files: list[str]) -> Report:
    """Compare the files with their manifests. Raises nothing."""
    from steadygpu_agent import verify_manifest as core

    report = Report(_moment())
    seen: dict[str, Manifest] = {}
    for path, place in _pairs(arguments, files):
        try:
            if place not in seen:
                seen[place] = core.read(place)
                report.manifests.append(place)
                _signed(report, seen[place], arguments)
            manifest = seen[place]
        except core.ManifestError as error:
            report.worse(NO_MANIFEST, str(error))
            continue
        names = [manifest.locate(path)] if path else list(manifest.sums)
        for name in names:
            _compare(report, manifest, name, path or manifest.place(str(name)), arguments.strict)
    return report


def _pairs(arguments: argparse.Namespace, files: list[str]) -> list[tuple[str, str]]:
    """Each file ("" for all in the manifest) and the manifest that should name it."""
    if arguments.manifest:
        return [(path, arguments.manifest) for path in files or [""]]
    pairs = []
    for path in files:
        beside = f"{path}.sha256"
        common = os.path.join(os.path.dirname(path), "manifest.json")
        pairs.append((path, common if not os.path.exists(beside) else beside))
    return pairs


def _signed(report: Report, manifest: Manifest, arguments: argparse.Namespace) -> None:
    from steadygpu_agent import verify_manifest as core

    signature = arguments.signature or manifest.path + ".sig"
    if not arguments.allowed_signers:
        there = os.path.exists(signature)
        report.signature = "not checked" if there else "none"
        said = (
            f"{signature} was not checked: --allowed-signers and --identity say who may sign"
            if there
            else f"{manifest.path} is not signed: who can change the files can change it, too"
        )
        if arguments.strict:
            report.worse(NO_MANIFEST, said)
        else:
            report.notes.append(said)
        return
    refused = core.bad_signature(manifest, signature, arguments.allowed_signers, arguments.identity)
    if refused:
        report.signature, report.signed_by = "bad", None
        report.worse(MISMATCH, f"{signature} does not vouch for {manifest.path}: {refused}")
    elif report.signature != "bad":
        report.signature, report.signed_by = "good", arguments.identity


def _compare(report: Report, manifest: Manifest, name: str | None, path: str, strict: bool) -> None:
    from steadygpu_agent import verify_manifest as core

    wanted = manifest.sums.get(name or "")
    try:
        found: str | None = core.digest(path)[0]
        said = ""
    except core.FileError as error:
        found, said = None, str(error)
    if wanted is None:
        said = said or f"{path} is not named in {manifest.path}"
    elif found is not None and found != wanted:
        said = f"{path} is not what {manifest.path} says"
    one = File(path, not said, wanted, found, said)
    report.files.append(one)
    if said:
        report.worse(MISMATCH, said)
    allowed = core.permissions(path)
    report.permissions.append({"path": path, **asdict(allowed)})
    for problem in _permission_problems(allowed):
        if strict:
            report.worse(NOT_STRICT, problem)
        else:
            report.notes.append(problem)


def _permission_problems(allowed: Any) -> list[str]:
    found = list(allowed.others)
    if not allowed.writable:
        found.append(f"{allowed.directory} may not be written by this user (uid {os.geteuid()})")
    return found


def page(report: Report) -> str:
    """What a person reads. Pure."""
    lines = [f"{report.result.upper()}  {report.time}"]
    for one in report.files:
        lines.append(f"  {'ok      ' if one.ok else 'MISMATCH'}  {_one_line(one.path)}")
        if not one.ok and one.wanted and one.found:
            lines += [f"            wanted {one.wanted}", f"            found  {one.found}"]
    if report.manifests:
        who = f" of {report.signed_by}" if report.signed_by else ""
        lines.append(f"  manifest  {_one_line(', '.join(report.manifests))}")
        lines.append(f"  signature {report.signature}{who}")
    lines += [f"  problem: {_one_line(said)}" for said in dict.fromkeys(report.problems)]
    lines += [f"  note: {_one_line(said)}" for said in dict.fromkeys(report.notes)]
    return "\n".join(lines)


def _one_line(text: str) -> str:
    """A name may hold line breaks, and would look like further lines of the report."""
    return "".join(char if char.isprintable() else "?" for char in text)


def _write(target: str, files: list[str]) -> int:
    from ansible_collections.steadygpu.host.plugins.module_utils.atomic import write_atomic
    from steadygpu_agent import verify_manifest as core

    try:
        text = core.text_of(files, os.path.dirname(os.path.abspath(target)), _moment())
        write_atomic(target, text)
    except core.FileError as error:
        print(f"steadygpu verify: {error}", file=sys.stderr)
        return MISMATCH
    except OSError as error:
        print(f"steadygpu verify: {target}: {error.strerror}", file=sys.stderr)
        return NOT_STRICT
    print(f"{target}: {len(files)} files. A sum alone proves nothing: sign it with")
    print(f"ssh-keygen -Y sign -f KEY -n {core.NAMESPACE} {target}")
    return GOOD


def _moment() -> str:
    import datetime

    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
