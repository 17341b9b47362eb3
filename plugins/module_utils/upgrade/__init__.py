# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From one release of the engine to another, up or down, with containers running.

``read`` looks, ``wanted`` chooses packages, ``judge`` says what changes for this host (pure, with
the tables of ``releases``), ``plan`` puts it together, ``switch`` starts the new daemons.
"""
