# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""systemd units: settings with their places, and the commands of Exec lines."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.checks.documents.container import (
    ContainerSpec,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.documents.units import UnitFile
from ansible_collections.steadygpu.host.plugins.module_utils.checks.readers.unit import read_unit

UNIT = """\
[Unit]
Description=Metrics of GPUs
# ExecStart=/usr/bin/docker run commented

[Service]
Environment="OPTS=--ai-scheduler=enabled --debug" LEVEL=warn
ExecStartPre=-/usr/bin/docker rm -f %n
ExecStart=/usr/bin/docker run --rm --gpus all \\
  # a note in between
  --cpus="0.5" --name %n \\
  -p 9400:9400 -e 'A=b c' metrics:latest
ExecStop=/bin/sh -c 'docker stop x'
"""


def read(text: str, file: str = "/etc/systemd/system/metrics.service") -> tuple[UnitFile, list]:
    unit, *others = read_unit(text, file).documents
    return unit, others


def test_a_run_line_in_a_unit():
    _unit, others = read(UNIT)
    (spec,) = [doc for doc in others if isinstance(doc, ContainerSpec)]
    assert spec.name == "%n"
    assert spec.flags["cpus"][0].value == "0.5"
    assert (spec.flags["cpus"][0].at.line, spec.flags["cpus"][0].at.column) == (10, 3)
    assert spec.env["A"].value == "b c"
    assert spec.image is not None
    assert (spec.image.value, spec.image.at.line) == ("metrics:latest", 11)


def test_settings_with_their_places():
    unit, _others = read(UNIT)
    assert unit.unit == "metrics.service"
    assert not unit.drop_in
    start = unit.last("Service", "ExecStart")
    assert start is not None
    assert (start.at.line, start.at.column) == (8, 1)
    assert unit.all("Service", "Nothing") == ()


def test_a_drop_in_that_clears_a_list():
    unit, _others = read(
        "[Service]\nExecStart=/a\nExecStart=\nExecStart=/b\n[Slice]\nCPUQuota=300%\n",
        "/etc/systemd/system/docker.service.d/override.conf",
    )
    assert unit.drop_in
    assert unit.unit == "docker.service"
    assert [one.value for one in unit.all("Service", "ExecStart")] == ["/b"]


def test_flags_of_dockerd_from_a_variable_of_the_unit():
    unit, _others = read(
        '[Service]\nEnvironment="OPTS=--ai-scheduler=enabled --debug"\n'
        "ExecStart=/usr/bin/dockerd -H fd:// $OPTS $MORE --label=a=${B}\n"
    )
    (line,) = unit.named("dockerd")
    assert line.flags["host"][0].value == "fd://"
    assert line.last("debug") is not None
    assert [one.spelled for one in line.unknown] == ["--ai-scheduler"]
    assert line.shell == {"MORE", "B"}


def test_a_script_inside():
    unit, _others = read(UNIT)
    assert [line.text() for line in unit.named("docker")][-1] == "docker stop x"


@settings(max_examples=3 * settings.default.max_examples)
@given(
    st.lists(
        st.sampled_from([*"[]=\\\n\"'$%;# ", "ExecStart=", "docker run ", "[Service]\n", "${A}"]),
        max_size=40,
    ).map("".join)
    | st.text(max_size=60)
)
def test_any_text_is_read(text):
    assert isinstance(read(text)[0], UnitFile)
