/* SIMULATION for the steadygpu lab: not NVIDIA's library.
 *
 * Names and UUIDs of MIG devices.
 */
#ifndef SIMGPU_NAMES_H
#define SIMGPU_NAMES_H

#include "handles.h"

enum { UUID_SIZE = 41 }; /* MIG-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx */

/* `MIG 3g.20gb`, or `MIG 1c.3g.20gb` for a part of it. */
void compute_instance_name(char *name, size_t size, const struct mig_profile *inside,
                           unsigned int profile);

/* Made from GPU UUID and both ids: the same device always has the same UUID, also after a
 * reboot. */
void mig_uuid(char uuid[UUID_SIZE], const struct gpu *gpu, struct place place);

#endif
