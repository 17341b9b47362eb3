# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on Ansible variables: becoming root, driver branches, secrets. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...secrets.shapes import Secret, classify, issuer
from ...versions import at_least
from ..documents.ansible_tasks import AnsibleFile
from ..host import HostView
from ..model import Hit, Severity
from ..registry import rule

_USERS = ("ansible_become_user", "become_user", "become_username")
_BRANCH_OF = re.compile(r"^nvidia-[a-z-]+?-(\d{3})(-|$|:)")
_BRANCH_IN_TEXT = re.compile(r"\bnvidia-[a-z-]{1,40}?-(\d{3})\b")
_BRANCHES = ("nvidia_driver_branch", "nvidia_driver_ubuntu_branch", "nvidia_driver_rhel_branch")
_UNSAFE = ("{{", "$ANSIBLE_VAULT", "!vault")


@rule(
    "sudo-rs-become",
    "Becoming root through sudo-rs",
    Severity.WARNING,
    reads=AnsibleFile,
    reason="Ubuntu 25.10 and newer ship sudo-rs, whose prompt differs from the one that older "
    "releases of ansible-core wait for: Timeout waiting for privilege escalation prompt.",
    fix="Set ansible_become_exe: sudo.ws, use an ansible-core that knows sudo-rs, or give the user "
    "sudo without a password.",
    sources=("ansible/ansible#86441", "ansible/ansible#86849"),
    cases=("PA-006",),
)
def sudo_rs(file: AnsibleFile, host: HostView) -> Iterator[Hit]:
    """Sudo on a host that is known to have sudo-rs, or of which a comment says so."""
    method = file.values.get("ansible_become_method") or file.values.get("become_method")
    become = file.values.get("ansible_become") or file.values.get("become")
    given = method or become
    if given is None or given.value not in ("sudo", "true", "True", "yes"):
        return
    if "ansible_become_exe" in file.values or "become_exe" in file.values:
        return
    words = r"sudo-rs|ubuntu 25\.10|ubuntu 26\."
    noted = any(re.search(words, comment.value, re.I) for comment in file.comments)
    name, _blank, release = (host.os or "").partition(" ")
    if noted or (name == "ubuntu" and at_least(release, "25.10")):
        seen = f"{given.spelled} is {given.value}, and the host has sudo-rs."
        yield Hit(given.at, seen)
    elif method is not None and host.os is None:
        seen = f"{given.spelled} is {given.value}; on Ubuntu 25.10 and newer sudo is sudo-rs."
        yield Hit(given.at, seen, severity=Severity.INFO, assumed=("the host's release",))


@rule(
    "become-user-empty",
    "An empty user to become",
    Severity.WARNING,
    reads=AnsibleFile,
    reason="An empty name is a name: tasks run as the user who logged in although become is on. "
    "In AWX the field of a credential counts as set when it is empty.",
    fix="Write root, or leave the variable out.",
    sources=("ansible/awx#4579",),
    cases=("PA-007",),
)
def become_user_empty(file: AnsibleFile, host: HostView) -> Iterator[Hit]:
    """``become_username: ''``."""
    for name in _USERS:
        given = file.values.get(name)
        if given is not None and not given.value.strip():
            yield Hit(given.at, f"{name} is empty.", f"Write {name}: root.")


@rule(
    "driver-branch-change",
    "Another driver branch than the one installed",
    Severity.ERROR,
    reads=AnsibleFile,
    reason="Packages of two branches of the NVIDIA driver conflict: apt answers 'held broken "
    "packages' until those of the old branch are removed.",
    fix="Remove the packages of the old branch in the same transaction, install the new ones and "
    "reboot.",
    sources=("NVIDIA/ansible-role-nvidia-driver#33", "NVIDIA/ansible-role-nvidia-driver#11"),
    cases=("PA-010",),
)
def driver_branch_change(file: AnsibleFile, host: HostView) -> Iterator[Hit]:
    """The branch wanted against the packages of the host, or those that a comment names."""
    for name in _BRANCHES:
        given = file.values.get(name)
        match = re.match(r"\d{3}", given.value) if given is not None else None
        if given is None or match is None:
            continue
        wanted = match.group(0)
        others = sorted(set(_installed(file, host)) - {wanted})
        if others:
            seen = f"{name} is {wanted}, and packages of {', '.join(others)} are installed."
            yield Hit(given.at, seen, commands=(f"apt-get purge 'nvidia-*-{others[0]}*'",))
        elif not host.packages:
            seen = f"{name} is {wanted}: packages of another branch have to be removed first."
            assumed = ("the packages of the host",)
            yield Hit(given.at, seen, severity=Severity.INFO, assumed=assumed)


def _installed(file: AnsibleFile, host: HostView) -> Iterator[str]:
    for package in host.packages:
        match = _BRANCH_OF.match(package)
        if match is not None:
            yield match.group(1)
    for comment in file.comments:
        if "installed" in comment.value.lower():
            yield from _BRANCH_IN_TEXT.findall(comment.value)


@rule(
    "become-terminal-sequences",
    "A login shell that speaks to the terminal",
    Severity.INFO,
    reads=AnsibleFile,
    reason="Where the login shell of the managed host queries the terminal, the answer stands in "
    "front of sudo's prompt and Ansible never sees it: Timeout waiting for privilege escalation "
    "prompt. Seen on Ubuntu 24.04.",
    fix="Keep terminal queries out of the start-up of shells that are not interactive; try with a "
    "user whose shell is plain.",
    sources=("ansible/ansible#84483", "ansible/ansible#84503"),
    cases=("PA-015",),
)
def terminal_sequences(file: AnsibleFile, host: HostView) -> Iterator[Hit]:
    """Become on Ubuntu 24.04, or where a comment says that the shell prints such sequences."""
    given = file.values.get("ansible_become") or file.values.get("become")
    if given is None or given.value not in ("true", "True", "yes"):
        return
    words = r"terminal (control|escape)|escape sequence|control sequence"
    noted = any(re.search(words, comment.value, re.I) for comment in file.comments)
    if noted or host.os == "ubuntu 24.04":
        yield Hit(given.at, f"{given.spelled} is {given.value}.")


@rule(
    "ansible-plain-secret",
    "A secret in plain text among variables",
    Severity.WARNING,
    reads=AnsibleFile,
    reason="Variables are kept in version control, and -v shows them.",
    fix="Encrypt it: ansible-vault encrypt_string, or take it from a lookup.",
    sources=("docs.ansible.com vault guide",),
    row="168",
)
def plain_secret(file: AnsibleFile, host: HostView) -> Iterator[Hit]:
    """A recognisable token, or a password to log in or to become root."""
    for name, given in file.values.items():
        if any(mark in given.value for mark in _UNSAFE):
            continue
        kind = classify(name, given.value)
        if kind is Secret.TOKEN:
            yield Hit(given.at, f"{name} is a {issuer(given.value)} in plain text.")
        elif kind is Secret.LITERAL:
            login = name.startswith(("ansible_", "become_"))
            severity = None if login else Severity.INFO
            yield Hit(given.at, f"{name} has its value in plain text.", severity=severity)
