# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where Debian packages come from: what this machine's own apt is configured to use.

The lab names no mirror. It takes the machine's (or STEADYGPU_LAB_MIRROR), with its proxy and
its certificates, for building an image and for apt inside the lab hosts.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

MIRROR_VARIABLE = "STEADYGPU_LAB_MIRROR"

# As seen from a guest on qemu's user network, the machine itself.
GUEST_VIEW_OF_MACHINE = "10.0.2.2"

_RELEASES = frozenset(
    [
        "bullseye",
        "bookworm",
        "trixie",
        "forky",
        "sid",
        "oldoldstable",
        "oldstable",
        "stable",
        "testing",
        "unstable",
    ]
)
# apt settings a guest must share to reach the same mirror.
_TRANSPORT_OPTION = re.compile(r"^Acquire::https?(::[\w.:-]+)?::(Proxy|CaInfo|Verify-Peer)$", re.I)
_DUMP_LINE = re.compile(r'^(\S+) "(.*)";$')


@dataclass(frozen=True)
class Source:
    """One binary package source of the machine."""

    uri: str
    suite: str
    components: tuple[str, ...]
    signed_by: str = ""


@dataclass(frozen=True)
class AptSetup:
    """How this machine reaches its Debian archive.

    ``mirror`` is a URL or None (the image builder's own default then applies); ``options`` are
    apt settings by name; ``certificates`` are paths of the authorities this machine trusts
    beyond the distribution's.
    """

    mirror: str | None
    options: tuple[tuple[str, str], ...]
    certificates: tuple[str, ...]


def parse_one_line(text: str) -> list[Source]:
    """The ``deb`` lines of a sources.list."""
    sources = []
    for line in text.splitlines():
        match = re.match(r"^\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s*([^#]*)", line)
        if match is None:
            continue
        options = dict(item.split("=", 1) for item in (match[1] or "").split() if "=" in item)
        signed_by = options.get("signed-by", "")
        sources.append(Source(match[2], match[3], tuple(match[4].split()), signed_by))
    return sources


def parse_deb822(text: str) -> list[Source]:
    """The enabled binary sources of a ``.sources`` file, one for each URI and suite."""
    sources = []
    for stanza in re.split(r"\n[ \t]*\n", text):
        fields: dict[str, str] = {}
        name = ""
        for line in stanza.splitlines():
            if line.startswith("#"):
                continue
            if line[:1] in " \t":
                fields[name] = fields.get(name, "") + " " + line.strip()
            elif ":" in line:
                name, value = line.split(":", 1)
                name = name.strip().lower()
                fields[name] = value.strip()
        enabled = fields.get("enabled", "yes").lower() not in ("no", "false", "0", "off")
        if not enabled or "deb" not in fields.get("types", "").split():
            continue
        for uri in fields.get("uris", "").split():
            for name_of_suite in fields.get("suites", "").split():
                components = tuple(fields.get("components", "").split())
                sources.append(
                    Source(uri, name_of_suite, components, fields.get("signed-by", "").strip())
                )
    return sources


def debian_mirror(sources: Iterable[Source]) -> str | None:
    """The URL of the full Debian archive among ``sources``, or None.

    Third parties also serve suites named like Debian's, with a component ``main``; only an
    archive whose path ends in ``/debian`` or that is signed by Debian's keyring is taken.
    """
    for source in sources:
        debian = source.uri.rstrip("/").endswith("/debian") or (
            "debian-archive" in source.signed_by
        )
        if (
            debian
            and source.suite in _RELEASES
            and "main" in source.components
            and source.uri.startswith(("http://", "https://"))
        ):
            return source.uri.rstrip("/")
    return None


def parse_transport_options(dump: str) -> list[tuple[str, str]]:
    """Proxy and TLS settings from the text of ``apt-config dump``."""
    options = []
    for line in dump.splitlines():
        match = _DUMP_LINE.match(line)
        if match and match[2] and _TRANSPORT_OPTION.match(match[1]):
            options.append((match[1], match[2]))
    return options


def seen_from_guest(url: str) -> str:
    """``url``, with this machine's loopback replaced by its address on the guest's network."""
    parts = urlsplit(url)
    if parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        return url
    user, at, _host = parts.netloc.rpartition("@")
    port = f":{parts.port}" if parts.port else ""
    return urlunsplit(parts._replace(netloc=user + at + GUEST_VIEW_OF_MACHINE + port))


def _expand_mirror_list(source: Source) -> list[Source]:
    """Cloud images name a file of mirrors, ``mirror+file:/path``: read it."""
    if not source.uri.startswith("mirror+file:"):
        return [source]
    try:
        with open("/" + source.uri[len("mirror+file:") :].lstrip("/"), encoding="utf-8") as lines:
            uris = [line.split()[0] for line in lines if line.strip() and line[0] != "#"]
    except OSError:
        return []
    return [Source(uri, source.suite, source.components, source.signed_by) for uri in uris]


def read_sources(etc_apt: str = "/etc/apt") -> list[Source]:
    """Every binary source apt would use, in apt's order of files."""
    sources: list[Source] = []
    names = [os.path.join(etc_apt, "sources.list")]
    names += sorted(glob.glob(os.path.join(glob.escape(etc_apt), "sources.list.d", "*")))
    for path in names:
        parse = {".list": parse_one_line, ".sources": parse_deb822}.get(os.path.splitext(path)[1])
        if parse is None or not os.path.isfile(path):
            continue
        with open(path, encoding="utf-8", errors="replace") as handle:
            for source in parse(handle.read()):
                sources.extend(_expand_mirror_list(source))
    return sources


def read_setup(environ: Mapping[str, str]) -> AptSetup:
    """How this machine reaches the archive; STEADYGPU_LAB_MIRROR in ``environ`` wins."""
    try:
        dump = subprocess.run(
            ["apt-config", "dump"], stdout=subprocess.PIPE, text=True, check=False
        ).stdout
    except FileNotFoundError:
        dump = ""
    options = dict(parse_transport_options(dump))
    for scheme in ("http", "https"):
        proxy = environ.get(scheme + "_proxy")
        if proxy:
            options.setdefault(f"Acquire::{scheme}::Proxy", proxy)
    certificates = sorted(glob.glob("/usr/local/share/ca-certificates/*.crt"))
    certificates += sorted(value for name, value in options.items() if name.endswith("CaInfo"))
    return AptSetup(
        mirror=environ.get(MIRROR_VARIABLE) or debian_mirror(read_sources()),
        options=tuple(sorted(options.items())),
        certificates=tuple(certificates),
    )


def reachable(setup: AptSetup, suite: str) -> bool:
    """Whether the mirror answers for ``suite``. True when there is no mirror to ask."""
    if setup.mirror is None:
        return True
    proxies = {
        scheme: value
        for scheme in ("http", "https")
        for name, value in setup.options
        if name.lower() == f"acquire::{scheme}::proxy" and value != "DIRECT"
    }
    trust = ssl.create_default_context()
    for path in setup.certificates:
        with contextlib.suppress(OSError, ssl.SSLError):
            trust.load_verify_locations(path)
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler(proxies), urllib.request.HTTPSHandler(context=trust)
    )
    try:
        with opener.open(f"{setup.mirror}/dists/{suite}/Release", timeout=10):
            return True
    except (urllib.error.URLError, OSError):
        return False


def guest_configuration(setup: AptSetup) -> str:
    """apt.conf text for a guest: the machine's transport, and nothing that only costs time."""
    lines = [
        "// A snapshot mirror, or a suite in preparation, has an expired Release file.",
        'Acquire::Check-Valid-Until "false";',
        'Acquire::Languages "none";',
        'APT::Install-Recommends "false";',
    ]
    for name, value in setup.options:
        if name.endswith("CaInfo"):
            # The authority itself joins the guest's trust store, see image.py.
            continue
        lines.append(f'{name} "{seen_from_guest(value)}";')
    return "\n".join(lines) + "\n"


def builder_options(setup: AptSetup) -> list[str]:
    """The same for the image builder, as apt option lines seen from this machine."""
    lines = ['Acquire::Check-Valid-Until "false"', 'Acquire::Languages "none"']
    lines.append('APT::Install-Recommends "false"')
    lines += [f'{name} "{value}"' for name, value in setup.options]
    return lines
