# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the readers of engines' and kernels' files make of a text: values and their places."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.checks.host import HostView
from ansible_collections.steadygpu.host.plugins.module_utils.checks.judge import judge
from ansible_collections.steadygpu.host.plugins.module_utils.checks.readers import kinds
from ansible_collections.steadygpu.host.plugins.module_utils.engine import daemon_json
from ansible_collections.steadygpu.host.plugins.module_utils.engine.json_text import JsonTextError

OURS = (
    "daemon_json",
    "containerd_toml",
    "toolkit_toml",
    "cdi_spec",
    "cmdline",
    "sysctl",
    "apt_sources",
    "irqbalance",
)


def _one(kind, text, file="input"):
    (document,) = kinds.read(text, file, kind).documents
    return document


def test_a_stray_brace_is_found_where_it_leaves_something_over():
    text = '{"registry-mirrors": [] }, "graph": "/data"}'
    doc = _one("daemon_json", text)
    assert (doc.broken.at.line, doc.broken.at.column) == (1, 26)


_TEXTS = st.text(max_size=60) | st.lists(st.sampled_from(re.split(" ", '{ } [ ] : , 1 "a"')))


@settings(max_examples=3 * settings.default.max_examples // 2)
@given(
    text=_TEXTS.map("".join) | st.dictionaries(st.text(max_size=3), st.integers()).map(json.dumps)
)
def test_checks_and_engine_agree_on_what_can_be_read(text):
    (doc,) = kinds.read(text, "daemon.json", "daemon_json").documents or (None,)
    try:
        config = daemon_json.document(text)
    except JsonTextError:
        assert doc is None or doc.broken is not None or text.startswith("\ufeff")
    else:
        assert doc.broken is None
        assert doc.config == config


def test_an_empty_daemon_json_is_one_without_keys():
    doc = _one("daemon_json", " \n")
    assert doc.broken is None
    assert doc.config == {}


def test_dockerd_looks_into_objects_that_it_does_not_keep_whole():
    doc = _one("daemon_json", '{"proxies": {"no-proxy": "x"}, "log-opts": {"a": "b"}}')
    assert [path for path, _node in doc.keys_looked_at()] == [
        ("proxies", "no-proxy"),
        ("log-opts",),
    ]


def test_keys_of_a_toolkit_config_have_places():
    doc = _one("toolkit_toml", '[nvidia-container-cli]\n  ldconfig = "@/sbin/ldconfig"\n')
    at = doc.key_place("nvidia-container-cli", "ldconfig")
    assert (at.line, at.column) == (2, 3)


def test_a_spec_in_json_and_in_yaml_says_the_same():
    json_text = '{"cdiVersion": "0.6.0", "kind": "nvidia.com/gpu", "devices": [{"name": "0"}]}'
    yaml_text = "cdiVersion: 0.6.0\nkind: nvidia.com/gpu\ndevices:\n- name: '0'\n"
    one, other = _one("cdi_spec", json_text, "x.json"), _one("cdi_spec", yaml_text, "x.yaml")
    assert one.spec.devices == other.spec.devices == ["0"]
    assert one.spec.status == other.spec.status == "valid"


def test_a_spec_that_ends_in_yml_is_read_by_no_engine():
    text = "cdiVersion: 0.6.0\nkind: nvidia.com/gpu\ndevices:\n- name: '0'\n"
    said = judge((_one("cdi_spec", text, "/etc/cdi/nvidia.yml"),), HostView())
    (finding,) = [found for found in said if found.rule == "cdi-spec-invalid"]
    assert "rename" in finding.seen


def test_a_slice_lies_inside_the_one_that_its_name_begins_with():
    unit = _one("unit", "[Slice]\nMemoryMax=8G\n", "/etc/systemd/system/ai-workload.slice")
    (finding,) = judge((unit,), HostView())
    assert finding.rule == "slice-name-nests"
    assert "ai.slice" in finding.seen
    assert judge((_one("unit", "[Slice]\nMemoryMax=8G\n", "/etc/x/ai.slice"),), HostView()) == []


def test_grub_s_defaults_are_read_inside_their_quotes():
    text = '# GRUB_CMDLINE_LINUX="a=1"\nGRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX="quiet pci=nomsi"\n'
    doc = _one("cmdline", text, "/etc/default/grub")
    assert [(p.spelled, p.value, p.at.line) for p in doc.parameters] == [
        ("quiet", "", 3),
        ("pci", "nomsi", 3),
    ]
    assert doc.parameters[1].at.column == 27


def test_a_loader_s_line_and_the_kernel_s_own():
    entry = _one("cmdline", "title x\noptions root=/dev/sda1 a-b=1\n", "entry.conf")
    assert entry.all("a_b")[0].value == "1"
    proc = _one("cmdline", 'BOOT_IMAGE=/vmlinuz dyndbg="file x +p" quiet\n', "/proc/cmdline")
    assert proc.all("dyndbg")[0].value == "file x +p"


@pytest.mark.parametrize("line", ["kernel.x = 1", "-kernel/x=1", "  kernel.x=1 "])
def test_a_sysctl_line_in_every_spelling(line):
    doc = _one("sysctl", f"# kernel.x = 0\n{line}\n")
    assert doc.last("kernel.x").value == "1"


def test_both_forms_of_apt_sources_say_the_same():
    old = "deb [arch=amd64 signed-by=/k.gpg] https://packages.example/deb stable main\n"
    new = (
        "Types: deb\nURIs: https://packages.example/deb\nSuites: stable\nComponents: main\n"
        "Signed-By:\n /k.gpg\n"
    )
    (one,), (other,) = _one("apt_sources", old).sources, _one("apt_sources", new).sources
    assert (one.uri, one.suite, one.signed_by) == (other.uri, other.suite, other.signed_by)
    assert one.signed_by == "/k.gpg"


def test_a_key_inside_a_stanza_is_no_path():
    text = (
        "Types: deb\nURIs: https://packages.example/deb\nSuites: stable\nSigned-By:\n"
        " -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n -----END PGP PUBLIC KEY BLOCK-----\n"
    )
    (source,) = _one("apt_sources", text).sources
    assert source.signed_by == "inline key"


def test_secrets_are_not_in_what_is_said():
    text = (
        '{"proxies": {"http-proxy": "http://build:Sommer2026@proxy.example:3128"},'
        ' "log-opts": {"splunk-token": 20262026}}'
    )
    said = str(judge(kinds.read(text, "daemon.json", "daemon_json").documents, HostView()))
    assert "proxy-credentials" in said
    assert "daemon-key-type" in said
    assert "Sommer2026" not in said
    assert "20262026" not in said


@pytest.mark.parametrize("kind", OURS)
@settings(max_examples=2 * settings.default.max_examples // 5)
@given(text=st.text(max_size=300))
def test_any_text_ends_with_documents_and_findings(kind, text):
    judge(kinds.read(text, "input", kind).documents, HostView())


_WORDS = re.split(
    " ",
    '{ } [ ] : , = " " \n # true false 1 "runtimes" "features" "hosts" "cdi" "default-runtime" '
    '"exec-opts" version imports plugins [plugins.cri] [nvidia-container-cli] ldconfig mode '
    "cdiVersion kind devices name containerEdits - 'x' isolcpus=1-0 kernel.sched_rt_runtime_us -1 "
    "deb [signed-by=] URIs: Suites: IRQBALANCE_BANNED_CPUS zz null {} []",
)


@pytest.mark.parametrize("kind", OURS)
@settings(max_examples=2 * settings.default.max_examples // 5)
@given(words=st.lists(st.sampled_from(_WORDS), max_size=40))
def test_any_pieces_of_such_files_end_with_documents_and_findings(kind, words):
    text = "".join(words)
    judge(kinds.read(text, "input", kind).documents, HostView())


_KEYS = re.findall(
    r"\S+",
    "runtimes nvidia path features cdi hosts exec-opts proxies http-proxy log-opts bip plugins "
    "containerd options version kind devices containerEdits deviceNodes name default-runtime "
    "node-generic-resources data-root live-restore cgroup-parent min-api-version cdiVersion hooks "
    "args mounts hostPath storage-driver",
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.dictionaries(
            st.sampled_from(_KEYS),
            inside,
            max_size=6,
        )
    ),
    max_leaves=20,
)


@pytest.mark.parametrize("kind", ["daemon_json", "cdi_spec"])
@settings(max_examples=2 * settings.default.max_examples // 5)
@given(value=_JSON)
def test_any_json_with_known_keys_ends_with_findings(kind, value):
    text = json.dumps(value)
    judge(kinds.read(text, "input.json", kind).documents, HostView())
