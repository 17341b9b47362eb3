# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How near the devices of a machine are: one picture from many sources.

Everything here is pure: text or facts in, values out. ``model`` is the picture and ``levels`` its
words. One picture each comes from ``facts``, ``smi_matrix`` (nvidia-smi topo -m), ``hwloc`` and
``nccl_machine`` (a tree that ``nccl_xml`` reads and writes); ``smi_xml`` brings nvidia-smi -q -x to
the shape of the facts. ``affinity`` turns levels into numbers, ``bandwidth`` reads what was
measured and ``remembered`` judges whether it still holds, ``compare`` finds where two sources
disagree, ``remarks`` what to know about a picture.
"""
