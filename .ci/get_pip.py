"""Install pip into the Python that runs this, the way get-pip.py is called by ansible-test.

ansible-test downloads the original from a server of its own. The standard library's ensurepip does
the same without it, so that sanity needs a package index and nothing else.
"""

import ensurepip
import subprocess
import sys

ensurepip.bootstrap()
# get-pip.py's own options; pip does not know them.
arguments = [word for word in sys.argv[1:] if word not in ("--no-setuptools", "--no-wheel")]
subprocess.check_call([sys.executable, "-m", "pip", "install", *arguments])
