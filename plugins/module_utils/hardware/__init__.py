# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What GPUs a host has, how they are connected, in what state they are and who holds them.

``inventory.collect`` asks everything below and joins the answers. They are values of ``model`` (the
GPUs) and ``host_model`` (the machine around them); ``model.as_facts`` makes them facts.

=================================================  =========================================
What NVML says, in a child with a deadline         ``nvml_reader``, ``nvml``, ``guarded``
… of one GPU, its NVLinks, MIG devices, of pairs   ``nvml_{fields,links,mig,pairs}``
… how it is called, what its errors mean           ``nvml_library``
What the loaded kernel module says                 ``procfs``
Is the driver well? Which library is installed?    ``driver``, ``library``
Why was a card refused? Which Xids were there?     ``kernel_log``
Where on the PCI bus is it, how fast is its link?  ``pci``
Do bridges redirect (ACS)? IOMMU groups?           ``bridges``
NUMA nodes and huge pages; network cards           ``numa``, ``nics``
Device nodes, missing ones, ones closed to us      ``nodes``
Who has a GPU open or may open it?                 ``holders``
Fabric manager, persistence daemon; Secure Boot    ``services``, ``secure_boot``
The bandwidth that was measured here once          ``bandwidth_file``
=================================================  =========================================

``devices`` (one device from NVML and /proc), ``links`` (levels of pairs), ``sources`` (two level
matrices side by side) and ``driver`` decide and read nothing. Every reader takes the ``root`` of a
recorded tree, and reads text through ``files``, for which an odd file is a missing one.
"""
