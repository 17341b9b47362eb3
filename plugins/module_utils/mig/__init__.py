# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MIG: what layout a GPU has, what layout is wanted, and the way from one to the other.

Where is the answer to …

- What are a layout, a step, a plan? ``model``; as text ``render``, as JSON ``layout_json``,
  names of profiles ``names``.
- What did the user ask for? ``config`` reads mig-parted's format, ``selectors`` finds the GPUs,
  ``resolve`` makes of both what each GPU is to have.
- What does a GPU offer? The driver, or ``tables`` (rows: ``tables_data``); with which driver:
  ``requirements``.
- Which instances stay, and where do new ones come? ``planner`` makes the steps, ``choice`` picks
  the layout, ``fitting`` knows what fits. No I/O in these. ``targets`` brings back a former one.
- What does the driver say and do? ``nvml_read`` reads a GPU, ``nvml_mig`` asks it in a child
  with a deadline and carries steps out, ``capabilities`` are the device nodes of instances.
- Who would be disturbed? ``holders_view`` names them, ``containers`` asks Docker for their names,
  ``decide`` refuses, ``stop_set`` stops and starts what may be stopped.
- In which order does it all happen? ``apply`` has what can be asked for, with ``change`` as
  question and answer; ``prepare`` gets ready, ``run`` does it and undoes it on failure, and
  ``bring`` is the part that changes GPUs.
- What is left on the disk? ``journal`` for killed runs and undo, ``boot`` for the next boot,
  ``cdi`` for containers.
- What do ``mig_layout_info`` and ``steadygpu mig show`` tell? ``view``.
"""
