# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sources lists that hold a web page, mirrors in motion, and two installers of a driver. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom

_LIST = "head -5 /etc/apt/sources.list.d/nvidia-container-toolkit.list; cat /etc/os-release"

HTML_LIST = Cause(
    id="apt-list-is-a-page",
    title="A web page was saved as the list of the repository",
    why="curl without -f saves what the server sends for an address that does not exist (a "
    "distribution without a directory of its own, an error page, a proxy's page).",
    proof=_LIST,
    shows="HTML, or '# Unsupported distribution!'",
    fix="Fetch the list again from the generic deb directory (stable/deb), with curl -f, and see "
    "that it holds a deb line.",
    commands=(
        "rm /etc/apt/sources.list.d/nvidia-container-toolkit.list",
        "apt-get update",
    ),
    sources=(
        "NVIDIA/libnvidia-container issue 360",
        "NVIDIA/nvidia-docker issue 1186",
        "NVIDIA/nvidia-container-toolkit issue 607",
    ),
    hints=(r"html|doctype|unsupported distribution|<", r"sources?\.list"),
)

_MALFORMED = Cause(
    id="apt-list-malformed",
    title="A line of the list is malformed",
    why="A deb line needs an address, a suite (or ./ or /) and components; deb822 files need the "
    "ending .sources.",
    proof="grep -rn . /etc/apt/sources.list.d/ | head -20",
    shows="the line that apt names",
    fix="Correct the line that the message names.",
    commands=("apt-get update",),
    sources=("sources.list(5)",),
    hints=(r"malformed",),
)

_MIRROR = Cause(
    id="apt-mirror-in-motion",
    title="The repository changes while it is read, or a cache serves old parts",
    why="Index and files belong together; a mirror that syncs or a proxy's cache breaks that.",
    proof="apt-get update -o Acquire::http::No-Cache=true 2>&1 | tail -5",
    shows="the error is gone without the cache, or later",
    fix="Try again later, clear apt's lists, or go past the cache.",
    commands=("rm -rf /var/lib/apt/lists/*", "apt-get update"),
    sources=("apt-secure(8)",),
    hints=(r"unexpected size|sync|hash",),
)

TWO_INSTALLERS = Cause(
    id="driver-two-installers",
    title="The driver came from the .run installer and from packages",
    why="Each overwrites files of the other and knows nothing of it; libraries and module end up "
    "of two releases.",
    proof="ls /var/log/nvidia-installer.log /usr/bin/nvidia-uninstall; dpkg -l | grep -c nvidia || "
    "rpm -qa | grep -c nvidia",
    shows="both an uninstaller and packages",
    fix="Remove one of them wholly (nvidia-uninstall, or purge the packages), then install from "
    "packages and reboot.",
    commands=("nvidia-uninstall", "apt-get purge '^nvidia-.*' '^libnvidia-.*'"),
    sources=("NVIDIA driver README, installation",),
    hints=(r"different installer|runfile|\.run",),
)

_DOWNGRADE = Cause(
    id="apt-downgrade-refused",
    title="apt does not go back to an older version without being told",
    why="Another branch of the driver, or a pin, asks for an older package than is installed.",
    proof="apt-cache policy nvidia-driver-550 libnvidia-container1; grep -rn Pin "
    "/etc/apt/preferences.d",
    shows="an installed version above the candidate",
    fix="Name all packages of the set with their versions and add --allow-downgrades; for another "
    "branch purge the old one first. Plan the reboot.",
    commands=("apt-get install --allow-downgrades PACKAGE=VERSION",),
    sources=("apt-get(8)",),
    hints=(r"downgrad",),
)

SYMPTOMS = (
    Symptom(
        id="apt-list-unreadable",
        title="apt cannot read a list of sources",
        patterns=(
            r"Type '.{1,40}' is not known on line \d+ in source list",
            r"Malformed (entry|line|stanza) \d+ in (list|sources) file",
            r"The list of sources could not be read",
            r"#? ?Unsupported distribution!",
        ),
        causes=(HTML_LIST, _MALFORMED),
        tell_apart=_LIST,
        sources=("sources.list(5)",),
    ),
    Symptom(
        id="apt-mirror",
        title="apt's index and files do not belong together",
        patterns=(
            r"File has unexpected size",
            r"Hash Sum mismatch",
            r"Mirror sync in progress",
            r"Failed to fetch .{1,200}404 +Not Found",
        ),
        causes=(_MIRROR,),
        tell_apart="apt-get update -o Acquire::http::No-Cache=true 2>&1 | tail -5",
        sources=("apt-secure(8)",),
    ),
    Symptom(
        id="driver-installers-mixed",
        title="Two ways of installation of the driver meet",
        patterns=(
            r"installed previously using a different installer",
            r"alternate (driver )?installation method",
            r"(runfile|\.run (file|installer)).{0,80}(conflict|packages|mix)",
        ),
        causes=(TWO_INSTALLERS,),
        tell_apart="ls /usr/bin/nvidia-uninstall /var/log/nvidia-installer.log; dpkg -l | grep "
        "nvidia",
        sources=("NVIDIA driver README",),
    ),
    Symptom(
        id="apt-downgrade",
        title="apt refuses a downgrade",
        patterns=(r"Packages were downgraded and -y was used without --allow-downgrades",),
        causes=(_DOWNGRADE,),
        tell_apart="apt-cache policy PACKAGE; grep -rn Pin /etc/apt/preferences.d",
        sources=("apt-get(8)",),
    ),
)
