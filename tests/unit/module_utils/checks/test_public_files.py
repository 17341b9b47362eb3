# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What public files and how-tos are full of, and what is no fault of theirs."""

from __future__ import annotations

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.checks.host import HostView
from ansible_collections.steadygpu.host.plugins.module_utils.checks.inspection import inspect
from ansible_collections.steadygpu.host.plugins.module_utils.checks.model import Severity

FENCE = "Some words.\n\n```{language}\n{text}```\n"


def found(text, file, least=Severity.WARNING):
    """Rule ids at or above ``least``, and what could not be read."""
    inspected = inspect(text, file, HostView(), None)
    rules = [finding.rule for finding in inspected.findings if finding.severity >= least]
    return rules + [problem.said for problem in inspected.problems]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("bash", "docker run -d \\\n  --name cameras \\\n  ...\n  --gpus=all \\\n  cameras\n"),
        ("shell", "docker run -d \\\n  -p 80:80 \\\n# and more ...\n--network inner \\\nweb\n"),
        ("bash", "docker run -d -v <path to data>:/config --restart always trainer\n"),
        ("bash", "docker run --memory <size> -p <port>:80 <image> serve --model-store=/tmp\n"),
        ("console", '$ docker run -e OPTIONS="-Da=b \\ \n    -Dc=d" \\\ntrainer\n'),
        ("powershell", "docker run --isolation=hyperv --user=ContainerAdministrator `\n  app\n"),
        ("shell", "docker run -d -p 81:80 --name web web\n-d: 在后台\n--name web: 名称\n"),
        ("yaml", "services:\n  app:\n    image:\n    ports:\n    depends_on:\n"),
        ("yaml", "services:\n  app:\n    image: b\n  db:\n    # ...\n"),
        ("yaml", "services:\n  app:\n    ...\n  db:\n    ...\n"),
        ("bash", "```bash\ndocker run -v`pwd`:/src builder bash\n"),
        ("json", '{"registry-mirrors": ["镜像地址"]}\n'),
    ],
)
def test_an_example_that_leaves_something_to_its_reader_is_no_fault(language, text):
    assert found(FENCE.format(language=language, text=text), "README.md") == []


@pytest.mark.parametrize(
    "text",
    [
        "docker run --rm \\\n  --shm-size 8g\n  --gpus all trainer\n",
        "docker run --rm \\\n  --shm-size 8g \\ # eight\n  --gpus all trainer\n",
    ],
)
def test_a_line_that_ends_too_early_is_said_once(text):
    assert found(FENCE.format(language="bash", text=text), "a.md") == ["command-cut-off"]


def test_a_file_that_is_read_is_no_placeholder():
    text = "mysql <dump.sql >out.log; cat <in 2>/dev/null; sort <a 2>&1\ndocker run -p 99999:1 x\n"
    assert found(text, "load.sh") == ["port-out-of-range"]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        # One file of several: what it uses another one defines.
        ("compose.gpu.yml", "services:\n  a:\n    image: b\n    networks: [inner]\n"),
        ("compose.yml", "services:\n  a:\n    image: b\n    networks: [inner]\n"),
        ("compose.yml", "services:\n  a:\n    image: b\n    volumes: ['DATADIR:/data']\n"),
        # To be extended: the service that does brings its own.
        ("hwaccel.yml", "services:\n  a:\n    devices: [/dev/dri]\n    volumes:\n"),
        # Swarm passes over the name.
        (
            "docker-stack.yml",
            "services:\n  a:\n    image: b\n    container_name: c\n    deploy: {replicas: 4}\n",
        ),
        # Tabs that go-yaml takes for blanks.
        ("compose.yml", "services:\n  a:\n    image:\tb\t\n    tty: true\t# x\n"),
        # A play that starts services.
        ("tasks/docker-compose.yml", "---\n- name: Start\n  ansible.builtin.command: docker ps\n"),
        ("docker-compose.yml", "- name: Start\n  ansible.builtin.command: docker ps\n"),
        # Names whose values come from elsewhere, and the other way to write a value.
        (".env.example", "# keys\nAPI_KEY\nOTHER: <your key>\n"),
        ("roles/docker-rootless/files/nvidia-container-runtime/config.toml", "no-cgroups = true\n"),
    ],
)
def test_a_file_is_judged_for_what_it_is(file, text):
    if file.endswith("config.toml"):
        text = "[nvidia-container-cli]\n" + text
    assert found(text, file) == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("nextcloud", []),
        ("password1", []),
        ("MySecureDatabasePassword", []),
        ("infini_flow_OS_01", []),
        ("dbpassword@123", []),
        ("ins4vOVm9RwuiY4j", ["plaintext-secret"]),
        ("30cbcae9-74f3-4d99-ba22-7da89f8348d8", ["plaintext-secret"]),
        ("9f27c1d84be05a63", ["plaintext-secret"]),
    ],
)
def test_only_a_password_that_somebody_made_is_an_error(value, expected):
    assert found(f"DB_PASSWORD={value}\n", ".env", Severity.ERROR) == expected


def test_a_file_among_examples_is_an_example():
    assert found("DB_PASSWORD=ins4vOVm9RwuiY4j\n", "examples/app/.env") == []


def test_an_undefined_volume_is_said_of_a_file_that_stands_alone():
    text = "services:\n  a:\n    image: b\n    volumes: ['data:/data']\nvolumes: {other: {}}\n"
    assert found(text, "compose.yml") == ["compose-undefined-name"]
    override = {"compose.override.yml": "volumes: {data: {}}\n"}
    inspected = inspect(text, "compose.yml", HostView(), None, override.get)
    assert not inspected.findings


def test_a_misspelt_services_is_said_of_a_file_that_compose_would_read():
    text = "ervices:\n  a:\n    tty: true\n"
    assert found(text, "docker-compose.yml") == ["compose-unknown-key"]
    assert found("on: push\njobs: {}\n", ".github/workflows/docker-compose.check.yml") == []
