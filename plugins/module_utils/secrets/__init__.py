# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is secret, and how it is kept from being shown. Pure.

- ``names`` and ``tokens`` are the tables: names of what holds a secret, forms of tokens.
- ``spans`` finds secrets in texts of any format; ``redact`` stands in front of files and diffs.
- ``by_key`` hides in values, such as a module's arguments, and cleans error texts.
- ``shapes`` judges whether a value is a secret that should not stand where it stands.
- ``mask`` is for lines of an input that are quoted to the one who wrote it.
"""
