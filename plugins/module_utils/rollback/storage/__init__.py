# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where checkpoints, labels and journals are kept, so that nothing that happens loses one.

- The whole: ``store``, on ``store_base``; labels, window and journals: ``under_way``.
- Contents by their digest: ``objects``. Documents with a checksum: ``documents``, read with
  ``json_fields``. Two at once: the leaf ``file_lock``.
- What does a name mean? ``selector``. Which checkpoints go? ``retention``. An older or newer form:
  ``schema``. Between hosts: ``transfer``.
"""
