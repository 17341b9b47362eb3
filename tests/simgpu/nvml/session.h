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

#include "state.h"

#ifndef SIMGPU_LIBRARY_VERSION
#error "compile with -DSIMGPU_LIBRARY_VERSION=\"550.163.01\" (the driver version this library is for)"
#endif

/* Identity is answered by every driver; the rest may be NOT_SUPPORTED on a whole machine. */
enum query { QUERY_IDENTITY, QUERY_OPTIONAL };

struct session {
    struct state *state;
    struct gpu *gpu; /* the device asked about, where there is one */
    nvmlReturn_t result;
};

/* For calls about the system. False: return session.result, the lock is not held. */
bool session_begin(struct session *session);

/* For calls about a device. Refuses a handle that is not ours and a GPU that is lost. */
bool session_begin_device(struct session *session, nvmlDevice_t device, enum query query);

/* Release the lock and hand `result` through. */
nvmlReturn_t session_end(struct session *session, nvmlReturn_t result);

/* GPUs this process may see, in index order: visible index -> entry of state->gpus. */
unsigned int visible_count(void);
unsigned int visible_slot(unsigned int index);
unsigned int visible_index_of(const struct state *state, const struct gpu *gpu);

/* Handle of an entry of state->gpus, and back (NULL where the handle is not ours). */
nvmlDevice_t handle_of(unsigned int slot);
struct gpu *gpu_of(struct state *state, nvmlDevice_t device);

/* Copy a text into a caller's buffer; INSUFFICIENT_SIZE where it does not fit. */
nvmlReturn_t give_text(char *buffer, unsigned int size, const char *text);

#endif
