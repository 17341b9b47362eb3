/* SIMULATION for the steadygpu lab: not NVIDIA's library.
 *
 * Which instances fit beside each other. Decides only; nothing is read or written here.
 *
 * GPU instances may coexist when their intervals of memory slices are disjoint, their compute
 * slices sum to at most the GPU's, and no profile is there more often than it allows (+me: once).
 * Compute instances share the compute slices of their GPU instance the same way.
 */
#ifndef SIMGPU_MIG_RULES_H
#define SIMGPU_MIG_RULES_H

#include "mig_store.h"

enum { COMPUTE_PROFILES = 5 }; /* 1, 2, 3, 4 and 7 slices: NVML_COMPUTE_INSTANCE_PROFILE_* 0..4 */

/* The profile with that id of the driver's (19: 1g), or NULL. */
const struct mig_profile *profile_by_id(const struct gpu *gpu, unsigned int id);

/* May one more instance of the profile lie at `start`? */
bool gpu_instance_fits(const struct gpu *gpu, const struct mig_gpu *mig,
                       const struct mig_profile *profile, unsigned int start);

/* How many more of the profile there is room for. */
unsigned int gpu_instance_capacity(const struct gpu *gpu, const struct mig_gpu *mig,
                                   const struct mig_profile *profile);

/* The lowest free id of the profile's family. As on real GPUs a family is a size: a whole GPU
 * has id 0, halves 1 and 2, quarters 3 to 6, eighths 7 to 14; an id says nothing of the place. */
unsigned int free_gpu_instance_id(const struct gpu *gpu, const struct mig_gpu *mig,
                                  const struct mig_profile *profile);

/* Compute slices of a compute profile inside that GPU instance; 0: not offered there. */
unsigned int compute_slices(const struct mig_profile *inside, unsigned int profile);

bool compute_instance_fits(const struct gpu_instance *instance, const struct mig_profile *inside,
                           unsigned int profile, unsigned int start);
unsigned int compute_instance_capacity(const struct gpu_instance *instance,
                                       const struct mig_profile *inside, unsigned int profile);

#endif
