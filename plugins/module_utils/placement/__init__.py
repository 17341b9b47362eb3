# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which devices a container gets: the best set, exactly, and why. No I/O.

- What is a host, what a request, what an answer? ``model``; from facts ``inventory``, from a
  claim ``request``.
- How much is a link worth? ``weights``. Which set has the best links? ``fabric``, which asks
  ``subsets`` (all subsets of up to 16 GPUs, sorted once) or ``classes`` (GPUs that are alike
  counted instead of listed).
- Who may be asked at all? ``filters``. How well does a device fit? ``score``. What is left for the
  next? ``fragmentation``.
- Which devices then? ``choose`` decides, ``parts`` among MIG devices, ``slots`` where a new MIG
  device goes, ``reshape`` plans it through ``mig/planner``.
- Why not others? ``explain``.
- What would go-gpuallocator have said? ``partition``.
"""
