/* SIMULATION for the steadygpu lab: not NVIDIA's library. */
#include "mig_change.h"
#include "capabilities.h"

#include <unistd.h>

/* The capability to configure MIG: root's, and not in a container, which is shown no driver. */
static bool may_configure(const struct state *state)
{
    return !state->check_nodes ||
           (geteuid() == 0 && access("/proc/driver/nvidia/capabilities/mig/config", F_OK) == 0);
}

bool change_begin(struct change *change, struct session *session)
{
    change->session = session;
    change->lock = -1;
    if (may_configure(session->state))
        change->lock = mig_store_lock(session->store, session->state);
    if (change->lock >= 0)
        return true;
    session_end(session, NVML_ERROR_NO_PERMISSION);
    return false;
}

nvmlReturn_t change_end(struct change *change, nvmlReturn_t result)
{
    mig_store_unlock(change->lock);
    return session_end(change->session, result);
}

nvmlReturn_t change_commit(struct change *change)
{
    const struct session *session = change->session;

    if (!mig_store_write(session->store, session->state))
        return change_end(change, NVML_ERROR_UNKNOWN);
    capabilities_sync(session->state, session->store);
    return change_end(change, NVML_SUCCESS);
}

/* Not NVML: the guest's `simgpu` calls it after it has made /proc/driver and /dev anew. After a
 * reboot it also puts into the file what the reboot has left. */
NVML_EXPORT void simgpuSyncCapabilities(void)
{
    static struct state state;
    static struct mig_store store;

    state_refresh(&state);
    const int lock = mig_store_lock(&store, &state);
    if (lock < 0)
        return;
    if (mig_store_write(&store, &state))
        capabilities_sync(&state, &store);
    mig_store_unlock(lock);
}
