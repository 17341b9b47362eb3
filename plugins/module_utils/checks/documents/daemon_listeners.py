# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Addresses on which a daemon listens, and credentials in the address of a proxy. Pure."""

from __future__ import annotations

import ipaddress
import re

_CREDENTIALS = re.compile(r"[a-z][a-z0-9+.-]*://([^/@\s]+)@", re.IGNORECASE)
# What stands in the place of a secret in examples, and variables that somebody else fills.
_PLACEHOLDER = re.compile(r"[$%<{*]|^(x+|user(name)?(:(pass(word)?|x+|\*+))?)$", re.IGNORECASE)


def is_tcp(host: str) -> bool:
    """Is this ``--host`` a TCP address? A bare ``:2375`` or ``0.0.0.0:2375`` is one too."""
    if host.startswith(("unix:", "fd:", "npipe:", "/")) or not host:
        return False
    return host.startswith(("tcp:", "http:", "https:")) or bool(re.search(r":\d+$", host))


def is_loopback(host: str) -> bool:
    """Can only this host reach the address? ``tcp://`` without a host means localhost too."""
    address = host.partition("://")[2] if "://" in host else host
    name = address.rsplit(":", 1)[0] if re.search(r":\d*$", address) else address
    name = name.strip("[]")
    if name in ("", "localhost"):
        # dockerd's default for "tcp://" is localhost.
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def has_credentials(url: str) -> bool:
    """Does a URL carry a user with a password (or a token alone) that is no placeholder?"""
    found = _CREDENTIALS.match(url.strip())
    if found is None:
        return False
    return ":" in found.group(1) and not _PLACEHOLDER.search(found.group(1))
