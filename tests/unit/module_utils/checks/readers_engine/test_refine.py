# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that configure a host sharpen what is known of it."""

from __future__ import annotations

from ansible_collections.steadygpu.host.plugins.module_utils.checks.host import HostView
from ansible_collections.steadygpu.host.plugins.module_utils.checks.judge import judge
from ansible_collections.steadygpu.host.plugins.module_utils.checks.readers import kinds
from ansible_collections.steadygpu.host.plugins.module_utils.checks.refine import refine


def _documents(kind, text, file="input"):
    return kinds.read(text, file, kind).documents


def test_daemon_json_fills_in_what_is_not_known():
    docs = _documents(
        "daemon_json",
        '{"exec-opts": ["native.cgroupdriver=systemd"], "default-runtime": "nvidia",'
        ' "live-restore": true, "features": {"cdi": false}}',
    )
    host = refine(HostView(), docs)
    assert host.cgroup_driver == "systemd"
    assert host.default_runtime == "nvidia"
    assert host.live_restore is True
    assert host.cdi_enabled is False


def test_what_the_daemon_says_of_itself_counts_more():
    docs = _documents("daemon_json", '{"default-runtime": "nvidia", "live-restore": true}')
    host = refine(HostView(default_runtime="runc", live_restore=False), docs)
    assert host.default_runtime == "runc"
    assert host.live_restore is False


def test_a_broken_file_says_nothing():
    assert refine(HostView(), _documents("daemon_json", "{")) == HostView()


def test_the_toolkit_s_mode_is_that_of_the_system_s_file():
    text = '[nvidia-container-runtime]\nmode = "legacy"\n'
    system = _documents("toolkit_toml", text, "/etc/nvidia-container-runtime/config.toml")
    assert refine(HostView(), system).toolkit_mode == "legacy"
    user = _documents(
        "toolkit_toml", text, "/home/ada/.config/nvidia-container-runtime/config.toml"
    )
    assert refine(HostView(), user).toolkit_mode is None
    assert refine(HostView(), _documents("toolkit_toml", "")).toolkit_mode == "auto"


def test_a_drop_in_replaces_the_unit_s_start():
    unit = _documents(
        "unit", "[Service]\nExecStart=/usr/bin/dockerd -H fd://\n", "/lib/systemd/docker.service"
    )
    drop_in = _documents(
        "unit",
        "[Service]\nExecStart=\nExecStart=/usr/bin/dockerd --label a=b --label c=d\n",
        "/etc/systemd/system/docker.service.d/x.conf",
    )
    host = refine(HostView(), (*drop_in, *unit))
    assert host.evidence["dockerd_flags"] == {"--label": "a=b,c=d"}


def test_a_flag_and_a_key_for_one_option_keep_dockerd_from_starting():
    unit = _documents(
        "unit", "[Service]\nExecStart=/usr/bin/dockerd -H fd://\n", "/lib/systemd/docker.service"
    )
    config = _documents("daemon_json", '{"hosts": ["unix:///var/run/docker.sock"]}')
    said = {finding.rule for finding in judge(config, refine(HostView(), unit))}
    assert "daemon-flag-and-file" in said
    assert "daemon-hosts-and-stock-unit" not in said


def test_the_flags_of_a_running_unit_come_from_its_facts():
    host = HostView(live=True, facts={"docker": {"flags": {"--host": "fd://"}}})
    config = _documents("daemon_json", '{"hosts": ["unix:///var/run/docker.sock"]}')
    assert "daemon-flag-and-file" in {finding.rule for finding in judge(config, host)}


def test_sources_in_two_files_are_compared():
    old = _documents(
        "apt_sources", "deb https://packages.example/deb/$(ARCH) /\n", "/etc/apt/old.list"
    )
    new = _documents(
        "apt_sources",
        "deb [signed-by=/k.gpg] https://packages.example/deb/amd64 /\n",
        "/etc/apt/new.list",
    )
    said = judge(new, refine(HostView(), (*old, *new)))
    assert [finding.rule for finding in said] == ["apt-signed-by-differs"]
    assert "/etc/apt/old.list:1:1" in said[0].seen


def test_the_command_line_isolates_cpus():
    docs = _documents("cmdline", "quiet isolcpus=8-15")
    host = refine(HostView(), docs)
    assert host.cmdline == "quiet isolcpus=8-15"
    irq = _documents("irqbalance", "IRQBALANCE_BANNED_CPUS=f0")
    (finding,) = judge(irq, host)
    assert finding.severity.label == "warning"
    assert "8-15" in finding.seen
