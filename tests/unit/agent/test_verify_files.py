# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu verify``: good files pass, and every way to be fooled has its exit status."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steadygpu_agent import verify_files, verify_manifest

SSH_KEYGEN = shutil.which("ssh-keygen")
signed_only = pytest.mark.skipif(SSH_KEYGEN is None, reason="no ssh-keygen on this machine")
SUM_OF_A = "87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7"


def _run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    verify_files.register(parser.add_subparsers())
    arguments = parser.parse_args(["verify", *words])
    status: int = arguments.run(arguments)
    return status


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A directory with two files and their manifest."""
    directory = tmp_path / "release"
    directory.mkdir(mode=0o755)
    for name in ("a", "b"):
        (directory / name).write_text(f"{name}\n")
        (directory / name).chmod(0o644)
    files = [str(directory / name) for name in ("a", "b")]
    assert _run("--write-manifest", str(directory / "manifest.json"), *files) == 0
    return directory


@pytest.fixture
def signed(release: Path) -> list[str]:
    """The same, signed; the options that verify it."""
    key = release.parent / "key"
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(key)], check=True
    )
    _sign(release / "manifest.json", key)
    signers = release.parent / "signers"
    signers.write_text("release@example " + (release.parent / "key.pub").read_text())
    return ["--allowed-signers", str(signers), "--identity", "release@example"]


def _sign(path: Path, key: Path, namespace: str = "steadygpu.manifest") -> None:
    Path(f"{path}.sig").unlink(missing_ok=True)
    argv = ["ssh-keygen", "-q", "-Y", "sign", "-f", str(key), "-n", namespace, str(path)]
    subprocess.run(argv, check=True, capture_output=True)


def test_files_as_they_were_are_good(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(str(release / "a"), str(release / "b")) == 0
    out = capsys.readouterr().out
    assert out.count("  ok ") == 2
    assert "is not signed" in out


def test_a_changed_file_is_a_mismatch(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (release / "a").write_text("x\n")
    assert _run(str(release / "a"), "--json") == 3
    report = json.loads(capsys.readouterr().out)
    assert (report["result"], report["status"]) == ("mismatch", 3)
    assert report["files"][0]["wanted"] == SUM_OF_A
    assert report["time"].endswith("Z")


@pytest.mark.parametrize("name", ["gone", "directory", "unlisted", "pipe"])
def test_what_is_not_what_the_manifest_names_is_a_mismatch(release: Path, name: str) -> None:
    path = release / name
    if name == "directory":
        path.mkdir()
    elif name == "unlisted":
        path.write_text("new")
    elif name == "pipe":
        os.mkfifo(path)
    assert _run(str(path)) == 3


def test_without_files_all_that_the_manifest_names_is_verified(release: Path) -> None:
    manifest = str(release / "manifest.json")
    assert _run("--manifest", manifest) == 0
    (release / "b").unlink()
    assert _run("--manifest", manifest) == 3


@pytest.mark.parametrize(
    "content",
    [
        None,
        "",
        "{",
        "[]",
        '{"files": {}}',
        '{"files": {"a": "abc"}}',
        '{"schema": 2, "files": {"a": "' + SUM_OF_A + '"}}',
        '{"files": {"../a": "' + SUM_OF_A + '"}}',
        '{"files": {"/etc/passwd": "' + SUM_OF_A + '"}}',
        '{"files": {"a": "' + SUM_OF_A + '", "a": "' + "0" * 64 + '"}}',
        "[" * 100000,
        "no sums here\n",
    ],
)
def test_a_manifest_that_is_missing_or_broken_has_its_own_status(
    release: Path, content: str | None
) -> None:
    manifest = release / "manifest.json"
    manifest.unlink()
    if content is not None:
        manifest.write_text(content)
    assert _run(str(release / "a")) == 7


def test_a_manifest_that_is_no_text_or_too_long_is_refused(release: Path) -> None:
    (release / "manifest.json").write_bytes(b"\xff\xfe{}")
    assert _run(str(release / "a")) == 7
    (release / "manifest.json").write_bytes(b" " * (3 << 20))
    assert _run(str(release / "a")) == 7


@pytest.mark.parametrize(
    "text",
    [
        f"{SUM_OF_A}  a\n",
        f"{SUM_OF_A} *a\n",
        f"{SUM_OF_A}  ./a\n",
        f"SHA256 (a) = {SUM_OF_A.upper()}\n",
        f"{SUM_OF_A}\n",
    ],
)
def test_sums_as_sha256sum_writes_them_are_read(release: Path, text: str) -> None:
    (release / "a.sha256").write_text(text)
    assert _run("--target", str(release / "a")) == 0


# -- signatures --------------------------------------------------------------------------


@signed_only
def test_a_signed_manifest_is_good_also_strictly(
    release: Path, signed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert _run(str(release / "a"), *signed, "--strict", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["signature"], report["signed_by"]) == ("good", "release@example")
    assert report["problems"] == []


@signed_only
def test_a_manifest_changed_with_its_files_is_found_by_its_signature(
    release: Path, signed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (release / "a").write_text("x\n")
    manifest = release / "manifest.json"
    signature = Path(f"{manifest}.sig").read_bytes()
    _run("--write-manifest", str(manifest), str(release / "a"), str(release / "b"))
    Path(f"{manifest}.sig").write_bytes(signature)
    assert _run(str(release / "a")) == 0  # A sum alone proves nothing.
    assert _run(str(release / "a"), *signed) == 3
    assert "does not vouch" in capsys.readouterr().out


@signed_only
def test_another_identity_or_purpose_does_not_count(release: Path, signed: list[str]) -> None:
    assert _run(str(release / "a"), *signed[:3], "mallory@example") == 3
    _sign(release / "manifest.json", release.parent / "key", "file")
    assert _run(str(release / "a"), *signed) == 3


@signed_only
def test_a_missing_signature_is_no_mismatch(release: Path, signed: list[str]) -> None:
    (release / "manifest.json.sig").unlink()
    assert _run(str(release / "a"), *signed) == 7


def test_strict_wants_a_signature(release: Path) -> None:
    assert _run(str(release / "a"), "--strict") == 7


# -- permissions -------------------------------------------------------------------------


@signed_only
@pytest.mark.parametrize("what", ["a", "."])
def test_strict_refuses_what_others_may_write(
    release: Path, signed: list[str], capsys: pytest.CaptureFixture[str], what: str
) -> None:
    (release / what).chmod(0o777)
    assert _run(str(release / "a"), *signed) == 0
    assert "may be written by everybody" in capsys.readouterr().out
    assert _run(str(release / "a"), *signed, "--strict") == 1


def test_a_directory_that_may_not_be_written_is_told(
    release: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert _run(str(release / "a")) == 0
    assert "may not be written by this user" in capsys.readouterr().out


# -- words -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["a", "--identity", "x"],
        ["a", "--signature", "a.sig"],
        ["--write-manifest", "manifest.json"],
    ],
)
def test_what_cannot_be_meant_is_refused(words: list[str]) -> None:
    assert _run(*words) == 2


def test_a_manifest_of_files_elsewhere_is_not_written(release: Path, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("x")
    target = release / "new.json"
    assert _run("--write-manifest", str(target), str(tmp_path / "other")) == 3
    assert not target.exists()


@given(st.binary(max_size=120))
@settings(max_examples=300)
def test_any_bytes_are_a_manifest_or_are_refused(data: bytes) -> None:
    try:
        sums = verify_manifest.parse(data)
    except verify_manifest.ManifestError as error:
        sums = {"refused": str(error)}
    assert sums


def test_a_link_does_not_stand_in_for_a_file_with_a_sum_of_its_own(release: Path) -> None:
    # An older file of the same release is signed as well, and must not pass as the newer one.
    (release / "a").unlink()
    (release / "a").symlink_to("b")
    assert _run(str(release / "a")) == 3
    assert _run("--manifest", str(release / "manifest.json")) == 3
    (release / "current").symlink_to("b")
    assert _run(str(release / "current")) == 0


def test_a_pipe_in_place_of_the_manifest_is_not_waited_for(release: Path) -> None:
    (release / "manifest.json").unlink()
    os.mkfifo(release / "manifest.json")
    assert _run(str(release / "a")) == 7


@pytest.mark.parametrize("name", ["a/", "./../a", "x/../a", "a//b", "", ".", "\\ud800", "x\\u0000"])
def test_names_that_are_not_one_file_below_are_refused(release: Path, name: str) -> None:
    text = f'{{"files": {{"{name}": "{SUM_OF_A}"}}}}'
    (release / "manifest.json").write_text(text)
    assert _run("--manifest", str(release / "manifest.json")) == 7


def test_two_spellings_of_a_name_are_one_name(release: Path) -> None:
    text = f'{{"files": {{"a": "{SUM_OF_A}", "./a": "{SUM_OF_A}"}}}}'
    (release / "manifest.json").write_text(text)
    assert _run(str(release / "a")) == 7


def test_a_name_cannot_write_lines_of_the_report(
    release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "evil\n  ok        a\x1b[2J"
    (release / "manifest.json").write_text(json.dumps({"files": {name: SUM_OF_A}}))
    capsys.readouterr()
    assert _run("--manifest", str(release / "manifest.json")) == 3
    out = capsys.readouterr().out
    assert "\n  ok" not in out
    assert "\x1b" not in out


def test_a_name_that_is_no_text_is_not_written(release: Path) -> None:
    odd = os.fsencode(release) + b"/\xff"
    Path(os.fsdecode(odd)).write_text("x")
    assert _run("--write-manifest", str(release / "m.json"), os.fsdecode(odd)) == 3


@signed_only
def test_strict_looks_at_the_directories_above(release: Path, signed: list[str]) -> None:
    release.parent.chmod(0o777)
    assert _run(str(release / "a"), "--strict", *signed) == 1
    release.parent.chmod(0o755)
    assert _run(str(release / "a"), "--strict", *signed) == 0
