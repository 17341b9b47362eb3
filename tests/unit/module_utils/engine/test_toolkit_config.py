# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.checks.documents import (
    toolkit as checked,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine import (
    toolkit_config,
    toolkit_keys,
    toolkit_rules,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.toolkit_config import (
    Host,
    ToolkitRefusedError,
    Wish,
    carry_out,
    make_plan,
)
from ansible_collections.steadygpu.host.plugins.module_utils.trees import toml_edit

SHIPPED = (Path(__file__).parents[3] / "simgpu" / "toolkit" / "files" / "config.toml").read_text()
CLI, RUNTIME = "nvidia-container-cli", "nvidia-container-runtime"
HOST = Host("1.20.0")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where the file is, and its record beside it; the host's ldconfig is there."""
    record = str(tmp_path / "owned" / "toolkit_config.json")
    monkeypatch.setattr(toolkit_config, "RECORD_PATH", record)
    monkeypatch.setattr(
        toolkit_config, "_head", lambda name: b"\x7fE" if name == "/sbin/ldconfig" else None
    )
    return str(tmp_path / "config.toml")


def converge(path: str, config: dict[str, Any], host: Host = HOST, **wish: Any) -> Any:
    plan = make_plan(Wish(config, path=path, **wish), host)
    carry_out(plan)
    return plan


def refused(path: str, config: dict[str, Any], host: Host = HOST, **wish: Any) -> str:
    with pytest.raises(ToolkitRefusedError) as caught:
        make_plan(Wish(config, path=path, **wish), host)
    return str(caught.value)


def test_complaint_08_the_mode_is_said_and_stays_said(path: str) -> None:
    """What a release makes of auto changed with 1.18; who says the mode is not surprised."""
    Path(path).write_text(SHIPPED)
    plan = converge(path, {RUNTIME: {"mode": "legacy"}}, Host("1.17.8"))
    assert plan.actions == ('changed nvidia-container-runtime.mode from "auto" to "legacy"',)
    assert Path(path).read_text() == SHIPPED.replace('mode = "auto"', 'mode = "legacy"')
    assert plan.mode == "legacy"
    again = converge(path, {RUNTIME: {"mode": "legacy"}}, Host("1.20.0"))
    assert (again.changed, again.actions, again.mode) == (False, (), "legacy")


def test_absent_brings_back_the_very_bytes_of_a_hand_written_file(path: str) -> None:
    text = SHIPPED.replace("\n", "\r\n").replace("#no-cgroups", "# rootless\r\n#no-cgroups")
    Path(path).write_bytes(text.encode())
    converge(
        path,
        {
            "swarm-resource": "DOCKER_RESOURCE_NVIDIA-GPU",
            CLI: {"debug": "/var/log/cli.log"},
            RUNTIME: {"mode": "jit-cdi", "modes": {"jit-cdi": {"nvcdi-disable-hooks": ["chmod"]}}},
            "features": {"ignore-imex-channel-requests": True},
        },
    )
    seen = Path(path).read_bytes().decode()
    assert seen.count("\n") == seen.count("\r\n")
    assert '#swarm-resource = "DOCKER_RESOURCE_GPU"\r\nswarm-resource = ' in seen
    assert "# SIMULATION for the steadygpu lab" in seen
    plan = converge(path, {}, present=False)
    assert 'nvidia-container-runtime.mode restored to "auto"' in plan.actions
    assert Path(path).read_bytes().decode() == text
    assert not os.path.exists(toolkit_config.record_path_of(path))


def test_a_host_without_the_toolkit_gets_a_file_and_loses_it_again(path: str) -> None:
    plan = converge(path, {RUNTIME: {"mode": "jit-cdi"}}, Host())
    assert plan.before is None
    assert Path(path).read_text() == '[nvidia-container-runtime]\nmode = "jit-cdi"\n'
    converge(path, {}, Host(), present=False)
    assert not os.path.exists(path)


def test_nothing_asked_touches_nothing_not_even_a_broken_file_or_a_record(path: str) -> None:
    converge(path, {RUNTIME: {"mode": "jit-cdi"}})
    Path(path).write_text("mode = ")
    for config in ({}, {"features": {}}, {RUNTIME: {"modes": {"cdi": {}}}}):
        plan = converge(path, config)
        assert (plan.changed, plan.mode) == (False, "unknown")
    assert Path(path).read_text() == "mode = "
    assert os.path.exists(toolkit_config.record_path_of(path))


def test_what_the_packages_wrote_is_nobodys_and_what_a_person_wrote_is_theirs(path: str) -> None:
    Path(path).write_text(SHIPPED.replace('log-level = "info"', 'log-level = "debug"'))
    config = {RUNTIME: {"mode": "cdi", "log-level": "warning", "runtimes": ["runc"]}}
    said = refused(path, config)
    assert 'nvidia-container-runtime.log-level is "debug", wanted "warning"' in said
    assert "mode" not in said
    assert "runtimes" not in said
    converge(path, config, takeover=True)
    converge(path, {}, present=False)
    assert 'log-level = "debug"' in Path(path).read_text()


def test_a_file_that_is_no_toml_or_no_utf_8_is_left_with_its_place(path: str) -> None:
    Path(path).write_text("[nvidia-container-cli]\nload-kmods = yes\n")
    said = refused(path, {RUNTIME: {"mode": "cdi"}})
    assert "line 2 column 14" in said
    assert "left as it is" in said
    Path(path).write_bytes(b"# caf\xe9\n")
    with pytest.raises(OSError, match="not UTF-8 at byte 5"):
        make_plan(Wish({RUNTIME: {"mode": "cdi"}}, path=path), HOST)


def test_all_that_is_wrong_is_said_at_once_and_nothing_is_written(path: str) -> None:
    Path(path).write_text(SHIPPED)
    said = refused(
        path,
        {
            "disable-requires": True,
            "mode": "cdi",
            CLI: {"load-kmods": "true", "ldconfig": "@/nowhere/ldconfig"},
            RUNTIME: {"mode": "jit-cd", "log-level": "verbose"},
            "features": {"gds": True},
        },
    )
    for words in (
        "disable-requires is no key of the toolkit; did you mean disable-require?",
        "mode is no key of the toolkit; did you mean nvidia-container-runtime.mode?",
        "nvidia-container-cli.load-kmods is 'true', wanted true or false",
        "mode is 'jit-cd', wanted one of auto, legacy, csv, cdi, jit-cdi; did you mean jit-cdi?",
        "log-level is 'verbose', wanted one of panic,",
        "features.gds is not read any more since 1.17.0",
        "this host has no /nowhere/ldconfig",
    ):
        assert words in said
    assert Path(path).read_text() == SHIPPED
    wrong = {RUNTIME: {"mode": "bogus"}}
    plan = converge(path, wrong, validate=False)
    assert any("'bogus'" in warning for warning in plan.warnings)


@pytest.mark.parametrize(
    ("config", "toolkit", "words"),
    [
        ({RUNTIME: {"mode": "jit-cdi"}}, "1.17.8", "mode = jit-cdi came with 1.18.0"),
        ({RUNTIME: {"mode": "cdi"}}, "1.10.0", "mode = cdi came with 1.11.0"),
        ({"features": {"allow-unknown-oci-spec-fields": True}}, "1.18.2", "came with 1.19.0"),
        ({RUNTIME: {"experimental": True}}, "1.20.0", "not read any more"),
        ({RUNTIME: {"runtimes": "runc"}}, "1.20.0", "wanted a list"),
        ({RUNTIME: {"runtimes": [1]}}, "1.20.0", "wanted a list of texts"),
        ({RUNTIME: {"mode": {"cdi": "x"}}}, "1.20.0", "mode.cdi is no key"),
        ({RUNTIME: {"mode": None}}, "1.20.0", "mode has no value"),
        ({CLI: {"debug": "cli.log"}}, "1.20.0", "wanted an absolute path"),
        ({CLI: {"user": "root"}}, "1.20.0", "wanted user:group"),
        ({"supported-driver-capabilities": "compute,all"}, "1.20.0", "wanted all, or compat32,"),
        (
            {RUNTIME: {"modes": {"cdi": {"default-kind": "gpu"}}}},
            "1.20.0",
            "wanted vendor/class, such as nvidia.com/gpu",
        ),
        (
            {RUNTIME: {"modes": {"jit-cdi": {"nvcdi-feature-flags": ["disable-ipc-discoverer"]}}}},
            "1.19.1",
            "came with 1.20.0",
        ),
        ({"new-key": True}, "1.21.0", "up to 1.20.0; if 1.21.0 has it, say validate: false"),
    ],
)
def test_keys_are_judged_by_the_installed_release(
    path: str, config: dict[str, Any], toolkit: str, words: str
) -> None:
    assert words in refused(path, config, Host(toolkit))


def judged(config: dict[str, Any], toolkit: str, files: dict[str, bytes]) -> Any:
    return toolkit_rules.judge(config, toolkit, files.get)


def test_tk_004_ldconfig_real_of_another_distribution_is_refused() -> None:
    config = {CLI: {"ldconfig": "@/sbin/ldconfig.real"}}
    fedora = {"/sbin/ldconfig": b"\x7fE"}
    assert "no /sbin/ldconfig.real" in judged(config, "1.14.6", fedora).errors[0]
    assert judged(config, "1.15.0", fedora).errors == ()


def test_tk_005_a_wrapper_is_refused_where_the_toolkit_does_not_look_behind_it() -> None:
    config = {CLI: {"ldconfig": "@/sbin/ldconfig"}}
    ubuntu = {"/sbin/ldconfig": b"#!", "/sbin/ldconfig.real": b"\x7fE"}
    assert 'write "@/sbin/ldconfig.real"' in judged(config, "1.14.6", ubuntu).errors[0]
    assert judged(config, "1.17.8", ubuntu).errors == ()


@pytest.mark.parametrize("said", ["/usr/sbin/ldconfig", "/sbin/ldconfig"])
def test_tk_006_tk_007_ldconfig_of_the_container_is_refused(said: str) -> None:
    config: dict[str, Any] = {CLI: {"ldconfig": said}}
    assert f'write "@{said}"' in judged(config, "1.17.3", {}).errors[0]
    config["features"] = {"allow-ldconfig-from-container": True}
    judgement = judged(config, "1.17.3", {})
    assert judgement.errors == ()
    assert "allow-ldconfig-from-container is true" in judgement.warnings[0]


def test_tk_009_tk_037_mode_cdi_before_1_18_is_warned_of() -> None:
    config = {RUNTIME: {"mode": "cdi"}}
    assert "--gpus" in judged(config, "1.17.8", {}).warnings[0]
    assert judged(config, "1.18.0", {}).warnings == ()


def test_cg_007_no_cgroups_is_warned_of(path: str) -> None:
    plan = make_plan(Wish({CLI: {"no-cgroups": True}}, path=path), HOST)
    assert "Failed to initialize NVML" in plan.warnings[0]


def test_a_fault_that_was_there_before_is_warned_of_and_no_reason_to_refuse(path: str) -> None:
    Path(path).write_text(SHIPPED.replace("@/sbin/ldconfig", "/sbin/ldconfig"))
    plan = converge(path, {RUNTIME: {"mode": "jit-cdi"}})
    assert plan.changed
    assert any("a path in the container" in warning for warning in plan.warnings)


def ctk(tmp_path: Path, script: str) -> Host:
    tool = tmp_path / "nvidia-ctk"
    tool.write_text("#!/bin/sh\n" + script)
    tool.chmod(0o755)
    return Host("1.20.0", str(tool))


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ('cat "$4"\n', None),
        ("echo 'no such option' >&2; exit 1\n", "nvidia-ctk config: no such option"),
        (
            "sed s/jit-cdi/auto/\n",
            'reads nvidia-container-runtime.mode as "auto", wanted "jit-cdi"',
        ),
        ("sed 's/^mode/#mode/'\n", None),
        ("echo not toml\n", "prints what is no TOML"),
    ],
)
def test_the_toolkits_own_tool_is_asked(
    path: str, tmp_path: Path, script: str, words: str | None
) -> None:
    host = ctk(tmp_path, script)
    config = {RUNTIME: {"mode": "jit-cdi"}}
    if words is None:
        assert make_plan(Wish(config, path=path), host).changed
    else:
        assert words in refused(path, config, host)


def test_a_tool_that_cannot_be_asked_is_not_asked(path: str, tmp_path: Path) -> None:
    host = replace(ctk(tmp_path, "exit 1\n"), toolkit="1.14.0")
    assert make_plan(Wish({RUNTIME: {"mode": "cdi"}}, path=path), host).changed


def test_every_value_that_packages_ship_is_allowed_and_nobodys() -> None:
    document = toml_edit.parse(SHIPPED)
    for leaf, value in toml_edit.flatten(document):
        if leaf == (RUNTIME, "modes"):
            continue
        assert toolkit_keys.fault(".".join(leaf), value, "1.20.0") is None
        assert toolkit_keys.nobodys(leaf, value), leaf


def test_the_checks_know_the_same_keys_and_modes() -> None:
    known = {name: key.since for name, key in toolkit_keys.KEYS.items()}
    of_checks = dict(checked.KEYS)
    of_checks.pop("nvidia-container-runtime.modes.jit-cdi.load-kernel-modules", None)
    assert known == of_checks
    assert dict(toolkit_keys.MODES) == dict(checked.MODES)
