# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keeps the other sections of ``ansible_facts['gpu_host']`` when ``runtime_facts`` gathers."""

from __future__ import annotations

from ansible_collections.steadygpu.host.plugins.plugin_utils.facts import SectionFacts


class ActionModule(SectionFacts):
    """The action of module ``runtime_facts``."""
