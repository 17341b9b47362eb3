# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How a host gets its former self.

- What is to be done: ``plan`` with ``plan_files``, pure; what will be then: ``promises``.
- Who does it: ``restore`` journals, ``carry_out`` does step after step.
- A path: ``put_back``, with ``dress`` for owner, mode and attributes, ``beside`` for temporary and
  kept files, ``why_not`` for errors.
- All else: ``actors`` chooses among ``act_…`` (contract: ``actors_api``). The package managers are
  in :mod:`...package_sets`.
"""
