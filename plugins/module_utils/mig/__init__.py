# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MIG: what layout a GPU has, what layout is wanted, and the steps from one to the other.

``config`` reads what a user wrote, ``tables`` knows the models, ``planner`` decides (no I/O);
``nvml_mig`` reads and changes one GPU, ``apply`` carries a plan out and undoes it on failure.
"""
