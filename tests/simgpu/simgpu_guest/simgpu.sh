#!/bin/sh
# SIMULATION for the steadygpu lab: installed in lab machines as /usr/local/sbin/simgpu.
PYTHONPATH=/usr/local/lib/simgpu exec /usr/bin/python3 -m simgpu_guest "$@"
