# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cuts: SIGKILL at every system call with which a checkpoint, a change or the way back alters the
disk, each in turn.

An operation runs once below a scratch root, traced by strace, which lists its calls that change
something there. For each of them the operation runs again on a fresh copy of that root and is
killed right before it. Then the disk is looked at, and the next run does what it would on a host.

``tracing``         starts the operation, lists its calls, kills it at one of them
``operation``       the program that is traced: a server that forks for each job
``scratch_host``    a host below a directory, for :mod:`restore` and :mod:`window`
``world``           what lies there: before a change, what roles and others make of it
``tree``            what is on a disk, seen without the code under test
``sweep``           the operations, what must hold at each cut and after it

Whole modules are cut the same way, with the scratch host as their root:

``module_run``      the server that runs them
``module_cases``    which modules, on which hosts, with which arguments
``module_sweep``    what must hold at each cut and after it
``scratch_docker``, ``scratch_containerd``, ``scratch_systemd``  what outlives them on the host
"""
