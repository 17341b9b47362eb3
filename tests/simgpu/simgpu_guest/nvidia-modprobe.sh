#!/bin/sh
# SIMULATION of NVIDIA's nvidia-modprobe: of its options only those that load nvidia_uvm do anything.
case " $* " in
*" -u "*) exec /usr/local/sbin/simgpu load-uvm ;;
esac
