/* SIMULATION for the steadygpu lab: not NVIDIA's library.
 *
 * The MIG mode of a GPU, now and pending.
 */
#include "holders.h"
#include "mig_change.h"

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current,
                                              unsigned int *pending)
{
    struct session session;
    if (!session_begin_device(&session, device, QUERY_OPTIONAL))
        return session.result;
    if (current == NULL || pending == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    if (!session.gpu->mig_supported)
        return session_end(&session, NVML_ERROR_NOT_SUPPORTED);
    *current = session.mig->current;
    *pending = session.mig->pending;
    return session_end(&session, NVML_SUCCESS);
}

static bool has_instances(const struct mig_gpu *mig)
{
    for (unsigned int i = 0; i < MAX_GPU_INSTANCES; i++)
        if (mig->instances[i].present)
            return true;
    return false;
}

/* A GPU that any process holds, or that has instances, cannot be reset. */
static bool is_busy(const struct session *session)
{
    return has_instances(session->mig) || is_held(session->state, session->place);
}

/* Hopper needs no reset, so nothing can be pending: it changes at once or not at all. Ampere
 * remembers the wish; an idle GPU is reset by the call, another one keeps its current mode. */
NVML_EXPORT nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned int mode,
                                              nvmlReturn_t *activation)
{
    struct session session;
    struct change change;
    if (!session_begin_device(&session, device, QUERY_OPTIONAL))
        return session.result;
    if (mode > 1 || activation == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    if (!session.gpu->mig_supported)
        return session_end(&session, NVML_ERROR_NOT_SUPPORTED);
    if (!change_begin(&change, &session))
        return session.result;
    struct mig_gpu *mig = session.mig;
    const bool wanted = mode != 0;
    *activation = NVML_SUCCESS;
    if (mig->current == wanted) {
        mig->pending = wanted; /* a wish to the contrary is taken back */
        return change_commit(&change);
    }
    if (session.gpu->mig_reset == MIG_RESET_REBOOT)
        *activation = NVML_ERROR_RESET_REQUIRED;
    else if (is_busy(&session))
        *activation = NVML_ERROR_IN_USE;
    if (session.gpu->mig_reset == MIG_RESET_NONE && *activation != NVML_SUCCESS)
        return change_end(&change, *activation);
    mig->pending = wanted;
    if (*activation == NVML_SUCCESS)
        mig->current = wanted;
    return change_commit(&change);
}
