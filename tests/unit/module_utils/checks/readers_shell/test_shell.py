# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Commands in scripts and pasted lines: the words that docker would get, each with its place."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.checks.documents.commands import (
    CommandLine,
    FlagFault,
    Variable,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.documents.container import (
    ContainerSpec,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.readers.shell import read_shell


def every(text: str, kind: type) -> list:
    return [doc for doc in read_shell(text, "f").documents if isinstance(doc, kind)]


def only(text: str) -> ContainerSpec:
    (spec,) = every(text, ContainerSpec)
    return spec


def flags(spec: ContainerSpec) -> dict[str, list[str]]:
    return {name: [one.value for one in given] for name, given in spec.flags.items()}


class TestFlags:
    """Docker's own flag grammar."""

    def test_all_ways_to_write_a_flag(self):
        spec = only(
            "docker run -itd --rm=false -m8g -e A=1 --env B --cpus 4 --volume=/a:/b -v /c:/d"
            " --net host -P --label x=y --annotation z=1 --name t img:1 cmd --rm -v"
        )
        assert flags(spec) == {
            "interactive": ["true"],
            "tty": ["true"],
            "detach": ["true"],
            "rm": ["false"],
            "memory": ["8g"],
            "cpus": ["4"],
            "volume": ["/a:/b", "/c:/d"],
            "network": ["host"],
            "publish-all": ["true"],
            "name": ["t"],
        }
        assert {name: one.value for name, one in spec.env.items()} == {"A": "1", "B": ""}
        assert spec.labels["x"].value == "y"
        assert spec.annotations["z"].value == "1"
        assert spec.image is not None
        assert spec.image.value == "img:1"
        assert [one.value for one in spec.command] == ["cmd", "--rm", "-v"]
        assert (spec.how, spec.name, spec.engine) == ("run", "t", "docker")

    def test_two_dashes_end_the_flags(self):
        spec = only("docker run --rm -- img --gpus all")
        assert spec.image is not None
        assert spec.image.value == "img"
        assert spec.gpus == ()

    def test_a_value_of_a_bundle(self):
        spec = only("docker run -itv /a:/b -eX=1 -u=0 img")
        assert flags(spec)["volume"] == ["/a:/b"]
        assert spec.env["X"].value == "1"
        assert flags(spec)["user"] == ["0"]

    @pytest.mark.parametrize(
        ("line", "unknown", "image"),
        [
            ("docker run --io-weight 500 img", [("--io-weight", "500")], "img"),
            ("docker run --io-weight=500 img x", [("--io-weight", "500")], "img"),
            ("docker run --fast img", [("--fast", "")], "img"),
            ("docker run --fast img sleep 5", [("--fast", "")], "img"),
            (
                "docker run --memory-bandwidth high --rm img",
                [("--memory-bandwidth", "high")],
                "img",
            ),
            ("docker run -gpus all --rm img", [("-gpus", "all")], "img"),
            ("docker run -x img", [("-x", "")], "img"),
        ],
    )
    def test_an_unknown_flag_does_not_end_the_reading(self, line, unknown, image):
        spec = only(line)
        assert [(one.spelled, one.value) for one in spec.unknown] == unknown
        assert spec.image is not None
        assert spec.image.value == image

    @pytest.mark.parametrize(
        ("line", "kind"),
        [
            ("docker run img; docker run --name", "needs-argument"),
            ("docker run --rm=maybe img", "not-a-switch-value"),
            ("docker run ---rm img", "bad-syntax"),
            ("docker run --rm", "no-image"),
            ("docker run \u2013rm img", "typographic"),
            ("docker run --rm \\ \n img", "broken-continuation"),
            ("docker run --rm \\\n# why\n --gpus all img", "cut-off"),
        ],
    )
    def test_what_docker_refuses(self, line, kind):
        assert kind in [fault.kind for fault in every(line, FlagFault)]

    def test_create_has_no_detach_and_container_run_is_run(self):
        assert only("docker create -d img").unknown[0].spelled == "-d"
        assert only("docker container run -d img").unknown == ()
        assert only("docker --host tcp://a:1 -D run --rm img").flags.keys() == {"rm"}

    @pytest.mark.parametrize("engine", ["podman", "nerdctl"])
    def test_other_engines_have_flags_of_their_own(self, engine):
        spec = only(f"{engine} run --cgroup-conf=a=b --umask 022 --device nvidia.com/gpu=all img")
        assert (spec.engine, spec.unknown) == (engine, ())
        assert spec.cdi_devices[0].value == "nvidia.com/gpu=all"


class TestPlaces:
    """Line and column of what somebody wrote."""

    def test_over_continuation_lines(self):
        spec = only("#!/bin/sh\nset -e\nsudo docker run \\\n  --gpus all \\\n\t-m 8g img\n")
        assert (spec.at.line, spec.at.column) == (3, 6)
        assert (spec.gpus[0].at.line, spec.gpus[0].at.column) == (4, 3)
        assert (spec.flags["memory"][0].at.line, spec.flags["memory"][0].spelled) == (5, "-m")
        assert spec.image is not None
        assert (spec.image.at.line, spec.image.at.column) == (5, 8)

    def test_inside_a_substitution_and_a_quoted_script(self):
        spec = only('id="$(docker run -d img)"')
        assert (spec.at.line, spec.at.column) == (1, 7)
        spec = only("bash -c 'docker run \\\n -d img'")
        assert spec.image is not None
        assert (spec.image.at.line, spec.image.at.column) == (2, 5)


class TestGpus:
    """The value of --gpus, by docker's rules."""

    @pytest.mark.parametrize(
        ("value", "count", "ids", "errors"),
        [
            ("all", "all", [], []),
            ("2", "2", [], []),
            ("device=1", None, ["1"], []),
            ("'\"device=0,1\"'", None, ["0", "1"], []),
            ('"\\"device=0,1\\""', None, ["0", "1"], []),
            ('"device=0,1"', "1", ["0"], ["count-and-ids"]),
            ("device=0,1", "1", ["0"], ["count-and-ids"]),
            ("device=0,mig-1g.5gb", "mig-1g.5gb", ["0"], ["bad-count", "count-and-ids"]),
            ("'\"device=0,mig-1g.5gb\"'", None, ["0", "mig-1g.5gb"], []),
            ("'\"device=0;device=1\"'", None, ["0;device=1"], []),
            ("device=0,memory=8g", None, ["0"], ["unexpected-key"]),
            ("device=GPU-a+memory=8g", None, ["GPU-a+memory=8g"], []),
            ("count=1,count=2", "1", [], ["duplicate-key"]),
            ("some", "some", [], ["bad-count"]),
            ("''", None, [], ["bad-csv"]),
            ("'\"device=0'", None, [], ["bad-csv"]),
            ("'driver=cdi,\"device=nvidia.com/gpu=1\"'", None, ["nvidia.com/gpu=1"], []),
            ("capabilities=utility", "1", [], []),
        ],
    )
    def test_requests(self, value, count, ids, errors):
        (request,) = only(f"docker run --gpus {value} img").gpus
        assert (request.count.value if request.count else None) == count
        assert [one.value for one in request.device_ids] == ids
        assert [one.spelled for one in request.errors] == errors

    def test_capabilities_and_options(self):
        value = '\'all,"capabilities=compute,utility","options=a=b,c=d"\''
        (request,) = only(f"docker run --gpus {value} img").gpus
        assert request.capabilities == ("compute", "utility", "gpu")
        assert request.options == {"a": "b", "c": "d"}
        assert request.wants_all


class TestShell:
    """What a shell does before docker sees anything."""

    def test_variables_that_the_script_sets_once(self):
        spec = only(
            'IMG=nvidia/cuda:12.4\nexport OPTS="--gpus all -m 8g"\n'
            'docker run $OPTS -v "$HOME/my data:/d" ${NAME:+x} "$IMG" ${CMD:-bash}'
        )
        assert flags(spec)["memory"] == ["8g"]
        assert flags(spec)["volume"] == ["$HOME/my data:/d"]
        assert spec.gpus[0].wants_all
        assert "HOME" in spec.shell

    def test_a_variable_set_in_two_branches_stays_open(self):
        text = "if a; then G='--gpus all'; else G=; fi\ndocker run --rm $G_OPTS $G img true"
        spec = only(text)
        assert spec.gpus == ()
        assert {"G", "G_OPTS"} <= spec.shell

    def test_options_in_a_variable_are_not_the_image(self):
        spec = only("docker run --rm $DOCKER_OPTS nvidia/cuda nvidia-smi")
        assert spec.image is not None
        assert spec.image.value == "nvidia/cuda"
        spec = only("docker run --rm $IMAGE nvidia-smi")
        assert spec.image is not None
        assert spec.image.value == "$IMAGE"

    def test_an_array_of_options(self):
        spec = only(
            'args=(--rm -v "a b:/c") # more\nargs+=(\n  --gpus all\n)\ndocker run "${args[@]}" img'
        )
        assert flags(spec) == {"rm": ["true"], "volume": ["a b:/c"]}
        assert spec.gpus[0].wants_all

    def test_keywords_wrappers_and_variables_before_the_command(self):
        text = (
            "for i in 1 2; do A=1 sudo -E -u root env B=2 nice -n 5 /usr/bin/docker run -d img;"
            " done && ! docker run x || { docker run y; }"
        )
        lines = [line for line in every(text, CommandLine) if line.name == "docker"]
        assert [line.words[-1].value for line in lines] == ["img", "x", "y"]
        assert {name: one.value for name, one in lines[0].env.items()} == {"A": "1", "B": "2"}
        assert [words[0].value for words in lines[0].wrappers] == ["sudo", "env", "nice"]

    def test_what_is_no_command_is_not_read_as_one(self):
        text = (
            "# docker run a\necho docker run b\ncat <<EOF\ndocker run c\nEOF\n"
            "cat <<-'E F'\n\tdocker run d\n\tE F\necho 'docker run e' \"docker run f\"\n"
            "docker run g # docker run h\n"
        )
        assert [spec.image.value for spec in every(text, ContainerSpec) if spec.image] == ["g"]

    @pytest.mark.parametrize(
        "text",
        [
            "$ docker run img\nUnable to find image, can't go on: docker run evil\n$ ls\n",
            "root@gpu1:~# docker run img\ndocker run evil\n",
            "(base) me@gpu1:/srv$ docker run \\\n>   img\ndocker run evil\n",
            "[root@gpu1 ~]# docker run img\n",
            "PS C:\\> docker run img\n",
            "# docker run img\n",
        ],
    )
    def test_a_pasted_session(self, text):
        (spec,) = every(text, ContainerSpec)
        assert spec.image is not None
        assert spec.image.value == "img"

    def test_a_commented_script_stays_silent(self):
        assert read_shell("#!/bin/sh\n# docker run img\n", "f").documents == ()
        assert every("# docker run a\ndocker run b", ContainerSpec)[0].image.value == "b"

    def test_continuation_lines_of_powershell_and_cmd(self):
        for mark in "`^":
            spec = only(f"docker run --rm {mark}\n  --gpus all {mark}\n  img\n")
            assert spec.gpus[0].wants_all
            assert spec.image is not None
            assert spec.image.value == "img"

    def test_variables_and_redirections(self):
        (first, second) = every("export NCCL_DEBUG=INFO\nA=1 run-it < in.txt > out.txt", Variable)
        assert (first.name, first.value, first.exported) == ("NCCL_DEBUG", "INFO", True)
        assert second.name == "A"
        (line,) = every("x -n < in.txt 2>&1 > out.txt # why", CommandLine)
        assert line.reads is not None
        assert (line.reads.value, line.writes[0].value) == ("in.txt", "out.txt")
        assert line.comment == "why"

    def test_a_pipe_knows_what_comes_in(self):
        (_echo, tee) = every("echo -1 | sudo tee /proc/x", CommandLine)
        assert (tee.name, tee.piped) == ("tee", ("echo", "-1"))


class TestCommands:
    """Other commands."""

    def test_docker_update_and_dockerd_have_flags(self):
        (line,) = every("docker update -m 8g --cpus=2 trainer", CommandLine)
        assert {name: one[0].value for name, one in line.flags.items()} == {
            "memory": "8g",
            "cpus": "2",
        }
        assert [one.value for one in line.args] == ["trainer"]
        (line,) = every("dockerd -H fd:// --ai-scheduler=enabled --debug", CommandLine)
        assert line.flags.keys() == {"host", "debug"}
        assert [one.spelled for one in line.unknown] == ["--ai-scheduler"]

    def test_values_of_flags(self):
        (line,) = every("nvidia-smi -i 0 --id=1 -r", CommandLine)
        assert line.has("-r") is not None
        assert line.has("-x") is None
        assert line.option("-i").value == "0"
        assert line.option("--id").value == "1"


SCRAPS = [
    *"\"'`$(){}[]|&;<>\\\n\t #=-",
    "docker run ",
    "--gpus ",
    "img",
    "$(",
    "${A:-",
    "<<E\n",
    "A=(",
    "$'",
    "\u2013",
    "-c '",
    "bash -c ",
    "\\\n",
    "\x00",
    "é",
]


@settings(max_examples=4 * settings.default.max_examples)
@given(st.lists(st.sampled_from(SCRAPS), max_size=40).map("".join) | st.text(max_size=60))
def test_any_text_is_read(text):
    for document in read_shell(text, "f").documents:
        if document.at.line < 1 or document.at.column < 1:
            pytest.fail(f"{document} has no place")


@pytest.mark.parametrize(
    "scrap", ["$(", "`", "'", '"', "${", "(", "<<E ", "\\", "$'", "a=(", "docker run $( "]
)
def test_a_long_hostile_text_ends_soon(scrap):
    begin = time.monotonic()
    read_shell(scrap * 5000, "f")
    read_shell("docker run " + scrap * 5000 + " img", "f")
    assert time.monotonic() - begin < 20


def test_far_too_many_commands_are_a_problem():
    reading = read_shell("x\n" * 30000, "f")
    assert reading.problems[0].at.line == 10000
