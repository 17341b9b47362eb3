/* SIMULATION for the steadygpu lab: not NVIDIA's library.
 *
 * What MIG calls change: modes and instances, in `$SIMGPU_STATE.mig`. The file is replaced as
 * a whole under a lock, so a reader or a kill -9 meets the old or the new. Its lines:
 *
 *     format 1
 *     boot ID                        the boot in which it was written
 *     mode GPU CURRENT PENDING
 *     gi GPU ID PROFILE START        PROFILE: NVML_GPU_INSTANCE_PROFILE_*
 *     ci GPU GI ID PROFILE START     PROFILE: NVML_COMPUTE_INSTANCE_PROFILE_*
 *
 * A file of an earlier boot is read as the driver would find the GPUs after it: no instances,
 * a pending mode is current, and a mode that does not persist is off.
 */
#ifndef SIMGPU_MIG_STORE_H
#define SIMGPU_MIG_STORE_H

#include "state.h"

/* Ids the kernel module has capability nodes for. */
enum { MAX_GPU_INSTANCES = 15, MAX_COMPUTE_INSTANCES = 8 };

struct compute_instance {
    bool present;
    unsigned int profile, start;
};

struct gpu_instance {
    bool present;
    unsigned int profile, start;
    struct compute_instance compute[MAX_COMPUTE_INSTANCES]; /* by id */
};

struct mig_gpu {
    bool current, pending; /* the mode, now and after a reset */
    struct gpu_instance instances[MAX_GPU_INSTANCES]; /* by id */
};

struct mig_store {
    struct mig_gpu gpus[MAX_GPUS];
};

/* Make `store` what the file says now. Cheap while neither file nor boot has changed. */
void mig_store_refresh(struct mig_store *store, const struct state *state);

/* Take the lock that every writer takes and read the file anew. Returns the lock, which
 * mig_store_unlock gives back, or -1 where this process may not write. */
int mig_store_lock(struct mig_store *store, const struct state *state);
void mig_store_unlock(int lock);

/* Replace the file; the lock must be held. False: the old file stands, and so does `store`
 * after the next refresh. */
bool mig_store_write(const struct mig_store *store, const struct state *state);

#endif
