# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A machine as a picture. Everything here is pure: a Machine in, text out, the same each time.

``fabric`` reads the NVLinks, ``tree`` the PCIe tree; ``layout`` gives every part its place with
``route`` for the links between GPUs; ``svg`` writes it down in the colours of ``theme``.
"""
