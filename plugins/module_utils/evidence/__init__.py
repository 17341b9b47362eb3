# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a check reads from a host beside the facts: configuration files, settings, who listens."""
