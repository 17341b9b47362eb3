# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A module's arguments, kept out of its result and of the host's journal where they are secret."""

from __future__ import annotations

import json
from typing import Any

from . import by_key


def hide(module: Any, *names: str) -> None:
    """Hide the secrets in these arguments of an AnsibleModule, and no more than these.

    Each of ``names`` must be ``no_log`` in the argument specification: else Ansible has logged it
    already. ``module.params`` is changed: read the real values before.
    """
    secrets = by_key.secrets_of(*(module.params[name] for name in names))
    # All values of these arguments are there, and each would be hidden wherever it stands: words
    # such as "systemd".
    module.no_log_values.clear()
    module.no_log_values.update(by_key.telling(secrets))
    for name in names:
        module.params[name] = by_key.hidden(module.params[name], name)
    module.log("Invoked with " + json.dumps(module.params, default=str))
