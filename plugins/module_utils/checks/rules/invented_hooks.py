# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on OCI hooks: what runtimes do not do for them, and flags that no tool has. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..documents.oci_hooks import OciHooks
from ..host import HostView
from ..model import Hit, Severity
from ..registry import rule

_SPEC = "opencontainers/runtime-spec config.md, POSIX-platform hooks"
_TOOL = re.compile(r"(^|/)nvidia-(container-[\w-]+|ctk|cdi-hook)$")
_INVENTED = ("--no-op", "--require-gpu-uuid", "--require-uvm", "--set-gpu-opts", "--load-kmods")


@rule(
    "oci-hook-variable",
    "A variable in a hook's arguments is not replaced",
    Severity.WARNING,
    reads=OciHooks,
    reason="No shell stands between the runtime and the hook, so the program gets the text "
    "${CONTAINER_ID} itself. The container's id and pid come as JSON on its standard input.",
    fix="Read .id and .pid of the state from standard input.",
    sources=(_SPEC,),
    row="38",
)
def oci_hook_variable(doc: OciHooks, host: HostView) -> Iterator[Hit]:
    """A variable in a hook's arguments is not replaced."""
    for hook in doc.hooks:
        for word in (*hook.args, *hook.env):
            found = re.search(r"\$\{?(\w+)", word.value)
            if found:
                yield Hit(word.at, f"The hook gets the variable {found.group(1)} as text.")


@rule(
    "oci-hook-prestart",
    "The stage prestart is deprecated",
    Severity.INFO,
    reads=OciHooks,
    reason="The specification keeps prestart for old hooks and runs it before createRuntime, in "
    "the runtime's namespaces.",
    fix="Use createRuntime for work on the host's side, createContainer for work in the "
    "container's mount namespace; with Docker, carry it in a CDI specification.",
    sources=(_SPEC,),
    row="20, 36",
)
def oci_hook_prestart(doc: OciHooks, host: HostView) -> Iterator[Hit]:
    """It still works, so a note."""
    for hook in doc.hooks:
        if hook.stage.value.lower() == "prestart":
            program = hook.path.value if hook.path else "a hook"
            yield Hit(hook.stage.at, f"{program} runs at prestart.")


@rule(
    "oci-hook-stage-unknown",
    "A stage that hooks do not have",
    Severity.ERROR,
    reads=OciHooks,
    reason="Runtimes know prestart, createRuntime, createContainer, startContainer, poststart and "
    "poststop; another name is ignored or refused.",
    fix="Write one of these names, in this spelling.",
    sources=(_SPEC,),
)
def oci_hook_stage_unknown(doc: OciHooks, host: HostView) -> Iterator[Hit]:
    """A typing error means that the hook never runs."""
    known = ("prestart", "createRuntime", "createContainer", "startContainer", "poststart")
    for hook in doc.hooks:
        if hook.stage.value not in (*known, "poststop"):
            yield Hit(hook.stage.at, f"The stage is {hook.stage.value}.")


@rule(
    "oci-hook-environment",
    "A hook's environment is not the container's",
    Severity.WARNING,
    reads=OciHooks,
    reason="env of a hook is the environment of the hook's own process; the container's is "
    "process.env. NVIDIA's hook reads the container's, so the variable has no effect here.",
    fix="Set the variable for the container: -e, environment, or env of a CDI specification.",
    sources=(_SPEC, "NVIDIA/nvidia-container-toolkit cmd/nvidia-container-runtime-hook"),
    row="39",
)
def oci_hook_environment(doc: OciHooks, host: HostView) -> Iterator[Hit]:
    """Variables that belong into a container."""
    for hook in doc.hooks:
        for word in hook.env:
            name = word.value.partition("=")[0]
            if name.startswith(("NVIDIA_", "CUDA_VISIBLE", "HABANA_VISIBLE", "ROCR_VISIBLE")):
                yield Hit(word.at, f"env of the hook has {name}.")


@rule(
    "oci-hook-invented-flag",
    "A flag that NVIDIA's tools do not have",
    Severity.ERROR,
    reads=OciHooks,
    reason="The toolkit's programs end with an error on an unknown flag, and then no container "
    "with this hook starts.",
    fix="Leave it out: the toolkit loads nvidia_uvm itself (load-kmods in its config.toml), and "
    "whether a claim fits the host is asked with steadygpu claim check.",
    sources=("NVIDIA/nvidia-container-toolkit cmd/", "NVIDIA/libnvidia-container src/cli"),
    row="158, 166",
)
def oci_hook_invented_flag(doc: OciHooks, host: HostView) -> Iterator[Hit]:
    """An error for the toolkit's programs; a script of one's own may have such a flag."""
    for hook in doc.hooks:
        tool = _TOOL.search(hook.path.value if hook.path else "")
        for word in hook.args[1:]:
            if word.value.partition("=")[0] in _INVENTED:
                flag = word.value.partition("=")[0]
                severity = None if tool else Severity.INFO
                yield Hit(word.at, f"The hook gets {flag}.", severity=severity)
