# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What differs between two states, and how it is shown without showing a secret.

- ``compare`` asks for it, ``diff`` finds it in files and ``diff_parts`` in all else.
- ``secrets.redact`` stands in front of every text.
- ``show_text`` and ``show_html`` show it.
"""
