# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole sets of packages at exact versions, held, and nobody's job ended for it.

- ``model``: what is wished, what a package manager would do, the errors.
- ``plan``: what is to be done and what is refused; pure.
- ``apply``: reads the host, asks the manager, carries a plan out.
- ``apt`` and ``dnf``: the package managers; ``archives``: package files on the host.
- ``managers``: what both have in common: alone, without a word to engines, after what was left.
- ``guard``: keeps maintainer scripts from stopping or restarting engines.
- ``record``: what was ours, for the day it is to be taken back.
- ``occupants``: whom an engine's package would end.
- ``sources``: apt's source entries of others that name the same repository.
"""
