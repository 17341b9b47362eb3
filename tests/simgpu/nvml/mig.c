/* SIMULATION for the steadygpu lab: not NVIDIA's library.
 *
 * MIG calls while MIG is off on every GPU: what the vendor's own nvidia-ctk needs to find.
 * No MIG handle exists, so a handle is either a whole GPU's or not ours.
 */
#include "session.h"

NVML_EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_mig)
{
    struct session session;
    if (!session_begin_device(&session, device, QUERY_IDENTITY))
        return session.result;
    if (is_mig == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    *is_mig = 0;
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
    *count = 0;
    return session_end(&session, NVML_SUCCESS);
}

/* The answer to anything about a MIG device of this GPU. */
static nvmlReturn_t without_mig(nvmlDevice_t device, const void *result,
                                nvmlReturn_t where_supported)
{
    struct session session;
    if (!session_begin_device(&session, device, QUERY_OPTIONAL))
        return session.result;
    if (result == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    return session_end(&session, session.gpu->mig_supported ? where_supported : NVML_ERROR_NOT_SUPPORTED);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device,
                                                             unsigned int index,
                                                             nvmlDevice_t *mig)
{
    (void)index;
    return without_mig(device, mig, NVML_ERROR_NOT_FOUND);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig,
                                                                      nvmlDevice_t *device)
{
    return without_mig(mig, device, NVML_ERROR_INVALID_ARGUMENT);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t mig, void *attributes)
{
    return without_mig(mig, attributes, NVML_ERROR_NOT_SUPPORTED);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t mig, unsigned int *id)
{
    return without_mig(mig, id, NVML_ERROR_NOT_SUPPORTED);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t mig, unsigned int *id)
{
    return without_mig(mig, id, NVML_ERROR_NOT_SUPPORTED);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id,
                                                      nvmlGpuInstance_t *instance)
{
    (void)id;
    return without_mig(device, instance, NVML_ERROR_NOT_SUPPORTED);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned int profile,
                                                             void *info)
{
    (void)profile;
    return without_mig(device, info, NVML_ERROR_NOT_SUPPORTED);
}

/* No GPU instance handle can be valid while MIG is off. */
static nvmlReturn_t no_instance(void)
{
    struct session session;
    if (!session_begin(&session))
        return session.result;
    return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t instance, void *info)
{
    (void)instance, (void)info;
    return no_instance();
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t instance,
                                                               unsigned int id,
                                                               nvmlComputeInstance_t *result)
{
    (void)instance, (void)id, (void)result;
    return no_instance();
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t instance,
                                                                      unsigned int profile,
                                                                      unsigned int engine_profile, void *info)
{
    (void)instance, (void)profile, (void)engine_profile, (void)info;
    return no_instance();
}

NVML_EXPORT nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t instance, void *info)
{
    (void)instance, (void)info;
    return no_instance();
}
