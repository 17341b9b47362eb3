# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.checks.readers.env_file import (
    read_env_file,
)
from ansible_collections.steadygpu.host.plugins.module_utils.secrets.shapes import (
    Secret,
    classify,
    issuer,
)

TOKEN = "hf_" + "QwErTyUiOpLkJhGfDsAzXcVbNmQpWoEiRu"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HF_TOKEN", TOKEN),
        ("ANYTHING", TOKEN),
        ("AWS_ACCESS_KEY_ID", "AKIA" + "QZ4TWV7NPK2MDX5R"),
        ("KEY", "-----BEGIN RSA PRIVATE KEY-----"),
    ],
)
def test_a_token_is_known_by_its_form(name, value):
    assert classify(name, value) is Secret.TOKEN
    assert value not in (issuer(value) or "")


@pytest.mark.parametrize("name", ["DB_PASSWORD", "API_KEY", "WEBUI_SECRET_KEY", "S3_SECRET"])
def test_a_value_under_the_name_of_a_secret(name):
    assert classify(name, "9f27c1d84be05a63") is Secret.LITERAL


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HF_TOKEN", ""),
        ("HF_TOKEN", "${HF_TOKEN}"),
        ("HF_TOKEN", "hf_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
        ("HF_TOKEN", "<your token>"),
        ("HF_TOKEN", "your_hf_token_here"),
        ("API_KEY", "ENC(b64==)"),
        ("API_KEY", "ENC[AES256_GCM,data:abc]"),
        ("API_KEY", "vault:secret/data/app#key"),
        ("API_KEY", "changeme"),
        ("OPENAI_API_KEY", "sk-no-key-required"),
        ("OPENAI_API_KEY", "EMPTY"),
        ("API_KEY_FILE", "/run/secrets/key"),
        ("SSH_PRIVATE_KEY", "/root/.ssh/id_ed25519"),
        ("SECRET_NAME", "database-login"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("MAX_TOKENS", "4096"),
        ("EOS_TOKEN", "<|im_end|>"),
        ("PASSWORD_MIN_LENGTH", "12"),
        ("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE"),
        ("DB_PASSWORD", "{{ lookup('env', 'X') }}"),
        ("NCCL_DEBUG", "INFO"),
    ],
)
def test_what_only_stands_for_a_secret_is_none(name, value):
    assert classify(name, value) is None


def test_well_known_defaults():
    assert classify("POSTGRES_PASSWORD", "postgres") is Secret.DEFAULT
    assert classify("MINIO_ACCESS_KEY", "minioadmin") is Secret.DEFAULT
    assert classify("POSTGRES_USER", "postgres") is None


def entries(text, file=".env"):
    reading = read_env_file(text, file)
    assert not reading.problems
    (document,) = reading.documents
    return document


def test_lines_of_a_file_of_variables():
    found = entries("# c\n\nA=1\nexport B = 'two words' # c\nC=\nnot a line\n  D=x # y\nE=a#b\n")
    read = [(e.name, e.value.value, e.value.at.line, e.spaced, e.export) for e in found.entries]
    assert read == [
        ("A", "1", 3, False, False),
        ("B", "two words", 4, True, True),
        ("C", "", 5, False, False),
        ("D", "x", 7, False, False),
        ("E", "a#b", 8, False, False),
    ]


def test_a_value_in_quotes_may_have_several_lines():
    found = entries('KEY="-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----"\nB=1\n')
    assert [entry.name for entry in found.entries] == ["KEY", "B"]
    assert found.last("B").value.at.line == 4


def test_examples_are_known_by_their_names():
    assert entries("A=1\n", ".env.example").example
    assert not entries("A=1\n", "prod.env").example


def test_a_file_without_variables_is_named():
    assert read_env_file("hello there\n", ".env").problems
    assert entries("# nothing yet\n").entries == ()


@settings(max_examples=2 * settings.default.max_examples)
@given(st.text(alphabet="A=\"' #\n$x\t", max_size=60))
def test_any_text_is_read(text):
    read_env_file(text, ".env")
