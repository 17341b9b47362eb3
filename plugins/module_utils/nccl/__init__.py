# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NCCL's topology file: checked, stamped with the host it is for, and carried into containers.

``syntax`` reads a file as NCCL does, ``judge`` decides whether it fits the host that ``host``
read, ``generate`` makes one, ``fingerprint`` stamps it, ``carrier`` is the CDI spec, ``gate``
measures, ``boot`` is the unit that withdraws a stale file, and ``manage`` plans and writes.
"""
