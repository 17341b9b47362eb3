#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: apt_source
short_description: Name a package repository to apt, with its key and without contradiction
version_added: "0.1.0"
description:
  - Writes C(/etc/apt/sources.list.d/steadygpu-NAME.sources) with C(Signed-By), and the key beside
    the host's others in C(/etc/apt/keyrings).
  - Finds entries in other files that name the same repository, since two entries for one address
    with two keys stop apt altogether. It refuses and names them, or with O(replace) switches off
    exactly these entries where they stand.
  - Needs no Python library on the host. Does not read the package lists anew.
  - Passwords belong into C(/etc/apt/auth.conf.d), not into O(uris); one in there is not shown.
options:
  name:
    description:
      - Name of the entry, a part of the file's name.
    type: str
    required: true
  state:
    description:
      - V(absent) removes the entry and its key, and switches on again what O(replace) has switched
        off for it.
    type: str
    choices: [present, absent]
    default: present
  uris:
    description:
      - Addresses of the repository. V($(ARCH\)) stands for the architecture.
    type: list
    elements: str
    default: []
  suites:
    description:
      - Suites, V(/) for a flat repository.
    type: list
    elements: str
    default: [/]
  components:
    description:
      - Components; none for a flat repository.
    type: list
    elements: str
    default: []
  architectures:
    description:
      - Architectures, by default the host's.
    type: list
    elements: str
    default: []
  key:
    description:
      - The public key as armored text.
    type: str
    default: ""
  key_file:
    description:
      - The public key as a file of the host, if O(key) is empty.
    type: path
  key_url:
    description:
      - Where the host gets the armored public key from, if O(key) and O(key_file) are empty.
      - It is fetched once, and again when the one that is there does not have O(key_sha256). A
        proxy is taken from the environment. In check mode it is not fetched.
    type: str
    default: ""
  key_sha256:
    description:
      - SHA-256 of the key file, which for O(key) is the text with one newline at its end.
    type: str
    default: ""
  competing:
    description:
      - Patterns of other addresses that offer the same packages, such as those of a former layout
        of the repository. Entries that name them count as naming the repository.
    type: list
    elements: str
    default: []
  replace:
    description:
      - Whether to switch off entries of others that name the repository.
      - "A line becomes a comment and a stanza gets C(Enabled: no), with a mark by which
        O(state=absent) finds them."
    type: bool
    default: false
  pins:
    description:
      - Versions by package name that apt prefers to all others, by a file in
        C(/etc/apt/preferences.d). Without any there is no such file.
    type: dict
    default: {}
extends_documentation_fragment:
  - steadygpu.host.attributes
attributes:
  platform:
    platforms: debian
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: The toolkit comes from a mirror of ours
  steadygpu.host.apt_source:
    name: toolkit
    uris: [https://mirror.example.com/libnvidia-container/stable/deb/amd64]
    key: "{{ lookup('ansible.builtin.file', 'files/toolkit.asc') }}"
    competing: ["https://nvidia.github.io/*"]
    replace: true

- name: What others named is in force again
  steadygpu.host.apt_source:
    name: toolkit
    state: absent
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be done, for a person to read.
  returned: success
  type: list
  elements: str
  sample: [switch off https://a.example.com/deb in /etc/apt/sources.list.d/a.list]
"""

import re
from dataclasses import replace

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.urls import open_url

from ansible_collections.steadygpu.host.plugins.module_utils.atomic import read_text
from ansible_collections.steadygpu.host.plugins.module_utils.package_sets import source_files
from ansible_collections.steadygpu.host.plugins.module_utils.package_sets.model import RefusedError
from ansible_collections.steadygpu.host.plugins.module_utils.secrets import by_key, redact


def with_key(source: source_files.Source, url: str, check_mode: bool) -> source_files.Source:
    """The source with the key from its address, or with the one that is there already.

    Raises RefusedError when it cannot be had.
    """
    if not url or not source.present:
        return source
    known = read_text(source.key_path)
    if known is not None and source_files.has_digest(known, source.key_sha256):
        return replace(source, key=known)
    if check_mode:
        return replace(source, key_file=source.key_path, key_sha256="")
    try:
        with open_url(url, timeout=60) as answer:
            text = answer.read(1 << 20).decode("utf-8", "replace")
    except (OSError, ValueError) as error:
        raise RefusedError(
            f"the key could not be fetched from {url}: {error}. Give it as text in key, or its "
            "file on the host in key_file"
        ) from error
    return replace(source, key=text)


def shown(change: source_files.Change) -> dict[str, str]:
    """Ansible's diff of one file, without passwords in addresses."""
    before, after = redact.pair(change.path, change.before or "", change.after or "")
    return {
        "before_header": change.path,
        "after_header": change.path,
        "before": before,
        "after": after,
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "uris": {"type": "list", "elements": "str", "default": []},
            "suites": {"type": "list", "elements": "str", "default": ["/"]},
            "components": {"type": "list", "elements": "str", "default": []},
            "architectures": {"type": "list", "elements": "str", "default": []},
            # A public key is no secret.
            "key": {"type": "str", "default": "", "no_log": False},
            "key_file": {"type": "path", "no_log": False},
            "key_url": {"type": "str", "default": "", "no_log": False},
            "key_sha256": {"type": "str", "default": "", "no_log": False},
            "competing": {"type": "list", "elements": "str", "default": []},
            "replace": {"type": "bool", "default": False},
            "pins": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    options = module.params
    secrets = by_key.secrets_of(options["uris"], options["key_url"])
    module.no_log_values.update(by_key.telling(secrets))
    if re.fullmatch(r"[a-z0-9][a-z0-9_.-]*", options["name"]) is None:
        module.fail_json(
            msg=f"name is {options['name']!r}; it may have small letters, digits and _.- only, "
            "since apt reads no file of another name"
        )
    present = options["state"] == "present"
    if present and not options["uris"]:
        module.fail_json(msg="uris is empty; name at least one address of the repository")
    lists = ("uris", "suites", "components", "architectures", "competing")
    source = source_files.Source(
        name=str(options["name"]),
        **{key: tuple(map(str, options[key])) for key in lists},
        key=str(options["key"]),
        key_file=str(options["key_file"] or ""),
        key_sha256=str(options["key_sha256"]),
        replace=options["replace"],
        pins={str(name): str(version) for name, version in options["pins"].items()},
        present=present,
    )
    try:
        if not source.key and not source.key_file:
            source = with_key(source, str(options["key_url"]), module.check_mode)
        changes = source_files.plan(source)
        if not module.check_mode:
            source_files.carry_out(changes)
    except RefusedError as error:
        module.fail_json(msg=by_key.clean(str(error), secrets))
    except OSError as error:
        module.fail_json(msg=f"apt's files could not be read or written: {error}")
    module.exit_json(
        changed=bool(changes),
        actions=[by_key.clean(change.told, secrets) for change in changes],
        diff=[shown(change) for change in changes],
    )


if __name__ == "__main__":
    main()
