/* SIMULATION for the steadygpu lab: not NVIDIA's library.
 *
 * What the kernel module shows of MIG instances: files below
 * /proc/driver/nvidia/capabilities/gpu<minor>/mig/ and nodes /dev/nvidia-caps/nvidia-cap<n>.
 */
#ifndef SIMGPU_CAPABILITIES_H
#define SIMGPU_CAPABILITIES_H

#include "handles.h"

/* The number n of an instance's node, by the static table in nvidia-caps/mig-minors: 1 and 2
 * are config and monitor, then each GPU has 15 GPU instances of 9 numbers, the instance's own
 * and those of its 8 compute instances. */
unsigned int capability_minor(const struct gpu *gpu, struct place place);

/* The instance that node n is of; false where n is none of a GPU in `state`. */
bool capability_place(const struct state *state, unsigned int minor, struct place *place);

/* Make files and nodes agree with the store. Does nothing where this process may not, or where
 * the simulation shows no kernel side ($SIMGPU_ROOT names another root for tests). */
void capabilities_sync(const struct state *state, const struct mig_store *store);

#endif
