/* SIMULATION for the steadygpu lab: not NVIDIA's library.
 *
 * GPU instances: what a GPU offers, and making and destroying them.
 */
#include "abi_mig.h"
#include "holders.h"
#include "mig_change.h"
#include "mig_rules.h"

#include <stdio.h>
#include <string.h>

/* A call about what a GPU in MIG mode offers or has. */
static bool begin_mig(struct session *session, nvmlDevice_t device, const void *result)
{
    if (!session_begin_device(session, device, QUERY_OPTIONAL))
        return false;
    if (result == NULL)
        session_end(session, NVML_ERROR_INVALID_ARGUMENT);
    else if (!session->gpu->mig_supported || !session->mig->current)
        session_end(session, NVML_ERROR_NOT_SUPPORTED);
    else
        return true;
    return false;
}

/* The same, about one profile by the driver's id. NULL: the session is over. */
static const struct mig_profile *begin_profile(struct session *session, nvmlDevice_t device,
                                               unsigned int id, const void *result)
{
    if (!begin_mig(session, device, result))
        return NULL;
    const struct mig_profile *profile = profile_by_id(session->gpu, id);
    if (profile == NULL)
        session_end(session, NVML_ERROR_NOT_SUPPORTED);
    return profile;
}

static void fill_v2(nvmlGpuInstanceProfileInfo_v2_t *info, const struct mig_profile *profile)
{
    info->id = profile->id;
    info->isP2pSupported = profile->p2p;
    info->sliceCount = profile->slices;
    info->instanceCount = profile->instances;
    info->multiprocessorCount = profile->processors;
    info->copyEngineCount = profile->copy_engines;
    info->decoderCount = profile->decoders;
    info->encoderCount = profile->encoders;
    info->jpegCount = profile->jpegs;
    info->ofaCount = profile->ofas;
    info->memorySizeMB = profile->memory_mib;
    snprintf(info->name, sizeof info->name, "MIG %s", profile->name);
}

static void fill_v3(nvmlGpuInstanceProfileInfo_v3_t *info, const struct mig_profile *profile)
{
    info->id = profile->id;
    info->sliceCount = profile->slices;
    info->instanceCount = profile->instances;
    info->multiprocessorCount = profile->processors;
    info->copyEngineCount = profile->copy_engines;
    info->decoderCount = profile->decoders;
    info->encoderCount = profile->encoders;
    info->jpegCount = profile->jpegs;
    info->ofaCount = profile->ofas;
    info->memorySizeMB = profile->memory_mib;
    snprintf(info->name, sizeof info->name, "MIG %s", profile->name);
    info->capabilities = profile->p2p;
}

/* Both versions begin with the word that tells them apart. */
static nvmlReturn_t fill_versioned(void *info, const struct mig_profile *profile)
{
    unsigned int version;
    memcpy(&version, info, sizeof version);
    if (version == NVML_STRUCT_VERSION(nvmlGpuInstanceProfileInfo_v2_t, 2U))
        fill_v2(info, profile);
    else if (version == NVML_STRUCT_VERSION(nvmlGpuInstanceProfileInfo_v3_t, 3U))
        fill_v3(info, profile);
    else
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return NVML_SUCCESS;
}

/* By NVML_GPU_INSTANCE_PROFILE_*. NULL: the session is over. */
static const struct mig_profile *begin_offer(struct session *session, nvmlDevice_t device,
                                             unsigned int profile, const void *info)
{
    if (!begin_mig(session, device, info))
        return NULL;
    if (profile >= NVML_GPU_INSTANCE_PROFILE_COUNT)
        session_end(session, NVML_ERROR_INVALID_ARGUMENT);
    else if (session->gpu->mig_profiles[profile].slices == 0)
        session_end(session, NVML_ERROR_NOT_SUPPORTED);
    else
        return &session->gpu->mig_profiles[profile];
    return NULL;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device,
                                                             unsigned int profile,
                                                             nvmlGpuInstanceProfileInfo_t *info)
{
    struct session session;
    nvmlGpuInstanceProfileInfo_v2_t whole;
    const struct mig_profile *offer = begin_offer(&session, device, profile, info);
    if (offer == NULL)
        return session.result;
    fill_v2(&whole, offer);
    *info = (nvmlGpuInstanceProfileInfo_t){
        .id = whole.id,
        .isP2pSupported = whole.isP2pSupported,
        .sliceCount = whole.sliceCount,
        .instanceCount = whole.instanceCount,
        .multiprocessorCount = whole.multiprocessorCount,
        .copyEngineCount = whole.copyEngineCount,
        .decoderCount = whole.decoderCount,
        .encoderCount = whole.encoderCount,
        .jpegCount = whole.jpegCount,
        .ofaCount = whole.ofaCount,
        .memorySizeMB = whole.memorySizeMB,
    };
    return session_end(&session, NVML_SUCCESS);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device,
                                                              unsigned int profile, void *info)
{
    struct session session;
    const struct mig_profile *offer = begin_offer(&session, device, profile, info);
    if (offer == NULL)
        return session.result;
    return session_end(&session, fill_versioned(info, offer));
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t device,
                                                                  unsigned int id, void *info)
{
    struct session session;
    const struct mig_profile *offer = begin_profile(&session, device, id, info);
    if (offer == NULL)
        return session.result;
    return session_end(&session, fill_versioned(info, offer));
}

/* All places the profile may ever lie, taken ones too. Without an array: how many they are. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(
    nvmlDevice_t device, unsigned int id, nvmlGpuInstancePlacement_t *placements,
    unsigned int *count)
{
    struct session session;
    const struct mig_profile *profile = begin_profile(&session, device, id, count);
    if (profile == NULL)
        return session.result;
    for (unsigned int i = 0; placements != NULL && i < profile->starts; i++)
        placements[i] = (nvmlGpuInstancePlacement_t){profile->start[i], profile->size};
    *count = profile->starts;
    return session_end(&session, NVML_SUCCESS);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements(
    nvmlDevice_t device, unsigned int id, nvmlGpuInstancePlacement_t *placements,
    unsigned int *count)
{
    return nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, id, placements, count);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device,
                                                                   unsigned int id,
                                                                   unsigned int *count)
{
    struct session session;
    const struct mig_profile *profile = begin_profile(&session, device, id, count);
    if (profile == NULL)
        return session.result;
    *count = gpu_instance_capacity(session.gpu, session.mig, profile);
    return session_end(&session, NVML_SUCCESS);
}

/* Commit an instance at `start`, where it fits. */
static nvmlReturn_t create(struct change *change, const struct mig_profile *profile,
                           unsigned int start, nvmlGpuInstance_t *instance)
{
    struct session *session = change->session;
    struct place place = session->place;

    place.gpu_instance = free_gpu_instance_id(session->gpu, session->mig, profile);
    session->mig->instances[place.gpu_instance] = (struct gpu_instance){
        .present = true,
        .profile = (unsigned int)(profile - session->gpu->mig_profiles),
        .start = start,
    };
    *instance = gpu_instance_handle(place);
    return change_commit(change);
}

/* The driver chooses: the highest place that is free, which keeps room for bigger ones. */
NVML_EXPORT nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t device, unsigned int id,
                                                     nvmlGpuInstance_t *instance)
{
    struct session session;
    struct change change;
    const struct mig_profile *profile = begin_profile(&session, device, id, instance);
    if (profile == NULL || !change_begin(&change, &session))
        return session.result;
    if (!session.mig->current)
        return change_end(&change, NVML_ERROR_NOT_SUPPORTED);
    for (unsigned int i = profile->starts; i-- > 0;)
        if (gpu_instance_fits(session.gpu, session.mig, profile, profile->start[i]))
            return create(&change, profile, profile->start[i], instance);
    return change_end(&change, NVML_ERROR_INSUFFICIENT_RESOURCES);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(
    nvmlDevice_t device, unsigned int id, const nvmlGpuInstancePlacement_t *placement,
    nvmlGpuInstance_t *instance)
{
    struct session session;
    struct change change;
    const struct mig_profile *profile = begin_profile(&session, device, id, instance);
    if (profile == NULL)
        return session.result;
    if (placement == NULL || placement->size != profile->size)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    if (!change_begin(&change, &session))
        return session.result;
    if (!session.mig->current)
        return change_end(&change, NVML_ERROR_NOT_SUPPORTED);
    if (!gpu_instance_fits(session.gpu, session.mig, profile, placement->start))
        return change_end(&change, NVML_ERROR_INSUFFICIENT_RESOURCES);
    return create(&change, profile, placement->start, instance);
}

/* The instance of a handle, if it is still there under the lock. */
static struct gpu_instance *instance_of(const struct session *session)
{
    return &session->mig->instances[session->place.gpu_instance];
}

static bool has_compute_instances(const struct gpu_instance *instance)
{
    for (unsigned int i = 0; i < MAX_COMPUTE_INSTANCES; i++)
        if (instance->compute[i].present)
            return true;
    return false;
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t instance)
{
    struct session session;
    struct change change;
    if (!session_begin_gpu_instance(&session, instance) || !change_begin(&change, &session))
        return session.result;
    struct gpu_instance *target = instance_of(&session);
    if (!target->present)
        return change_end(&change, NVML_ERROR_INVALID_ARGUMENT);
    if (has_compute_instances(target) || is_held(session.state, session.place))
        return change_end(&change, NVML_ERROR_IN_USE);
    memset(target, 0, sizeof *target);
    return change_commit(&change);
}

/* Those of one profile, in id order; the array takes as many as the profile allows. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned int id,
                                                   nvmlGpuInstance_t *instances,
                                                   unsigned int *count)
{
    struct session session;
    const struct mig_profile *profile = begin_profile(&session, device, id, count);
    if (profile == NULL)
        return session.result;
    if (instances == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    *count = 0;
    for (unsigned int i = 0; i < MAX_GPU_INSTANCES; i++) {
        const struct gpu_instance *one = &session.mig->instances[i];
        if (one->present && &session.gpu->mig_profiles[one->profile] == profile)
            instances[(*count)++] =
                gpu_instance_handle((struct place){session.place.gpu, i, NO_INSTANCE});
    }
    return session_end(&session, NVML_SUCCESS);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id,
                                                      nvmlGpuInstance_t *instance)
{
    struct session session;
    if (!begin_mig(&session, device, instance))
        return session.result;
    if (id >= MAX_GPU_INSTANCES || !session.mig->instances[id].present)
        return session_end(&session, NVML_ERROR_NOT_FOUND);
    *instance = gpu_instance_handle((struct place){session.place.gpu, id, NO_INSTANCE});
    return session_end(&session, NVML_SUCCESS);
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t instance,
                                                nvmlGpuInstanceInfo_t *info)
{
    struct session session;
    if (!session_begin_gpu_instance(&session, instance))
        return session.result;
    if (info == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    const struct gpu_instance *one = instance_of(&session);
    const struct mig_profile *profile = &session.gpu->mig_profiles[one->profile];
    *info = (nvmlGpuInstanceInfo_t){
        .device = handle_of(session.place.gpu),
        .id = session.place.gpu_instance,
        .profileId = profile->id,
        .placement = {one->start, profile->size},
    };
    return session_end(&session, NVML_SUCCESS);
}
