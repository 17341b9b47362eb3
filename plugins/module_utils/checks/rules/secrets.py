# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on secrets in plain text: in files of variables and in what starts containers. Pure.

Names only, never values.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...secrets.shapes import Secret, classify, is_made, issuer
from ..documents.commands import Variable
from ..documents.container import ContainerSpec
from ..documents.env_files import EnvFile
from ..host import HostView
from ..model import Given, Hit, Severity
from ..registry import rule

_DOCKER = "docs.docker.com/compose/how-tos/use-secrets"
_PLAIN = "Whoever reads the file, its history or a build's output has the secret, and keeps it."


@rule(
    "plaintext-secret",
    "A secret in plain text in a file of variables",
    Severity.ERROR,
    reads=EnvFile,
    reason=_PLAIN + " A file of variables is copied into images, backups and logs of builds.",
    fix="Take the value out, issue a new one, and have it come from a secret store, from a file "
    "under /run/secrets, or encrypted (ENC(...), sops, Ansible Vault).",
    sources=(_DOCKER,),
    row="167, 168",
)
def plaintext_secret(file: EnvFile, host: HostView) -> Iterator[Hit]:
    """A recognisable token, or a value under the name of a secret."""
    for entry in file.entries:
        kind = classify(entry.name, entry.value.value)
        if kind is Secret.TOKEN:
            severity = Severity.WARNING if file.example else None
            seen = f"{entry.name} is a {issuer(entry.value.value)} in plain text."
            yield Hit(entry.value.at, seen, severity=severity)
        elif kind is Secret.LITERAL and not file.example:
            # What nobody generated is, in files that are shared, mostly there to be replaced.
            severity = None if is_made(entry.value.value) else Severity.INFO
            seen = f"{entry.name} has its value in plain text."
            yield Hit(entry.value.at, seen, severity=severity)


@rule(
    "env-default-credentials",
    "A well-known password in a file of variables",
    Severity.INFO,
    reads=EnvFile,
    reason="The value is the default of its software, known to everybody who reaches the port.",
    fix="Set another value before the port is reachable from other hosts.",
    sources=(_DOCKER,),
)
def env_default_credentials(file: EnvFile, host: HostView) -> Iterator[Hit]:
    """``POSTGRES_PASSWORD=postgres`` and its like."""
    for entry in file.entries:
        if classify(entry.name, entry.value.value) is Secret.DEFAULT and not file.example:
            yield Hit(entry.value.at, f"{entry.name} has a well-known default as its value.")


@rule(
    "env-file-quotes",
    "Quotes that docker run --env-file keeps",
    Severity.INFO,
    reads=EnvFile,
    reason="Compose takes the quotes off; docker run --env-file does not, and the runtime then "
    "looks for a GPU whose name has quotes in it.",
    fix="Write the value without quotes.",
    sources=("docker/cli pkg/kvfile", "docs.docker.com/reference/cli/docker/container/run"),
)
def env_file_quotes(file: EnvFile, host: HostView) -> Iterator[Hit]:
    """A variable that the NVIDIA runtime reads, in quotes."""
    for entry in file.entries:
        if entry.name.startswith(("NVIDIA_", "CUDA_VISIBLE")) and entry.raw[:1] in ("'", '"'):
            yield Hit(entry.value.at, f"{entry.name} has its value in quotes.")


@rule(
    "env-file-blanks",
    "Spaces around an equals sign",
    Severity.INFO,
    reads=EnvFile,
    reason="docker run --env-file refuses a name with a space after it, and keeps one before the "
    "value; a shell takes the name for a command. only Compose strips the spaces.",
    fix="Write NAME=value without spaces.",
    sources=("docker/cli pkg/kvfile",),
)
def env_file_blanks(file: EnvFile, host: HostView) -> Iterator[Hit]:
    """``NAME = value``."""
    for entry in file.entries:
        if entry.spaced:
            yield Hit(entry.value.at, f"{entry.name} has blanks around its equals sign.")


@rule(
    "literal-secret",
    "A secret in plain text in what starts a container",
    Severity.WARNING,
    reads=ContainerSpec,
    reason=_PLAIN + " docker inspect shows it as well.",
    fix="Name the variable only and let its value come from the environment, or use secrets: or a "
    "file that is not under version control.",
    sources=(_DOCKER,),
    row="168",
)
def literal_secret(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A recognisable token (a risk), or a value under the name of a secret (said only)."""
    for name, given in _own(spec):
        kind = classify(name, given.value)
        if kind is Secret.TOKEN:
            yield Hit(given.at, f"{name} is a {issuer(given.value)} in plain text.")
        elif kind is Secret.LITERAL:
            seen = f"{name} has its value in plain text."
            yield Hit(given.at, seen, severity=Severity.INFO)
    for word in spec.command:
        made_by = issuer(word.value)
        if made_by and word.at.file == spec.at.file:
            yield Hit(word.at, f"The command has a {made_by} in plain text.")


@rule(
    "default-credentials",
    "A well-known password",
    Severity.INFO,
    reads=ContainerSpec,
    reason="The value is the default of its software, known to everybody who reaches the port.",
    fix="Set another value before the port is reachable from other hosts.",
    sources=(_DOCKER,),
)
def default_credentials(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """``MINIO_SECRET_KEY: minioadmin`` and its like."""
    for name, given in _own(spec):
        if classify(name, given.value) is Secret.DEFAULT:
            yield Hit(given.at, f"{name} has a well-known default as its value.")


@rule(
    "script-secret",
    "A token in plain text in a script",
    Severity.WARNING,
    reads=Variable,
    reason=_PLAIN,
    fix="Take it from the environment of the caller or from a file that is not in the repository, "
    "and issue a new one.",
    sources=("OWASP, Secrets Management Cheat Sheet",),
    row="168",
)
def script_secret(variable: Variable, host: HostView) -> Iterator[Hit]:
    """``export HF_TOKEN=hf_…``: only what is recognisable."""
    made_by = issuer(variable.value)
    if made_by:
        yield Hit(variable.at, f"{variable.name} is a {made_by} in plain text.")


def _own(spec: ContainerSpec) -> Iterator[tuple[str, Given]]:
    # Variables of an env_file are judged where they stand, with that file.
    for name, given in spec.env.items():
        if given.at.file == spec.at.file:
            yield name, given
