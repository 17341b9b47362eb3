# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CDI specification of a host's NVIDIA GPUs, kept right.

Where is the answer to …

- What of the host does a specification name? ``named``.
- What is on the host? ``host`` reads it, from files alone; nothing opens the driver.
- Is the specification still that of this host? ``stale``.
- Who else describes the same devices? ``twins``.
- Who makes it anew at boot and after a change of the driver? ``units``, with the vendor's options
  in ``env_file``.
- What is to be done, in order? ``keep``.

What an engine makes of a specification is in ``engine/cdi.py``, how the tool is run in
``engine/cdi_generate.py``.
"""
