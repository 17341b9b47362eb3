# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Secrets in the files of a GPU host: never shown, and their neighbours still are."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.secrets.redact import (
    CHANGED,
    HIDDEN,
    phrase,
    redact,
    unified,
    value,
)

KEYS = (
    "password",
    "db_password",
    "passwd",
    "DB_PASS",
    "rootPass",
    "passphrase",
    "client-secret",
    "clientSecret",
    "TOKEN",
    "HF_TOKEN",
    "identitytoken",
    "auth",
    "Authorization",
    "NGC_API_KEY",
    "apiKey",
    "apikey",
    "private_key",
    "aws_secret_access_key",
    "credentials",
    "X-Registry-Auth",
    "signing-key",
    "webhook_url",
)
LETTERS = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
# Many forms, each with a few examples.
FEW = settings(max_examples=settings.default.max_examples // 8)
PLAIN = st.text(LETTERS, min_size=10, max_size=40)
# What people put into passwords; the first word is long enough to be found when a part leaks.
ANY = st.builds(
    "".join, st.tuples(PLAIN, st.text(" !#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\"é", max_size=8), PLAIN)
)


def dump(secret: str) -> str:
    return json.dumps(secret)


# Every way to write a secret down: key, secret -> a text that holds both.
FORMS: dict[str, Callable[[str, str], str]] = {
    "json": lambda key, secret: json.dumps({"a": 1, key: secret, "z": "end"}, indent=2),
    "json on one line": lambda key, secret: json.dumps({key: secret, "z": "end"}),
    "json below a secret key": lambda key, secret: json.dumps(
        {key: {"reg.example:5000": {"user": "me", "x": [secret, {"y": secret}]}}}, indent=1
    ),
    "json list": lambda key, secret: json.dumps({key: [secret, secret]}),
    "json option and value": lambda key, secret: json.dumps({"args": ["run", f"--{key}", secret]}),
    "json option": lambda key, secret: json.dumps({"args": [f"--{key}={secret}", "x"]}),
    "json environment": lambda key, secret: json.dumps({"env": [f"{key}={secret}"]}),
    "json name and value": lambda key, secret: json.dumps([{"name": key, "value": secret}]),
    "json value and name": lambda key, secret: json.dumps([{"value": secret, "name": key}]),
    "json in json": lambda key, secret: json.dumps({"inner": json.dumps({key: secret})}),
    "json url": lambda _key, secret: json.dumps({"p": f"http://me:{quote(secret)}@proxy:3128/"}),
    "json key": lambda _key, secret: json.dumps({f"https://me:{quote(secret)}@reg/": {}}),
    "broken json": lambda key, secret: f'{{\n  "a": 1,\n  "{key}": {dump(secret)},\n  "z": 2,\n',
    "broken json object": lambda key, secret: f'{{"{key}": {{\n "u": {dump(secret)}\n}},, "z": 2}}',
    "json with a comment": lambda key, secret: f'// hi\n{{"{key}":\n{dump(secret)}\n}}',
    "toml": lambda key, secret: f'[a.b]\nz = "x"\n"{key}" = {dump(secret)}\ny = 2\n',
    "toml inline": lambda key, secret: f'a = {{ user = "me", "{key}" = {dump(secret)} }}\n',
    "toml inline below": lambda key, secret: f'{key} = {{ user = "me", b = {dump(secret)} }}\n',
    "toml dotted": lambda key, secret: f'reg."x.y".{key}.b = {dump(secret)}\n',
    "toml table": lambda key, secret: (
        f'[plugins."io.x".{key}]\n  user = [\n    [{dump(secret)}]\n  ]\n  b = {dump(secret)}\n'
    ),
    "toml list": lambda key, secret: f'{key} = [\n  "a",\n{dump(secret)}\n]\nz = 1\n',
    "toml arguments": lambda key, secret: f'args = [\n"--{key}",\n{dump(secret)},\n]\n',
    "toml multi-line": lambda key, secret: (
        f'{key} = """\nfirst\n{dump(secret)[1:-1]}\n"""\nz = 1\n'
    ),
    "yaml": lambda key, secret: f"a: 1\n{key}: {dump(secret)}\nz: 2\n",
    "yaml nested": lambda key, secret: f"a:\n- {key}:\n    u:\n      - {dump(secret)}\n  z: 2\n",
    "yaml list": lambda key, secret: f"a:\n  {key}:\n  - x\n  - {dump(secret)}\n  z: 2\n",
    "yaml flow": lambda key, secret: f"a: {{ u: me, {key}: {dump(secret)} }}\n",
    "yaml block": lambda key, secret: f"a:\n  {key}: |\n    one\n\n    {secret}\n  z: 2\n",
    "yaml folded": lambda key, secret: f"{key}: >-\n  {secret}\nz: 2\n",
    "yaml single": lambda key, secret: (
        f"- {key}: 'a''b\n\n   {secret.replace(chr(39), 2 * chr(39))}'\n  z: 2\n"
    ),
    "yaml long key": lambda key, secret: f"? {key}\n: {dump(secret)}\n",
    "yaml name and value": lambda key, secret: f"- name: {key}\n  value: {dump(secret)}\n",
    "yaml value and name": lambda key, secret: f"- value: {dump(secret)}\n  name: {key}\n",
    "yaml arguments": lambda key, secret: f"args:\n- --{key}\n- {dump(secret)}\nz: 2\n",
    "yaml comment": lambda key, secret: f"a: 1\n# {key}: |\n#   {secret}\nz: 2\n",
    "ini": lambda key, secret: f"[x]\n{key} = {secret}\nz = 2\n",
    "ini continued": lambda key, secret: f"[x]\n{key} = one\n  {secret}\nz = 2\n",
    "ini section": lambda key, secret: f"[{key}]\nuser = me\nb: {secret}\nc = {secret}\n",
    "ini comment": lambda key, secret: f";{key}={secret}\n#{key} = {secret}\n",
    "environment": lambda key, secret: f"A=1\nexport {key}={shlex.quote(secret)}\nZ=2\n",
    "environment in pieces": lambda key, secret: f"{key}=\"a\"'b'{shlex.quote(secret)}\n",
    "environment continued": lambda key, secret: f"{key}=a\\\n{secret}\nZ=2\n",
    "systemd": lambda key, secret: f'[Service]\nEnvironment="A=1" {dump(key + "=" + secret)}\n',
    "systemd option": lambda key, secret: (
        f"[Service]\nExecStart=/usr/bin/x --a \\\n  --{key} {shlex.quote(secret)}\nType=simple\n"
    ),
    "systemd credential": lambda _key, secret: f"[Service]\nSetCredential=x:{secret}\n",
    "apt": lambda key, secret: f"Acquire::http::{key} {dump(secret)};\n",
    "apt block": lambda key, secret: f"Acquire {{ http {{ {key} {dump(secret)}; }} }}\n",
    "xml": lambda key, secret: f"<a><{key}>{secret}</{key}></a>\n",
}
# Those in which the secret is one word, or cannot be anything.
PLAIN_FORMS: dict[str, Callable[[str], str]] = {
    "netrc": lambda secret: f"machine reg.example login me password {secret}\n",
    "netrc in lines": lambda secret: f"machine reg.example\n\tlogin me\n\tpassword\n\t{secret}\n",
    "source": lambda secret: f"deb https://me:{secret}@apt.example/x stable main\n",
    "source with slashes": lambda secret: (
        f"deb https://me:a@b/{secret}@apt.example/x stable main\n"
    ),
    "token in a url": lambda secret: f"deb https://{secret}:@apt.example/x stable main\n",
    "query": lambda secret: f"url https://x.example/?a=1&token={secret}\n",
    "proxy": lambda secret: f"HTTP_PROXY=me:{secret}@proxy:3128\n",
    "header": lambda secret: f"curl -H 'Authorization: Bearer {secret}' https://x.example\n",
    "bearer": lambda secret: f"x = Bearer {secret}\n",
    "basic": lambda secret: f"h: Basic {base64.b64encode(secret.encode()).decode()}\n",
    "docker": lambda secret: json.dumps(
        {"auths": {"reg": {"auth": base64.b64encode(f"me:{secret}".encode()).decode()}}}
    ),
    "ngc": lambda secret: f"x: nvapi-{secret}\n",
    "github": lambda secret: f"clone ghp_{secret}\n",
    "hash": lambda secret: f"root:$6$salt${secret}:19000:0\n",
    "curl": lambda secret: f"curl -u me:{secret} https://x.example\n",
    "login": lambda secret: f"docker login -u me -p {secret} reg.example\n",
    "pem": lambda secret: (
        f"a\n-----BEGIN RSA PRIVATE KEY-----\n{secret}\n-----END RSA PRIVATE KEY-----\nz\n"
    ),
    "cut pem": lambda secret: f"-----BEGIN OPENSSH PRIVATE KEY-----\n{secret}\n{secret}\n",
    "pem in json": lambda secret: json.dumps(
        {"x": f"-----BEGIN PRIVATE KEY-----\n{secret}\n-----END PRIVATE KEY-----\n"}
    ),
    "twice": lambda secret: f"password={secret}1\nother={secret}1\n",
}


def leaked(secret: str, shown: str) -> bool:
    """Is the secret in there, or either end of it, plain or in base64?"""
    ends = (secret[:10], secret[-10:])
    coded = base64.b64encode(secret.encode()).decode().rstrip("=")
    return any(end in shown for end in ends) or coded in shown


@pytest.mark.parametrize("form", FORMS)
@FEW
@given(key=st.sampled_from(KEYS), secret=ANY, other=ANY)
def test_a_secret_never_shows_in_any_form(form: str, key: str, secret: str, other: str) -> None:
    before, after = FORMS[form](key, secret), FORMS[form](key, other)
    shown = redact("/etc/x", before)
    assert not leaked(secret, shown), shown
    assert HIDDEN in shown
    difference = "\n".join(unified("/etc/x", before, after))
    assert not leaked(secret, difference), difference
    assert not leaked(other, difference), difference


@pytest.mark.parametrize("form", PLAIN_FORMS)
@FEW
@given(secret=PLAIN)
def test_a_secret_is_known_by_its_looks(form: str, secret: str) -> None:
    text = PLAIN_FORMS[form](secret)
    shown = redact("/etc/x", text)
    assert not leaked(secret, shown), shown
    assert HIDDEN in shown


@given(text=st.text(max_size=300), path=st.sampled_from(["", "/etc/a.json", "/etc/b.toml"]))
def test_any_text_can_be_redacted_and_compared(text: str, path: str) -> None:
    redact(path, text)
    assert unified(path, text, text) == ()
    unified(path, text, text[1:] + "\n{")


DAEMON = """{
  "default-runtime": "runc",
  "exec-opts": ["native.cgroupdriver=systemd"],
  "runtimes": {"nvidia": {"path": "nvidia-container-runtime"}},
  "tlskey": "/etc/docker/server-key.pem",
  "proxies": {"https-proxy": "http://me:hunter2@proxy.example:3128"},
  "registry-mirrors": ["https://mirror.example"]
}
"""
UNIT = """[Unit]
Description=Generate a device spec, see https://example.com/x
After=steadygpu-auth.service

[Service]
Environment=A=1
Environment=NGC_API_KEY=abc
ExecStart=/usr/local/bin/steadygpu cdi --mode=auto
"""
CONTAINERD = """version = 2
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
  BinaryName = "/usr/bin/nvidia-container-runtime"
[plugins."io.containerd.grpc.v1.cri".registry]
  config_path = "/etc/containerd/certs.d"
[plugins."io.containerd.grpc.v1.cri".registry.configs."nvcr.io".auth]
  username = "$oauthtoken"
  password = "abc"
[plugins."io.containerd.internal.v1.opt"]
  path = "/opt/containerd"
"""
SPEC = """cdiVersion: 0.6.0
kind: nvidia.com/gpu
devices:
- name: "0"
  containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
    hooks:
    - hookName: createContainer
      path: /usr/bin/nvidia-cdi-hook
      args: [nvidia-cdi-hook, update-ldcache, --folder, /usr/lib]
"""
SOURCE = "deb [signed-by=/etc/apt/keyrings/steadygpu-x.asc] https://apt.example/x stable main\n"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        (DAEMON, ["me:hunter2"]),
        (UNIT, ["abc"]),
        (CONTAINERD, ['"$oauthtoken"', '"abc"']),
        (SPEC, []),
        (SOURCE, []),
        ("vm.swappiness = 10\nkernel.numa_balancing = 0\n", []),
        ("options nvidia NVreg_RestrictProfilingToAdminUsers=0\n", []),
        ("gpgkey=https://nvidia.github.io/x/gpgkey\ngpgcheck=1\n", []),
        ("# when a key needs a restart: never, always\nx: 1\n", []),
        ("ConditionCredential=|x.extra\n\n[Service]\nType=simple\n", ["|x.extra"]),
        ("author: someone\nauthority: x\nbypass: y\npass-through: z\nmonkeys: 3\n", []),
        ("image: nvcr.io/nvidia/cuda:12.4@sha256:0123456789abcdef\n", []),
        ("password =\ntoken: ''\nz: 1\n", []),
        ("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", []),
        ("GPU-1 MIG on: 3g.20gb@0:4, 1g.5gb@4:1\n", []),
    ],
    ids=lambda one: one[:20] if isinstance(one, str) else None,
)
def test_what_is_no_secret_stays_readable(text: str, hidden: list[str]) -> None:
    wanted = text
    for secret in hidden:
        wanted = wanted.replace(secret, HIDDEN)
    assert redact("/etc/x.conf", text) == wanted


def test_a_changed_secret_shows_as_a_change_and_an_equal_one_does_not() -> None:
    before = json.dumps({"user": "me", "password": "one", "token": "same"}, indent=2) + "\n"
    after = json.dumps({"user": "you", "password": "two", "token": "same"}, indent=2) + "\n"
    assert unified("/etc/x.json", before, after) == (
        "@@ -1,5 +1,5 @@",
        " {",
        '-  "user": "me",',
        f'-  "password": "{HIDDEN}",',
        '+  "user": "you",',
        f'+  "password": "{CHANGED}",',
        f'   "token": "{HIDDEN}"',
        " }",
    )


def test_secrets_that_change_places_show_as_changed() -> None:
    lines = unified("/x.conf", "a_token=one\nb_token=two\n", "a_token=two\nb_token=one\n")
    assert f"+a_token={CHANGED}" in lines
    assert f"-a_token={HIDDEN}" in lines


def test_a_new_secret_is_added_not_changed() -> None:
    assert unified("/x.conf", "a=1\n", "a=1\ntoken=x\n")[-1] == f"+token={HIDDEN}"


def test_a_new_line_at_the_end_of_a_file_shows() -> None:
    assert unified("/x.conf", "a=1", "a=1\n") == (
        "@@ -1 +1 @@",
        "-a=1",
        "\\ No newline at end of file",
        "+a=1",
    )


@pytest.mark.parametrize(
    "path", ["/etc/steadygpu/ngc.token", "/etc/steadygpu/password", "/root/.ssh/id_ed25519"]
)
def test_a_file_that_is_one_secret_shows_nothing(path: str) -> None:
    assert redact(path, "anything\nat all\n") == HIDDEN


def test_names_and_values() -> None:
    assert value("net.ipv4.tcp_fastopen_key", "0011-2233") == HIDDEN
    assert value("vm.swappiness", "10") == "10"
    assert phrase("proxy http://a:b@c/") == f"proxy http://{HIDDEN}@c/"


def test_a_large_file_is_read_in_no_time() -> None:
    # Each of these takes minutes as soon as the time grows with the square of the size.
    for text in ("token: x\n", "a:b,://", "{", '"', "token:\n\n", "password=\\\n", "--token ", " "):
        redact("/x.conf", text * (100_000 // len(text)) + "x")
