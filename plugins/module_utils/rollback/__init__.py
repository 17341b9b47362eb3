# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checkpoints: what a host was, what is being changed, and the way back.

Where is the answer to …

- What are a checkpoint, a window, a plan? ``model``; as JSON ``codec``.
- Which paths belong to a checkpoint, and whose are they? ``scope``. What did this collection write
  itself? The leaf ``vouched`` beside this package.
- How does a change begin and end? ``window``. A checkpoint by itself: ``take``. Which way back is
  meant: ``go_back``. What do modules and commands show? ``view``.
- What is on the host now? ``observation``. Where is it kept? ``storage``. What does the way back
  consist of, and who goes it? ``way_back``. What differs, and what must nobody see? ``difference``.
"""
