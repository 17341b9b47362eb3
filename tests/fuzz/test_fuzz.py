# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Any bytes in: no traceback, no hang. By hypothesis, by what is known to hurt, and guided."""

from __future__ import annotations

import os
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.checks import explain
from ansible_collections.steadygpu.host.plugins.module_utils.checks.readers import kinds
from ansible_collections.steadygpu.host.tests.fuzz import guided, target
from steadygpu_agent import check_files

KINDS = sorted(kinds.KINDS)
SEEDS = target.seeds()


@given(st.sampled_from(KINDS), st.binary(max_size=300))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_any_bytes(kind, data):
    target.judge(data, kind)


@given(
    st.sampled_from(SEEDS),
    st.integers(0, 400),
    st.integers(0, 40),
    st.text(alphabet="\n\t '\"\\#$(){}[]<>&*!|=:,.-%@~^`0aé\x00", max_size=12),
)
@settings(max_examples=400, deadline=None, derandomize=True)
def test_an_example_with_a_piece_replaced(seed, start, length, piece):
    kind, data = seed
    target.judge(data[:start] + piece.encode() + data[start + length :], kind)


@given(st.sampled_from(KINDS), st.sampled_from(SEEDS))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_an_example_read_as_another_kind(kind, seed):
    target.judge(seed[1], kind)


DEEP = 50_000
BOMBS = {
    "lists in lists": b"[" * DEEP,
    "maps in maps": b'{"a":' * DEEP,
    "indentation": b"\n".join(b" " * depth + b"a:" for depth in range(2000)),
    "dashes": b"- " * DEEP,
    "aliases": b"a0: &a0 [x,x]\n"
    + b"".join(b"a%d: &a%d [*a%d,*a%d]\n" % (n, n, n - 1, n - 1) for n in range(1, 40)),
    "merge keys": b"a0: &a0 {k: v}\n"
    + b"".join(
        b"a%d: &a%d {<<: [*a%d, *a%d], k%d: v}\n" % (n, n, n - 1, n - 1, n) for n in range(1, 40)
    ),
    "an anchor in itself": b"a: &a [*a]\n",
    "substitutions in substitutions": b"docker run " + b"$(" * DEEP,
    "defaults in defaults": b"services:\n  a:\n    image: " + b"${A:-" * DEEP + b"\n",
    "quotes": b"docker run '" * 3000,
    "backslashes": b"\\" * DEEP + b"\n",
    "continued lines": b"docker run \\\n" * DEEP,
    "one long line": b"docker run " + b"-e A=b " * DEEP + b"ubuntu\n",
    "blanks": b" " * DEEP + b"x",
    "line ends": b"\n" * DEEP,
    "braces": b"{{" * DEEP,
    "dots": b"[" + b"a." * DEEP + b"a]\n",
    "a long number": b"mem_limit = " + b"9" * DEEP,
    "colons": b"a:" * DEEP,
    "equals": b"=" * DEEP,
    "fences": b"```\n" * DEEP,
    "here-documents": b"cat <<A > /etc/docker/daemon.json\n" * 3000,
    "commas": b"docker run --gpus '" + b"," * DEEP + b"' ubuntu\n",
    "many services": b"services:\n" + b"".join(b"  s%d: {image: a}\n" % n for n in range(3000)),
    "secrets": b"docker run " + b"password" * 5000 + b"\n",
    "zero width": "\u200b".encode() * DEEP,
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_is_made_to_hurt_ends_quickly(name, tmp_path, monkeypatch):
    monkeypatch.setenv("STEADYGPU_DEBUG", "1")  # what is caught for users must not happen here
    monkeypatch.setattr(check_files, "DEADLINE_S", 300.0)
    file = tmp_path / "input"
    file.write_bytes(BOMBS[name])
    for kind in KINDS:
        began = time.process_time()
        with target.at_most(30.0):
            check_files.judge(check_files.Source(str(file)), target.HOSTS[1], kind)
        took = time.process_time() - began
        assert took < 20, f"{name} as {kind} took {took:.0f} s of the CPU"


# Each is long, and nearly matches something again and again.
PASTED = {
    "blanks": " " * 100_000,
    "one word": "a" * 100_000,
    "digits": "1" * 100_000,
    "a number and a dot": "1." * 50_000,
    "messages": "NVRM: Xid (PCI:0000:01:00): 79, pid=1, name=x, " * 2000,
    "errors": "Error response from daemon: failed to create task for container: " * 2000,
    "quotes": "nvidia-container-cli: initialization error: '" * 2000,
    "lines": "docker: Error response from daemon: could not select device driver\n" * 2000,
    "paths": "/usr/lib/x86_64-linux-gnu/libcuda.so." * 2000,
}


@pytest.mark.parametrize("name", PASTED)
def test_a_long_text_is_explained_quickly(name):
    explain.explain("first, to compile", target.HOSTS[1])
    with target.at_most(20.0):
        explain.explain(PASTED[name], target.HOSTS[1])


@given(st.text(max_size=200))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_any_text_is_explained_or_not(said):
    explain.explain(said, target.HOSTS[0])


def test_guided_by_coverage():
    seconds = float(os.environ.get("STEADYGPU_FUZZ_SECONDS", "20"))
    crashes, runs, edges = guided.fuzz(target.judge_once, SEEDS, target.at_most, seconds)
    assert not crashes, "\n".join(f"{c.kind} {c.data!r}\n{c.said}" for c in crashes)
    # It cannot fail where nothing is traced or nothing runs.
    assert runs > 50
    assert edges > 1000
