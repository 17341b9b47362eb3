# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What kind of input a text is, by its name or else by what it says, and its reader. Pure.

A kind ``x`` is read by ``read_x`` of the file ``x.py`` beside this one, which is imported when the
first text of that kind is met: the command must start quickly. A reader takes the text and the
name of the file, and where it can follow references (``extends``, ``imports``) a ``read_file``.
"""

from __future__ import annotations

import importlib
import inspect
import posixpath
import re
from collections.abc import Callable, Mapping
from types import ModuleType

from ..model import Position, Problem, Reading
from .embedded import MARKDOWN, Piece, pieces

# Pure-Python PyYAML needs 2.6 s and 95 MB per MB of text.
LIMIT_BYTES = 2 * 1024 * 1024
# How many characters decide the kind.
_LOOKED_AT = 256 * 1024
# A template is no file of its kind yet: braces stand where YAML wants a value or a key.
_TEMPLATE = re.compile(r"\{%|^[ \t]*(- )?\{\{|:\s+\{\{|^[\w ./-]{0,80}\{\{", re.MULTILINE)

# ytt's marks stand in what YAML takes for comments and for text.
_YTT = re.compile(r"^[ \t]*#@[ \t]|\(@=? ", re.MULTILINE)

# Kind to what it is, in words for people. The order is that of the documentation.
KINDS: Mapping[str, str] = {
    "shell": "commands: docker run and others, in scripts and as pasted lines",
    MARKDOWN: "Markdown, of which the code blocks are read",
    "compose": "Compose files",
    "daemon_json": "the Docker daemon's daemon.json",
    "unit": "systemd units, slices and drop-ins",
    "containerd_toml": "containerd's config.toml",
    "toolkit_toml": "the NVIDIA Container Toolkit's config.toml",
    "cdi_spec": "CDI specifications",
    "oci_hooks": "OCI hooks: a runtime's config.json, podman's hooks.d",
    "kubernetes": "Kubernetes manifests and the GPU operator's values",
    "ansible": "Ansible plays, tasks and variables",
    "env_file": "files of environment variables",
    "cmdline": "kernel command lines",
    "sysctl": "sysctl settings",
    "apt_sources": "apt sources",
    "irqbalance": "irqbalance's settings",
    "dump": "output of dmesg, lspci, nvidia-smi and apt, and logs",
}

# Other words for a kind, as field cases and examples write them.
ALIASES: Mapping[str, str] = {
    "docker_run": "shell",
    "command": "shell",
    "systemd_unit": "unit",
    "dockerd_flags": "unit",
    "nvidia_runtime_toml": "toolkit_toml",
    "k8s_yaml": "kubernetes",
    "k8s": "kubernetes",
    "ansible_task": "ansible",
    "ansible_vars": "ansible",
    "irqbalance_conf": "irqbalance",
    "apt_output": "dump",
    "dmesg": "dump",
    "lspci": "dump",
    "nvidia_smi_topo": "dump",
    "nvidia_smi_xml": "dump",
    "env": "env_file",
}

# Names that settle the kind; matched on the path in lower case with "/" in front.
_NAMES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("cdi_spec", r"/cdi/[^/]+\.(ya?ml|json)$"),
        ("oci_hooks", r"/hooks\.d/[^/]+\.json$"),
        ("daemon_json", r"/([\w.-]*[.-])?daemon([.-](?!set)[\w.-]+)?\.json$"),
        ("unit", r"\.(service|slice|scope|socket)(\.d/[^/]+\.conf)?$"),
        ("toolkit_toml", r"/nvidia-container-(runtime|toolkit)(/config)?\.toml$"),
        ("containerd_toml", r"/containerd/([^/]+/)*[^/]+\.toml$|/containerd[\w.-]*\.toml$"),
        ("cmdline", r"/(proc/|kernel/)?cmdline(\.txt|\.d/[^/]+)?$|/default/grub(\.d/[^/]+)?$"),
        ("sysctl", r"/sysctl\.conf$|/sysctl\.d/[^/]+\.conf$"),
        ("irqbalance", r"/irqbalance(\.(conf|env))?$"),
        ("apt_sources", r"/sources\.list$|/sources\.list\.d/[^/]+\.(list|sources)$|\.sources$"),
        ("env_file", r"/\.env(\.[\w.-]+)?$|/[^/]+\.env$"),
        ("shell", r"\.(sh|bash)$"),
        (MARKDOWN, r"\.(md|mdx|markdown)$"),
        ("dump", r"\.log$|/(dmesg|lspci|nvidia-smi)[^/]*\.(txt|xml)$|/dmesg$"),
    )
)
_COMPOSE_NAME = re.compile(r"/([\w.-]*[.-])?compose([.-][\w.-]+)?\.ya?ml$")
_ANSIBLE_NAME = re.compile(r"/(group_vars|host_vars|playbooks|tasks|handlers)/.*\.ya?ml$")
# Names that may be one of several kinds, or none: the text decides.
_CANDIDATES = re.compile(r"\.(ya?ml|toml)$")
# Read when given by name only: their commands are examples, and often bad ones on purpose.
_NOT_WALKED = (MARKDOWN, "dump")
# Not looked for in code blocks: the values there are for show, and so are the errors.
_NOT_EMBEDDED = (MARKDOWN, "dump", "env_file")


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.MULTILINE)


_SHEBANG = re.compile(r"#!.*\b(sh|bash|dash|zsh|ksh)\b")
_COMPOSE = _pattern(r"^services:[ \t]*(#.*)?\n([ \t]*(#.*)?\n)*[ \t]+[\w.\"'-]+[ \t]*:")
_KUBERNETES = (_pattern(r"^apiVersion\s*:|\"apiVersion\"\s*:"), _pattern(r"^kind\s*:|\"kind\"\s*:"))
_POD_PART = _pattern(
    r"^(env|resources|containers|volumes|tolerations|nodeSelector):[ \t]*(#.*)?\n"
    r"[ \t]*(- name:|limits:|requests:|nvidia\.com/)|^securityContext:"
)
_OPERATOR = _pattern(
    r"^(devicePlugin|toolkit|migManager|dcgmExporter|gfd|cdi|driver|operator|sandboxWorkloads"
    r"|nodeStatusExporter|validator|gdrcopy|mig):[ \t]*(#.*)?$"
)
# Keys that only dockerd has: "labels", "debug" or "dns" alone are in anybody's JSON.
_DAEMON_KEY = re.compile(
    r"\"(default-runtime|data-root|exec-opts|storage-driver|live-restore|insecure-registries"
    r"|registry-mirrors|node-generic-resources|cdi-spec-dirs|userns-remap|log-driver|log-opts"
    r"|default-(address-pools|ulimits|cgroupns-mode|shm-size)|cgroup-parent|containerd-snapshotter"
    r"|(max-concurrent|shutdown)-[\w-]+)\"\s*:"
    r"|\"runtimes\"\s*:\s*\{\s*(\}|\"[\w.-]+\"\s*:\s*\{\s*\"(path|runtimeArgs|args|runtimeType)\")"
    r"|\"features\"\s*:\s*\{[^{}]*\"(cdi|buildkit)\"|\"hosts\"\s*:\s*\[\s*\"(tcp|unix|fd|npipe)://"
)
_OCI_HOOKS = re.compile(
    r"\"(prestart|createRuntime|createContainer|startContainer|poststart|poststop)\"\s*:\s*\["
    r"|\"stages\"\s*:\s*\[\s*\"(prestart|create|start|post)|\"ociVersion\"\s*:"
)
_ANSIBLE = _pattern(
    r"^-[ \t]+(name|hosts|block|when|import_\w+|include_\w+|register|become|vars"
    r"|(ansible|community|containers|steadygpu|kubernetes)\.[\w.]+)[ \t]*:"
    r"|^(ansible_\w+|become_\w+|nvidia_\w+|docker_\w+):"
)
_PLAY = re.compile(r"(\ufeff?---[ \t]*\n|[ \t]*(#.*)?\n)*-[ \t]+[\w.]+[ \t]*:")
_SYSCTL_LINE = re.compile(
    r"-?(kernel|vm|net|fs|dev|abi|user|debug)[./][\w./*-]+\s*=.*|-?[\w./]+\s*="
)
_ENV_LINE = re.compile(r"(export\s+)?[A-Za-z_]\w*=.*")
_CMDLINE = re.compile(
    r"\b(BOOT_IMAGE=|GRUB_CMDLINE_LINUX|root=\S+|isolcpus=|nohz_full=|rcu_nocbs=|(intel|amd)_iommu="
    r"|iommu=|cgroup_disable=|systemd\.unified_cgroup_hierarchy)"
)
_COMMAND = _pattern(
    r"^[ \t]*([$#>%][ \t]+)?(\w+=\S*[ \t]+)*"
    r"((sudo|time|env|exec)[ \t]+(-\S+[ \t]+|\w+=\S*[ \t]+)*)?"
    r"([\w./-]*/)?(docker|dockerd|docker-compose|podman|nerdctl|nvidia-[\w-]+|apt|apt-get|dnf|yum"
    r"|systemctl|kubectl|crictl|ctr|numactl|taskset|setpci|modprobe|helm|jq|sysctl|containerd|runc"
    r"|nvidia-docker2?|rocm-smi|amd-smi|crun|export|echo|curl|tee)([ \t]|$)"
)
_DUMP = _pattern(
    r"\bNVRM: |\bXid \(PCI|<nvidia_smi_log|<gpu id=\"|\bACS(Cap|Ctl):|^E: |^W: (GPG|Failed)"
    r"|^[ \t]*GPU0[ \t]+(X|GPU1)|^\[ *\d+\.\d+\] |^The following held packages"
    r"|^([0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] [A-Z]"
)
_TOOLKIT = _pattern(
    r"^[ \t]*\[nvidia-c(ontainer-(cli|runtime)|tk)"
    r"|^(accept-nvidia-visible-devices|disable-require|supported-driver-cap|swarm-res)[\w-]*[ ]*="
)
_DEB_LINE = re.compile(r"deb(-src)?\s+(\[[^\]]*\]\s*)?\S+:/?/?\S")
_SECTION = _pattern(r"^\[(Unit|Service|Slice|Install|Scope|Socket|Container)\][ \t]*$")


class UnknownKindError(ValueError):
    """A kind was named that there is not; the message names those there are."""


def named(word: str) -> str:
    """The kind that ``word`` means; raises UnknownKindError."""
    kind = ALIASES.get(word.replace("-", "_"), word.replace("-", "_"))
    if kind not in KINDS:
        raise UnknownKindError(f"no kind {word!r}; there are: {', '.join(KINDS)}")
    return kind


def by_name(file: str) -> str | None:
    """The kind that a file's name settles; None where the text must decide."""
    path = _path(file)
    for kind, pattern in _NAMES:
        if pattern.search(path):
            return kind
    return "compose" if _COMPOSE_NAME.search(path) else None


def walked(file: str) -> bool:
    """Is a file of this name read when its directory is given?"""
    kind = by_name(file)
    if kind is None:
        return bool(_CANDIDATES.search(_path(file)))
    return kind not in _NOT_WALKED


def detect(text: str, file: str = "") -> str | None:
    """The kind of ``text`` that stands in ``file``; None when it is none we know."""
    kind = by_name(file) if file else None
    text = text[:_LOOKED_AT].replace("\r\n", "\n")
    # dockerd's file and a Kubernetes manifest may both be called daemon.json, a script *.service,
    # and a play that starts services docker-compose.yml.
    other = kind == "daemon_json" and _all(_KUBERNETES, text)
    other = other or (kind == "compose" and bool(_PLAY.match(text)))
    if kind is not None and not other:
        return kind
    path = _path(file)
    if path.endswith((".yaml", ".yml")):
        return _yaml_kind(text, path)
    if path.endswith(".toml"):
        return _toml_kind(text)
    return _any_kind(text, path)


def _any_kind(text: str, path: str) -> str | None:
    if _SHEBANG.match(text):
        return "shell"
    if re.search(r"^```|^~~~", text, re.MULTILINE):
        return MARKDOWN
    if _looks_json(text):
        return _json_kind(text)
    if _DUMP.search(text):
        return "dump"
    return (
        _toml_kind(text)
        or ("unit" if _SECTION.search(text) else None)
        or _line_kind(text)
        or _yaml_kind(text, path)
        or ("shell" if _COMMAND.search(text) else None)
    )


def _looks_json(text: str) -> bool:
    return text.lstrip("\ufeff \t\r\n")[:1] == "{" and "{%" not in text[:200]


def _json_kind(text: str) -> str | None:
    if re.search(r"\"cdiVersion\"\s*:", text):
        return "cdi_spec"
    if _all(_KUBERNETES, text):
        return "kubernetes"
    if _OCI_HOOKS.search(text):
        return "oci_hooks"
    return "daemon_json" if _DAEMON_KEY.search(text) else None


def _toml_kind(text: str) -> str | None:
    if _TOOLKIT.search(text):
        return "toolkit_toml"
    containerd = (
        r"^\s*\[\s*(plugins\b|stream_processors|proxy_plugins)|^disabled_plugins\s*=|^imports"
    )
    found = re.search(containerd, text, re.MULTILINE) or "io.containerd." in text
    return "containerd_toml" if found and re.search(r"^\s*[\w\"'.-]+\s*=", text, re.M) else None


def _line_kind(text: str) -> str | None:
    """Kinds that are lists of settings or of lines, told by every line or by a telling one."""
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and line[0] not in "#;"]
    if not lines:
        return None
    if any(line.startswith("IRQBALANCE_") for line in lines):
        return "irqbalance"
    if all(_DEB_LINE.match(line) for line in lines) or re.match(r"Types:\s*deb", lines[0]):
        return "apt_sources"
    if any(line.startswith("GRUB_CMDLINE") for line in lines):
        return "cmdline"
    if all(_SYSCTL_LINE.fullmatch(line) for line in lines) and "." in lines[0].partition("=")[0]:
        return "sysctl"
    if len(lines) == 1 and _CMDLINE.search(lines[0]) and not _COMMAND.search(lines[0]):
        return "cmdline"
    variables = all(_ENV_LINE.fullmatch(line) for line in lines)
    return "env_file" if variables and not _COMMAND.search("\n".join(lines)) else None


def _yaml_kind(text: str, path: str) -> str | None:
    if re.search(r"^cdiVersion\s*:", text, re.MULTILINE):
        return "cdi_spec"
    if _all(_KUBERNETES, text):
        return "kubernetes"
    if _COMPOSE.search(text):
        return "compose"
    if len({found[1] for found in _OPERATOR.finditer(text)}) >= 2:
        return "kubernetes"
    if _POD_PART.search(text):
        return "kubernetes"
    return "ansible" if _ANSIBLE.search(text) or _ANSIBLE_NAME.search(path) else None


def _all(patterns: tuple[re.Pattern[str], ...], text: str) -> bool:
    return all(pattern.search(text) for pattern in patterns)


def _path(file: str) -> str:
    return "/" + posixpath.normpath(file.replace("\\", "/")).lstrip("/").lower() if file else ""


def is_template(text: str) -> bool:
    """Does it have the marks of Jinja or Helm where a value or key must be?"""
    return bool(_TEMPLATE.search(text))


def is_ytt(text: str) -> bool:
    """Is it a template of ytt, which is YAML and yet no file of its kind?"""
    return bool(_YTT.search(text))


def refused(data: bytes) -> str | None:
    """Why these bytes are not read at all; None when they are text of a bearable size."""
    if len(data) > LIMIT_BYTES:
        return f"larger than {LIMIT_BYTES // (1024 * 1024)} MiB; such a file is not read"
    if b"\0" in data:
        return "a binary file, not text"
    return None


ReadFile = Callable[[str], "str | None"]
ListFiles = Callable[[str], "list[str]"]


def read(
    text: str,
    file: str,
    kind: str | None = None,
    read_file: ReadFile | None = None,
    list_files: ListFiles | None = None,
) -> Reading:
    """The documents in ``text``, whose name is ``file``, and what could not be read of it.

    ``kind`` is a key of :data:`KINDS`, or None to detect it. ``read_file`` gives the text of a
    file that this one refers to, or None where it cannot be had; ``list_files`` the names of
    those that a glob pattern means.
    """
    kind = kind or detect(text, file)
    if kind is None:
        said = "not a kind of file that is judged here; if it is one, name it with --kind"
        said = said if text.strip() else "empty: there is nothing to judge"
        return Reading(problems=(Problem(Position(file), said),))
    helpers = {"read_file": read_file, "list_files": list_files}
    documents: list[object] = []
    problems: list[Problem] = []
    if kind != MARKDOWN:
        reading = _call(kind, text, file, helpers)
        documents += reading.documents
        problems += reading.problems
    if kind in (MARKDOWN, "shell"):
        for piece in pieces(text, kind):
            documents += _piece(piece, file, helpers, kind)
    return Reading(tuple(documents), tuple(problems))


def _piece(
    piece: Piece, file: str, helpers: Mapping[str, object], around: str
) -> tuple[object, ...]:
    # What a code block lacks of its kind is an author's business: only what is there is judged.
    kind = piece.kind or detect(piece.text.lstrip("\n"), piece.name)
    if kind is None or kind in _NOT_EMBEDDED:
        return ()
    documents = _call(kind, piece.text, file, helpers).documents
    if around == MARKDOWN and kind == "compose":
        documents = tuple(doc for doc in documents if not getattr(doc, "empty", False))
    return documents


def _call(kind: str, text: str, file: str, helpers: Mapping[str, object]) -> Reading:
    function = getattr(_module(kind), f"read_{kind}")
    taken = inspect.signature(function).parameters
    wanted = {name: one for name, one in helpers.items() if one is not None and name in taken}
    reading: Reading = function(text, file, **wanted)
    return reading


def _module(kind: str) -> ModuleType:
    return importlib.import_module(f"{__package__}.{kind}")
