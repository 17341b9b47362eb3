# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.secrets.by_key import (
    clean,
    hidden,
    secrets_of,
    show,
)
from ansible_collections.steadygpu.host.plugins.module_utils.secrets.redact import (
    CHANGED,
    HIDDEN,
    pair,
)

PROXY = "http://deploy:s3cr%40t-pw@proxy.example.com:3128"
CONFIG = {
    "proxies": {"http-proxy": PROXY, "no-proxy": "localhost"},
    "log-opts": {"splunk-token": "176FCEBF-4CF5-4EDF-91BC-703796522D20", "splunk-url": "https://x"},
    "registry-mirrors": ["https://me:hunter2secret@mirror.example.com"],
    "auths": {"registry.example.com": {"auth": "bWU6aHVudGVyMnNlY3JldA=="}},
    "authorization-plugins": ["opa"],
    "tlskey": "/etc/docker/key.pem",
    "live-restore": True,
    "max-concurrent-downloads": 3,
    "runtimes": {"x": {"path": "/usr/bin/x", "runtimeArgs": ["--api-token", "abcdef123"]}},
}
SECRETS = ("s3cr", "176FCEBF", "hunter2", "bWU6aHV", "abcdef123")


def test_what_is_no_secret_stays_in_sight() -> None:
    shown = hidden(CONFIG)
    assert shown["proxies"] == {
        "http-proxy": f"http://{HIDDEN}@proxy.example.com:3128",
        "no-proxy": "localhost",
    }
    assert shown["log-opts"]["splunk-url"] == "https://x"
    assert shown["authorization-plugins"] == ["opa"]
    assert shown["tlskey"] == "/etc/docker/key.pem"
    assert (shown["live-restore"], shown["max-concurrent-downloads"]) == (True, 3)
    assert shown["runtimes"]["x"]["path"] == "/usr/bin/x"


@pytest.mark.parametrize("secret", SECRETS)
def test_no_secret_is_shown(secret: str) -> None:
    assert secret in json.dumps(CONFIG)
    assert secret not in json.dumps(hidden(CONFIG))
    assert all(secret not in show((key,), value) for key, value in CONFIG.items())


@pytest.mark.parametrize(
    ("path", "value", "shown"),
    [
        (("features", "cdi"), True, "true"),
        (("proxies", "https-proxy"), PROXY, f'"http://{HIDDEN}@proxy.example.com:3128"'),
        (("log-opts", "splunk-token"), "abcd", f'"{HIDDEN}"'),
        (("password",), 12345678, f'"{HIDDEN}"'),
        (("auths", "registry.example.com"), {"auth": "x" * 9}, f'"{HIDDEN}"'),
        (("log-opts",), {"max-size": "10m"}, '{"max-size": "10m"}'),
        (("exec-opts", "native.cgroupdriver="), "native.cgroupdriver=systemd", None),
    ],
)
def test_a_value_is_shown_by_its_key(path: tuple[str, ...], value: Any, shown: str | None) -> None:
    assert show(path, value) == (json.dumps(value) if shown is None else shown)


def test_an_error_that_quotes_us_is_cleaned() -> None:
    secrets = secrets_of(CONFIG, json.dumps({"proxies": {"https-proxy": "http://a:old one@b"}}))
    said = f'invalid proxy "{PROXY}" and s3cr@t-pw, 176FCEBF-4CF5-4EDF-91BC-703796522D20; old one'
    cleaned = clean(said, secrets)
    assert "proxy.example.com" in cleaned
    assert not any(word in cleaned for word in ("s3cr", "176FCEBF", "old one"))


def test_a_diff_shows_that_a_secret_changed_and_no_secret() -> None:
    before = json.dumps({"log-opts": {"splunk-token": "one-1111"}, "debug": True})
    after = json.dumps({"log-opts": {"splunk-token": "two-2222"}, "debug": True})
    old, new = pair("daemon.json", before, after)
    assert (HIDDEN in old, CHANGED in new) == (True, True)
    assert "1111" not in old + new
    assert "2222" not in old + new
    assert pair("daemon.json", before, before) == (old, old)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@given(value=VALUES, secret=st.text('abcXYZ0189"\\é/', min_size=8, max_size=20))
def test_hiding_keeps_the_form_and_what_is_beside(value: Any, secret: str) -> None:
    shown = hidden({"plain": {"left": 1}, "registry-password": secret, "more": value})
    assert set(shown) == {"plain", "registry-password", "more"}
    assert shown["plain"] == {"left": 1}
    assert shown["registry-password"] == HIDDEN
