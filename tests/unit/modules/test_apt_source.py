# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.steadygpu.host.plugins.module_utils.package_sets import source_files
from ansible_collections.steadygpu.host.plugins.modules import apt_source

KEY = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmQ\n-----END PGP PUBLIC KEY BLOCK-----\n"
URL = "https://packages.example.com/key.asc"


@pytest.fixture(autouse=True)
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Everything of apt lies below a directory of the test."""
    sources = tmp_path / "sources.list.d"
    monkeypatch.setattr(source_files, "_SOURCES", str(sources))
    monkeypatch.setattr(source_files, "_OTHERS", (str(sources / "*.list"),))
    key = property(lambda self: self.key_file or str(tmp_path / f"steadygpu-{self.name}.asc"))
    monkeypatch.setattr(source_files.Source, "key_path", key)
    sources.mkdir()
    return tmp_path


def _run(capsys: pytest.CaptureFixture[str], **options: Any) -> dict[str, Any]:
    asked = {"name": "toolkit", "uris": ["https://packages.example.com/deb"], **options}
    with patch_module_args(asked), pytest.raises(SystemExit):
        apt_source.main()
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_a_key_is_fetched_once_and_again_when_it_is_another(
    host: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    served = [KEY, KEY.replace("mQ", "mR")]
    monkeypatch.setattr(
        apt_source, "open_url", lambda _url, timeout: io.BytesIO(served.pop(0).encode())
    )
    foreseen = _run(capsys, key_url=URL, _ansible_check_mode=True)
    assert (foreseen["changed"], len(served), list(host.glob("*.asc"))) == (True, 2, [])
    assert _run(capsys, key_url=URL)["changed"]
    assert not _run(capsys, key_url=URL)["changed"]
    assert len(served) == 1
    rotated = hashlib.sha256(served[0].encode()).hexdigest()
    assert _run(capsys, key_url=URL, key_sha256=rotated)["changed"]
    assert (host / "steadygpu-toolkit.asc").read_text() == KEY.replace("mQ", "mR")


def test_a_key_that_cannot_be_had_is_told_with_the_other_ways(
    host: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_url: str, timeout: float) -> Any:
        raise OSError("no route to host")

    monkeypatch.setattr(apt_source, "open_url", refuse)
    answer = _run(capsys, key_url=URL)
    assert answer["failed"]
    for words in (URL, "no route to host", "key_file"):
        assert words in answer["msg"]
    assert list(host.glob("**/*.sources")) == []


def test_names_and_addresses_are_looked_at_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert "apt reads no file" in _run(capsys, name="my repo", key=KEY)["msg"]
    assert "uris is empty" in _run(capsys, uris=[], key=KEY)["msg"]


def test_what_is_written_is_shown_as_a_diff(capsys: pytest.CaptureFixture[str]) -> None:
    answer = _run(capsys, key=KEY)
    assert [one["before"] for one in answer["diff"]] == ["", ""]
    assert "Signed-By" in answer["diff"][1]["after"]
    assert len(answer["actions"]) == 2
    assert _run(capsys, state="absent")["changed"]


def test_a_password_in_an_address_is_not_shown(
    host: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = "https://reader:pass-word-9@packages.example.com/deb"
    (host / "sources.list.d/a.list").write_text(f"deb {uri} /\n")
    refused = _run(capsys, uris=[uri], key=KEY)
    done = _run(capsys, uris=[uri], key=KEY, replace=True)
    assert (refused["failed"], done["changed"]) == (True, True)
    for answer in (refused, done):
        assert "pass-word-9" not in json.dumps(answer)
    assert "pass-word-9" in (host / "sources.list.d/steadygpu-toolkit.sources").read_text()
