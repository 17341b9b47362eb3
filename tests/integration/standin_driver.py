# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Packages of a driver for a lab host: a module that does nothing, but is built by the real DKMS.

NVIDIA's own take too long to build under emulation. These have its names, versions and files, so
that everything around a driver is real: headers, compiler, DKMS, apt, holds and pins.
"""

from __future__ import annotations

# Two, as long as the test that wants them runs.
DIRECTORY = "/srv/standin-driver"

_SCRIPT = r"""
set -e
release={release}
top={directory}/build-$release
mkdir -p {directory}
deb() {{ # name, dependencies; the tree is in $top/$name
    mkdir -p $top/$1/DEBIAN
    cat > $top/$1/DEBIAN/control <<END
Package: $1
Version: $release-1
Architecture: amd64
Maintainer: nobody <nobody@example.org>
Description: stand-in for a lab
$2
END
    dpkg-deb --root-owner-group --build $top/$1 {directory}/$1_$release-1_amd64.deb > /dev/null
}}
src=$top/nvidia-open-kernel-dkms/usr/src/nvidia-$release
mkdir -p $src $top/nvidia-open-kernel-dkms/DEBIAN
for name in nvidia nvidia-uvm; do
    cat > $src/$name.c <<END
#include <linux/module.h>
static int __init standin_init(void) {{ return 0; }}
static void __exit standin_exit(void) {{ }}
module_init(standin_init);
module_exit(standin_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("stand-in of a lab");
MODULE_VERSION("$release");
END
done
printf 'obj-m := nvidia.o nvidia-uvm.o\n' > $src/Makefile
{spoil}
cat > $src/dkms.conf <<END
PACKAGE_NAME="nvidia"
PACKAGE_VERSION="$release"
MAKE[0]="make -C \$kernel_source_dir M=\$dkms_tree/nvidia/$release/build modules"
BUILT_MODULE_NAME[0]="nvidia"
DEST_MODULE_LOCATION[0]="/updates/dkms"
BUILT_MODULE_NAME[1]="nvidia-uvm"
DEST_MODULE_LOCATION[1]="/updates/dkms"
AUTOINSTALL="yes"
END
cat > $top/nvidia-open-kernel-dkms/DEBIAN/postinst <<END
#!/bin/sh
/usr/lib/dkms/common.postinst nvidia $release "" amd64 "\$2" || true
END
cat > $top/nvidia-open-kernel-dkms/DEBIAN/prerm <<END
#!/bin/sh
dkms remove -m nvidia -v $release --all || true
END
chmod 755 $top/nvidia-open-kernel-dkms/DEBIAN/p*
deb nvidia-open-kernel-dkms "Depends: dkms, gcc, make"
deb nvidia-fabricmanager ""
deb nvidia-smi ""
"""


def script(release: str, broken: bool = False) -> str:
    """A shell script that makes the packages of one release; ``broken`` ones do not compile."""
    spoil = "echo 'this is no C' >> $src/nvidia.c" if broken else ":"
    return _SCRIPT.format(release=release, directory=DIRECTORY, spoil=spoil)
