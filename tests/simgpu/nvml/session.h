/* SIMULATION for the steadygpu lab: not NVIDIA's library.
 *
 * What every entry point does first: take the one lock, follow the state file, and refuse
 * the way a driver refuses. Use:
 *
 *     struct session session;
 *     if (!session_begin(&session)) return session.result;
 *     …
 *     return session_end(&session, NVML_SUCCESS);
 */
#ifndef SIMGPU_SESSION_H
#define SIMGPU_SESSION_H

#include "handles.h"
#include "mig_store.h"
#include "state.h"

#ifndef SIMGPU_LIBRARY_VERSION
#error "compile with -DSIMGPU_LIBRARY_VERSION=\"550.163.01\" (the driver version this library is for)"
#endif

/* Identity is answered by every driver; the rest may be NOT_SUPPORTED on a whole machine. */
enum query { QUERY_IDENTITY, QUERY_OPTIONAL };

struct session {
    struct state *state;
    struct mig_store *store;
    struct gpu *gpu;     /* the device asked about, where there is one */
    struct mig_gpu *mig; /* its MIG mode and instances */
    struct place place;  /* what the handle stands for */
    nvmlReturn_t result;
};

/* For calls about the system. False: return session.result, the lock is not held. */
bool session_begin(struct session *session);

/* For calls about a whole GPU. Refuses a handle that is not ours, a GPU that is lost, and (with
 * NOT_SUPPORTED) a MIG device. */
bool session_begin_device(struct session *session, nvmlDevice_t device, enum query query);

/* For calls that a GPU or a MIG device may be asked: session.place says which it was. */
bool session_begin_any(struct session *session, nvmlDevice_t device, enum query query);

/* For calls about an instance that exists. */
bool session_begin_gpu_instance(struct session *session, nvmlGpuInstance_t instance);
bool session_begin_compute_instance(struct session *session, nvmlComputeInstance_t instance);

/* Release the lock and hand `result` through. */
nvmlReturn_t session_end(struct session *session, nvmlReturn_t result);

/* GPUs this process may see, in index order: visible index -> entry of state->gpus. */
unsigned int visible_count(void);
unsigned int visible_slot(unsigned int index);
unsigned int visible_index_of(const struct state *state, const struct gpu *gpu);

/* Handle of an entry of state->gpus, and back (NULL where it is no visible GPU's). */
nvmlDevice_t handle_of(unsigned int slot);
struct gpu *gpu_of(struct state *state, nvmlDevice_t device);

/* May this process open the node? Without a check of nodes it may. */
bool may_open(const struct state *state, const char *path);

/* Copy a text into a caller's buffer; INSUFFICIENT_SIZE where it does not fit. */
nvmlReturn_t give_text(char *buffer, unsigned int size, const char *text);

#endif
