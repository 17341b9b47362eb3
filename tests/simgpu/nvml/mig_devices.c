/* SIMULATION for the steadygpu lab: not NVIDIA's library. */
#include "mig_devices.h"
#include "abi_mig.h"
#include "capabilities.h"
#include "mig_rules.h"

#include <stdio.h>
#include <unistd.h>

static bool may_open_capability(const struct session *session, struct place place)
{
    char path[64];
    snprintf(path, sizeof path, "/dev/nvidia-caps/nvidia-cap%u",
             capability_minor(&session->state->gpus[place.gpu], place));
    return may_open(session->state, path);
}

/* Where the driver shows itself in /proc, on the host, every device is seen; in a container
 * those whose two capability nodes were given to it. */
static bool is_visible(const struct session *session, struct place place)
{
    struct place above = place;
    above.compute_instance = NO_INSTANCE;
    return access("/proc/driver/nvidia/capabilities", F_OK) == 0 ||
           (may_open_capability(session, above) && may_open_capability(session, place));
}

bool mig_device_at(const struct session *session, unsigned int slot, unsigned int index,
                   struct place *place)
{
    for (unsigned int i = 0; i < MAX_GPU_INSTANCES; i++)
        for (unsigned int c = 0; c < MAX_COMPUTE_INSTANCES; c++) {
            const struct gpu_instance *instance = &session->store->gpus[slot].instances[i];
            *place = (struct place){slot, i, c};
            if (!instance->present || !instance->compute[c].present ||
                !is_visible(session, *place))
                continue;
            if (index-- == 0)
                return true;
        }
    return false;
}

unsigned int mig_device_index(const struct session *session)
{
    struct place place;
    unsigned int index = 0;
    while (mig_device_at(session, session->place.gpu, index, &place) &&
           !(place.gpu_instance == session->place.gpu_instance &&
             place.compute_instance == session->place.compute_instance))
        index++;
    return index;
}

const struct mig_profile *mig_device_profile(const struct session *session)
{
    return &session->gpu->mig_profiles[session->mig->instances[session->place.gpu_instance].profile];
}

NVML_EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_mig)
{
    struct session session;
    if (!session_begin_any(&session, device, QUERY_IDENTITY))
        return session.result;
    if (is_mig == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    *is_mig = session.place.gpu_instance != NO_INSTANCE;
    return session_end(&session, NVML_SUCCESS);
}

/* Zero where MIG is off or unknown. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count)
{
    struct session session;
    if (!session_begin_device(&session, device, QUERY_OPTIONAL))
        return session.result;
    if (count == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    *count = session.mig->current ? (unsigned int)session.gpu->mig_slices : 0;
    return session_end(&session, NVML_SUCCESS);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device,
                                                             unsigned int index,
                                                             nvmlDevice_t *mig)
{
    struct session session;
    struct place place;
    if (!session_begin_device(&session, device, QUERY_OPTIONAL))
        return session.result;
    if (mig == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    if (!session.gpu->mig_supported)
        return session_end(&session, NVML_ERROR_NOT_SUPPORTED);
    if (!mig_device_at(&session, session.place.gpu, index, &place))
        return session_end(&session, NVML_ERROR_NOT_FOUND);
    *mig = device_handle(place);
    return session_end(&session, NVML_SUCCESS);
}

/* A call that only a MIG device can be asked. False: the session is over. */
static bool begin_mig_device(struct session *session, nvmlDevice_t mig, const void *result,
                             nvmlReturn_t for_a_gpu)
{
    if (!session_begin_any(session, mig, QUERY_OPTIONAL))
        return false;
    if (result == NULL)
        session_end(session, NVML_ERROR_INVALID_ARGUMENT);
    else if (session->place.gpu_instance == NO_INSTANCE)
        session_end(session, for_a_gpu);
    else
        return true;
    return false;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig,
                                                                      nvmlDevice_t *device)
{
    struct session session;
    if (!begin_mig_device(&session, mig, device, NVML_ERROR_INVALID_ARGUMENT))
        return session.result;
    *device = handle_of(session.place.gpu);
    return session_end(&session, NVML_SUCCESS);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t mig, unsigned int *id)
{
    struct session session;
    if (!begin_mig_device(&session, mig, id, NVML_ERROR_NOT_SUPPORTED))
        return session.result;
    *id = session.place.gpu_instance;
    return session_end(&session, NVML_SUCCESS);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t mig, unsigned int *id)
{
    struct session session;
    if (!begin_mig_device(&session, mig, id, NVML_ERROR_NOT_SUPPORTED))
        return session.result;
    *id = session.place.compute_instance;
    return session_end(&session, NVML_SUCCESS);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t mig,
                                                    nvmlDeviceAttributes_t *attributes)
{
    struct session session;
    if (!begin_mig_device(&session, mig, attributes, NVML_ERROR_NOT_SUPPORTED))
        return session.result;
    const struct mig_profile *profile = mig_device_profile(&session);
    const struct compute_instance *compute = &session.mig->instances[session.place.gpu_instance]
                                                  .compute[session.place.compute_instance];
    const unsigned int slices = compute_slices(profile, compute->profile);
    *attributes = (nvmlDeviceAttributes_t){
        .multiprocessorCount = profile->processors * slices / profile->slices,
        .sharedCopyEngineCount = profile->copy_engines,
        .sharedDecoderCount = profile->decoders,
        .sharedEncoderCount = profile->encoders,
        .sharedJpegCount = profile->jpegs,
        .sharedOfaCount = profile->ofas,
        .gpuInstanceSliceCount = profile->slices,
        .computeInstanceSliceCount = slices,
        .memorySizeMB = profile->memory_mib,
    };
    return session_end(&session, NVML_SUCCESS);
}
