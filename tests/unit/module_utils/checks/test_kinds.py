# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What kind of input a text is: by its name, else by what it says; and files inside files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from ansible_collections.steadygpu.host.plugins.module_utils.checks.readers import embedded, kinds

ROOT = Path(__file__).resolve().parents[4]
BY_NAME = {
    "compose.yaml": "compose",
    "deploy/docker-compose.gpu.yml": "compose",
    "compose-dev.yml": "compose",
    "/etc/docker/daemon.json": "daemon_json",
    "docker-daemon.json": "daemon_json",
    "/etc/systemd/system/docker.service.d/override.conf": "unit",
    "gpu-batch.slice": "unit",
    "/etc/containerd/config.toml": "containerd_toml",
    "/etc/containerd/conf.d/99-nvidia.toml": "containerd_toml",
    "/etc/nvidia-container-runtime/config.toml": "toolkit_toml",
    "/etc/cdi/nvidia.yaml": "cdi_spec",
    "/var/run/cdi/nvidia.json": "cdi_spec",
    "/proc/cmdline": "cmdline",
    "/etc/default/grub": "cmdline",
    "/etc/sysctl.d/90-gpu.conf": "sysctl",
    ".env": "env_file",
    "prod.env": "env_file",
    "/etc/apt/sources.list.d/cuda.list": "apt_sources",
    "/etc/default/irqbalance": "irqbalance",
    "run.sh": "shell",
    "README.md": "markdown",
    "dmesg.txt": "dump",
}
BY_TEXT = {
    "docker run --gpus all ubuntu true\n": "shell",
    "  sudo docker create ubuntu\n": "shell",
    "FOO=1 docker run ubuntu\n": "shell",
    "#!/usr/bin/env bash\nset -e\n": "shell",
    "export NCCL_DEBUG=INFO\n": "shell",
    "services:\n  # a comment\n\n  web:\n    image: nginx\n": "compose",
    '{"runtimes": {}}': "daemon_json",
    '{"cdiVersion": "0.6.0", "kind": "nvidia.com/gpu"}': "cdi_spec",
    "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\n": "cdi_spec",
    '{"hooks": {"prestart": [{"path": "/x"}]}}': "oci_hooks",
    '{"version": "1.0.0", "hook": {}, "stages": ["createRuntime"]}': "oci_hooks",
    '{"apiVersion": "v1", "kind": "Pod"}': "kubernetes",
    "apiVersion: v1\nkind: Pod\n": "kubernetes",
    "devicePlugin:\n  enabled: true\ntoolkit:\n  enabled: true\n": "kubernetes",
    "env:\n- name: A\n  value: b\n": "kubernetes",
    "- hosts: all\n  tasks: []\n": "ansible",
    "- name: write\n  ansible.builtin.copy:\n    dest: /x\n": "ansible",
    "ansible_become: true\n": "ansible",
    "[Service]\nExecStart=/usr/bin/dockerd\n": "unit",
    "[nvidia-container-cli]\nno-cgroups = false\n": "toolkit_toml",
    'version = 2\n[plugins."io.containerd.grpc.v1.cri"]\n': "containerd_toml",
    "kernel.numa_balancing = 1\nvm.swappiness=10\n": "sysctl",
    "IRQBALANCE_BANNED_CPUS=000000f0\n": "irqbalance",
    "deb [signed-by=/k.gpg] https://example.invalid/deb /\n": "apt_sources",
    "BOOT_IMAGE=/vmlinuz root=/dev/vda quiet\n": "cmdline",
    "A=1\nB=two\n": "env_file",
    "[    1.5] NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.\n": "dump",
    "Text.\n\n```bash\ndocker run ubuntu\n```\n": "markdown",
}
UNKNOWN = (
    "",
    "hello world\n",
    '{"name": "package", "version": "1.0.0"}',
    "[tool.ruff]\nline-length = 100\n",
    "name: ci\non: push\njobs:\n  a:\n    services:\n      db:\n        image: x\n",
    "stages: [a]\nservices:\n  - docker:dind\nbuild:\n  script: [make]\n",
    "key: value\n",
)


@pytest.mark.parametrize(("file", "kind"), BY_NAME.items())
def test_a_known_name_settles_it(file, kind):
    assert kinds.by_name(file) == kind
    assert kinds.detect("", file) == kind


@pytest.mark.parametrize(("text", "kind"), BY_TEXT.items())
def test_a_text_without_a_name_is_recognised(text, kind):
    assert kinds.detect(text) == kind


@pytest.mark.parametrize("text", UNKNOWN)
@pytest.mark.parametrize("file", ["", "x.yml", "x.toml", "x.txt"])
def test_what_is_none_of_our_kinds_is_none(text, file):
    assert kinds.detect(text, file) is None


def test_a_kubernetes_manifest_may_be_called_daemon_json():
    assert kinds.detect('{"apiVersion": "apps/v1", "kind": "DaemonSet"}', "daemon.json") == (
        "kubernetes"
    )


def test_below_a_directory_only_known_names_are_read():
    assert kinds.walked("a/compose.yml")
    assert kinds.walked("a/values.yaml")
    assert not kinds.walked("a/README.md")  # its commands are examples, often bad ones
    assert not kinds.walked("a/main.py")
    assert not kinds.walked("a/package.json")


def test_other_words_for_a_kind():
    assert kinds.named("docker-run") == "shell"
    assert kinds.named("systemd_unit") == "unit"
    with pytest.raises(kinds.UnknownKindError, match=r"composer.*there are: shell"):
        kinds.named("composer")


def test_what_is_not_read_at_all():
    too_large = b"a" * (kinds.LIMIT_BYTES + 1)
    assert kinds.refused(too_large) == "larger than 2 MiB; such a file is not read"
    assert kinds.refused(b"\x7fELF\0") == "a binary file, not text"
    assert kinds.refused(b"\xff\xfe\xfd") is None


def test_a_template_is_told_from_ansible():
    assert kinds.is_template("image: {{ .Values.image }}\n")
    assert kinds.is_template("{% if x %}\nservices:\n{% endif %}\n")
    assert not kinds.is_template("- copy:\n    dest: '{{ path }}/x'\n")
    assert not kinds.is_template('- debug:\n    msg: "a {{ b }}"\n')


def test_code_blocks_of_markdown_keep_their_lines():
    text = "# Title\n\n```yaml\nservices:\n  a: {}\n```\n\n```bash\n$ docker run ubuntu\n```\n"
    compose, shell = embedded.pieces(text, "markdown")
    assert compose.kind is None
    assert compose.text == "\n\n\nservices:\n  a: {}\n"
    assert shell.kind == "shell"
    assert shell.text.split("\n")[8] == "$ docker run ubuntu"


def test_a_block_without_an_end_and_one_in_a_list():
    text = "1. a\n\n   ```sh\n   docker run a\n   ```\n\n```\nnever closed\n"
    (block,) = embedded.pieces(text, "markdown")
    assert block.text == "\n\n\ndocker run a\n"


def test_what_a_script_writes_is_a_file_of_its_own():
    text = (
        "set -e\nsudo tee /etc/docker/daemon.json <<'EOF'\n{\n}\nEOF\n"
        "cat <<-END > /etc/sysctl.d/1.conf\n\tvm.swappiness = 1\n\tEND\n"
        "cat <<EOF\nnot a file\nEOF\n"
        "cat > compose.yml <<EOF\nimage: $IMAGE\nEOF\n"
    )
    daemon, sysctl = embedded.pieces(text, "shell")
    assert (daemon.name, daemon.text) == ("/etc/docker/daemon.json", "\n\n{\n}\n")
    assert sysctl.name == "/etc/sysctl.d/1.conf"
    assert sysctl.text.splitlines()[-1] == "vm.swappiness = 1"


@pytest.mark.parametrize(
    "name",
    [
        *("compose.yaml", "deploy/docker-compose.prod.yml", "run.sh", "etc/docker/daemon.json"),
        *("daemon.prod.json", "a.service", "a.slice", "docker.service.d/override.conf"),
        *("etc/containerd/config.toml", "etc/cdi/nvidia.json", "hooks.d/gpu.json", ".env.prod"),
        *("etc/sysctl.d/99.conf", "sysctl.conf", "etc/default/grub", "apt/nvidia.sources"),
        "etc/apt/sources.list.d/nvidia.list",
    ],
)
def test_the_commit_hook_passes_on_what_a_directory_would_be_searched_for(name):
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert kinds.walked(name)
    assert re.search(hook["files"], name)
