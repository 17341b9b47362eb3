/* SIMULATION for the steadygpu lab: not NVIDIA's library.
 *
 * Handles: addresses in tables of ours, so that a foreign pointer is told from a handle
 * without being followed. Whether the instance behind a handle exists is the caller's question.
 */
#ifndef SIMGPU_HANDLES_H
#define SIMGPU_HANDLES_H

#include "mig_store.h"

/* What a handle stands for. A whole GPU has no instances, a GPU instance no compute instance. */
struct place {
    unsigned int gpu, gpu_instance, compute_instance; /* NO_INSTANCE where there is none */
};

nvmlDevice_t device_handle(struct place place); /* of a GPU, or of a MIG device */
nvmlGpuInstance_t gpu_instance_handle(struct place place);
nvmlComputeInstance_t compute_instance_handle(struct place place);

/* False: not a handle of ours. */
bool place_of_device(nvmlDevice_t handle, struct place *place);
bool place_of_gpu_instance(nvmlGpuInstance_t handle, struct place *place);
bool place_of_compute_instance(nvmlComputeInstance_t handle, struct place *place);

#endif
