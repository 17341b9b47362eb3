# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checkpoints: what a host was, what is being changed, and the way back.

Where is the answer to …

- What are a checkpoint, a window, a plan? ``model``; as JSON ``codec``, read with ``json_fields``.
- Which paths belong to a checkpoint, and whose are they? ``scope``. What did this collection write
  itself? The leaf ``vouched`` beside this package.
- What is on the host now? ``observe`` asks ``files``, ``units_seen``, ``sysctls``, ``gpu_seen``,
  ``package_names`` and ``fingerprint``, which has ``device_rules`` and ``container_files``.
- Where is it kept, and what if two come at once, the disk is full, or the program is killed?
  ``store``, on ``store_base``, ``under_way`` (labels, window, journal), ``objects``, ``documents``
  and ``locking``. What does a name mean? ``selector``. An older or newer form: ``schema``. Which
  go: ``retention``. Between hosts: ``transfer``.
- How does a change begin and end? ``window``. A checkpoint by itself: ``take``. Which way back is
  meant: ``go_back``.
- What does the way back consist of? ``plan`` with ``plan_files`` decides (pure), ``promises`` says
  what will be. ``restore`` journals it, ``carry_out`` does it.
- How does a path get its former self? ``put_back``, with ``dress`` for owner, mode and attributes,
  ``beside`` for temporary and kept files, ``why_not`` for errors.
- How do systemd, slices, Docker, MIG and packages get theirs? ``actors`` chooses among ``act_…``;
  their contract is ``actors_api``; the package managers are ``deb_packages``, ``rpm_packages``.
- What differs? ``compare`` asks ``diff`` and ``diff_parts``. What must nobody see? ``redact``,
  which finds it with ``secret_spans``. How is it shown? ``show_text``, ``show_html``, as JSON
  ``view``.
"""
