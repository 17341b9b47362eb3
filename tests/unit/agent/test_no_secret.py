# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A secret is planted in every kind of input and looked for in every face."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.filter.checks_page import checks_page
from ansible_collections.steadygpu.host.plugins.module_utils.checks import live
from ansible_collections.steadygpu.host.plugins.plugin_utils import checks_result
from steadygpu_agent import cli

# Where people put secrets, each beside something that a rule speaks of.
INPUTS = {
    "run.sh": """#!/bin/sh
docker login -u me --password=@S@ registry.example
docker run --cpus=4 --cpu-quota=2000 -e "DB_PASSWORD=a @S@" -e HF_TOKEN="@S@" --privileged x
docker run --gpus all -e HTTPS_PROXY=http://me:@S@@proxy:3128 --io-weight=5 -p 2375:2375 ubuntu
""",
    "compose.yaml": """services:
  a:
    image: ubuntu
    privileged: true
    cpus: 2
    cpu_quota: 5000
    environment: {POSTGRES_PASSWORD: "@S@", API_KEY: @S@}
    command: --api-token @S@
    labels: ["traefik.secret=@S@"]
  b:
    image: nvidia/cuda:latest
    gpus: 3.5
    environment:
      - AWS_SECRET_ACCESS_KEY=@S@
      - http_proxy=http://me:@S@@proxy
      - POSTGRES_PASSWORD=@S@
""",
    "broken/compose.yaml": "services:\n  a: {environment: {DB_PASSWORD: @S@, X: ]\n",
    "twice/compose.yaml": "services:\n a:\n  environment:\n   TOKEN: @S@\n   TOKEN: @S@\n",
    "etc/docker/daemon.json": """{
  "hosts": ["tcp://me:@S@@0.0.0.0:2375"],
  "proxies": {"http-proxy": "http://me:@S@@proxy:3128", "https-proxy": "socks9://me:@S@@x"},
  "registry-mirrors": ["http://me:@S@@mirror.example/path"],
  "log-opts": {"splunk-token": "@S@", "max-size": 10},
  "exec-opts": ["native.cgroupdriver=cgroupfs"],
  "no-such-key": {"password": "@S@"}
}
""",
    "broken/daemon.json": '{"log-opts": {"splunk-token": "@S@",, } "hosts"',
    ".docker/config.json": '{"auths": {"registry.example": {"auth": "@S@"}}}',
    "docker.service": """[Service]
Environment=HTTP_PROXY=http://me:@S@@proxy:3128 DB_PASSWORD=@S@
Environment="API_TOKEN=@S@"
ExecStart=/usr/bin/dockerd -H tcp://me:@S@@0.0.0.0:2375 --bad --log-opt splunk-token=@S@
""",
    "app.service": """[Service]
ExecStart=/usr/bin/docker run -e APP_SECRET=@S@ --cpus=4 --cpu-quota=20 --privileged ubuntu
""",
    "etc/containerd/config.toml": """version = 2
[plugins."io.containerd.grpc.v1.cri".registry.configs."r.example".auth]
  username = "me"
  password = "@S@"
  identitytoken = "@S@"
[plugins."io.containerd.grpc.v1.cri".containerd]
  default_runtime_name = "nvidia"
""",
    "broken/config.toml": 'version = 2\n[registry.auth]\npassword = "@S@\nx = = 1\n',
    "pod.yaml": """apiVersion: v1
kind: Secret
metadata: {name: a}
stringData: {password: @S@}
---
apiVersion: v1
kind: Pod
metadata: {name: b}
spec:
  containers:
    - name: c
      image: ubuntu
      env:
        - name: DB_PASSWORD
          value: @S@
        - {name: API_TOKEN, value: "@S@"}
      securityContext: {privileged: true}
      resources: {requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 2}}
""",
    "site.yml": """- hosts: all
  vars: {ansible_become_password: @S@, registry_password: "@S@"}
  tasks:
    - name: run
      community.docker.docker_container:
        name: a
        image: ubuntu
        privileged: true
        runtime: nvidia
        cpus: 4
        cpu_quota: 10
        env: {API_TOKEN: "@S@", DB_PASSWORD: @S@}
    - shell: docker login -u me --password @S@ r.example
""",
    ".env": """HF_TOKEN=@S@
DB_PASSWORD='@S@'
DATABASE_URL=postgres://me:@S@@db/x
broken line @S@
""",
    "etc/apt/sources.list": """deb [trusted=yes] http://me:@S@@repo.example/deb/ /
deb http://me:@S@@x
""",
    "proc/cmdline": "root=/dev/sda1 iscsi_password=@S@ nouveau.modeset=0 isolcpus=1-3\n",
    "kernel.log": "NVRM: API mismatch: the client has the version 550.1, but token=@S@\n",
}
FORMS = ("text", "json", "sarif", "junit")
# What no word of ours holds, and no placeholder either.
secrets = st.text("BCDFGHJKLMNPQRSTVWXZ23456789", min_size=18, max_size=30)


@contextlib.contextmanager
def planted(secret: str) -> Iterator[Path]:
    """The inputs in a directory of their own."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in INPUTS.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace("@S@", secret))
        yield Path(folder)


def said(*words: str) -> str:
    """What a command prints, on both of its outputs."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        cli.main(list(words))
    return out.getvalue()


def lines_with(secret: str, text: str) -> list[str]:
    return [line[:300] for line in text.splitlines() if secret in line]


@settings(max_examples=2, deadline=None, phases=[Phase.generate])
@given(secrets)
def test_the_command_shows_no_secret(secret: str) -> None:
    with planted(secret) as folder:
        names = [str(folder / name) for name in INPUTS]
        for form in FORMS:
            shown = said("check", "--format", form, *names)
            assert "DB_PASSWORD" in shown, "the inputs are to be looked at"
            assert lines_with(secret, shown) == []
        said("check", "--write-baseline", str(folder / "known"), *names)
        assert lines_with(secret, (folder / "known").read_text()) == []
        for number, name in enumerate(names):
            form = ["--json"] if number % 2 else []
            assert lines_with(secret, said("explain", *form, name)) == []


@settings(max_examples=2, deadline=None, phases=[Phase.generate])
@given(secrets)
def test_neither_the_task_nor_the_page_shows_a_secret(secret: str) -> None:
    texts = {f"/{name}": text.replace("@S@", secret) for name, text in INPUTS.items()}
    evidence: dict[str, Any] = {"schema": 1, "texts": texts, "left_out": {}}
    verdict = live.judge_host({}, evidence, "host")
    result = checks_result.build(verdict, {}, "info")
    assert result["failed"]
    assert lines_with(secret, json.dumps(result, indent=1)) == []
    assert lines_with(secret, checks_page([{"name": "host", "result": result}])) == []
    page = checks_page([{"name": "host", "reason": f"http://me:{secret}@x does not answer"}])
    assert lines_with(secret, page) == []


TOKEN = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz012345"  # shaped like one, and none


@pytest.mark.parametrize("name", INPUTS)
def test_a_token_is_hidden_wherever_it_stands(name: str) -> None:
    """A third of the words in turn is a token, also where no secret belongs."""
    words = INPUTS[name].split(" ")
    for place, word in list(enumerate(words))[::3]:
        if word.strip(' \n"{}[],:'):
            text = " ".join([*words[:place], TOKEN, *words[place + 1 :]])
            verdict = live.judge_host({}, {"texts": {f"/{name}": text}}, "host")
            result = json.dumps(checks_result.build(verdict, {}, "info"))
            assert lines_with(TOKEN, result) == [], word
