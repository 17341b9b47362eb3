/* SIMULATION for the steadygpu lab: not NVIDIA's library.
 *
 * MIG devices: one for each compute instance, counted per GPU in the order of GPU instance id
 * and compute instance id.
 */
#ifndef SIMGPU_MIG_DEVICES_H
#define SIMGPU_MIG_DEVICES_H

#include "session.h"

/* The MIG device of that index; false: the GPU has fewer that this process may see. */
bool mig_device_at(const struct session *session, unsigned int slot, unsigned int index,
                   struct place *place);

/* What index a MIG device has. */
unsigned int mig_device_index(const struct session *session);

/* The GPU instance profile of the session's MIG device. */
const struct mig_profile *mig_device_profile(const struct session *session);

#endif
