/* SIMULATION for the steadygpu lab: not NVIDIA's library. */
#ifndef SIMGPU_PCI_H
#define SIMGPU_PCI_H

#include "abi.h"

/* Fill every address field of `info` from dddd:bb:dd.f; ids are set to 0. */
void fill_pci_info(nvmlPciInfo_t *info, const char *address);

#endif
