/* SIMULATION for the steadygpu lab: not NVIDIA's library.
 *
 * Compute instances: the parts of a GPU instance that programs see as MIG devices. A profile's
 * id is its NVML_COMPUTE_INSTANCE_PROFILE_*, as on real GPUs. Starts are our choice: any slice
 * from which the instance fits.
 */
#include "abi_mig.h"
#include "holders.h"
#include "mig_change.h"
#include "mig_rules.h"
#include "names.h"

#include <string.h>

static struct gpu_instance *instance_of(const struct session *session)
{
    return &session->mig->instances[session->place.gpu_instance];
}

static const struct mig_profile *profile_of(const struct session *session)
{
    return &session->gpu->mig_profiles[instance_of(session)->profile];
}

/* A call about a compute profile. False: the session is over. */
static bool begin_profile(struct session *session, nvmlGpuInstance_t instance,
                          unsigned int profile, const void *result)
{
    if (!session_begin_gpu_instance(session, instance))
        return false;
    if (result == NULL || profile >= NVML_COMPUTE_INSTANCE_PROFILE_COUNT)
        session_end(session, NVML_ERROR_INVALID_ARGUMENT);
    else if (compute_slices(profile_of(session), profile) == 0)
        session_end(session, NVML_ERROR_NOT_SUPPORTED);
    else
        return true;
    return false;
}

static nvmlComputeInstanceProfileInfo_t describe(const struct mig_profile *inside,
                                                 unsigned int profile)
{
    const unsigned int slices = compute_slices(inside, profile);
    return (nvmlComputeInstanceProfileInfo_t){
        .id = profile,
        .sliceCount = slices,
        .instanceCount = inside->slices / slices,
        .multiprocessorCount = inside->processors * slices / inside->slices,
        .sharedCopyEngineCount = inside->copy_engines,
        .sharedDecoderCount = inside->decoders,
        .sharedEncoderCount = inside->encoders,
        .sharedJpegCount = inside->jpegs,
        .sharedOfaCount = inside->ofas,
    };
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(
    nvmlGpuInstance_t instance, unsigned int profile, unsigned int engines,
    nvmlComputeInstanceProfileInfo_t *info)
{
    struct session session;
    if (!begin_profile(&session, instance, profile, info))
        return session.result;
    if (engines != 0)
        return session_end(&session, NVML_ERROR_NOT_SUPPORTED);
    *info = describe(profile_of(&session), profile);
    return session_end(&session, NVML_SUCCESS);
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfoV(nvmlGpuInstance_t instance,
                                                                       unsigned int profile,
                                                                       unsigned int engines,
                                                                       void *info)
{
    struct session session;
    unsigned int version;
    if (!begin_profile(&session, instance, profile, info))
        return session.result;
    if (engines != 0)
        return session_end(&session, NVML_ERROR_NOT_SUPPORTED);
    const struct mig_profile *inside = profile_of(&session);
    memcpy(&version, info, sizeof version);
    if (version == NVML_STRUCT_VERSION(nvmlComputeInstanceProfileInfo_v2_t, 2U)) {
        nvmlComputeInstanceProfileInfo_v2_t *v2 = info;
        v2->info = describe(inside, profile);
        compute_instance_name(v2->name, sizeof v2->name, inside, profile);
    } else if (version == NVML_STRUCT_VERSION(nvmlComputeInstanceProfileInfo_v3_t, 3U)) {
        nvmlComputeInstanceProfileInfo_v3_t *v3 = info;
        v3->info = describe(inside, profile);
        compute_instance_name(v3->name, sizeof v3->name, inside, profile);
        v3->capabilities = 0;
    } else
        return session_end(&session, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    return session_end(&session, NVML_SUCCESS);
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstancePossiblePlacements(
    nvmlGpuInstance_t instance, unsigned int profile, nvmlComputeInstancePlacement_t *placements,
    unsigned int *count)
{
    struct session session;
    if (!begin_profile(&session, instance, profile, count))
        return session.result;
    const struct mig_profile *inside = profile_of(&session);
    const unsigned int size = compute_slices(inside, profile);
    *count = inside->slices - size + 1;
    for (unsigned int start = 0; placements != NULL && start < *count; start++)
        placements[start] = (nvmlComputeInstancePlacement_t){start, size};
    return session_end(&session, NVML_SUCCESS);
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(
    nvmlGpuInstance_t instance, unsigned int profile, unsigned int *count)
{
    struct session session;
    if (!begin_profile(&session, instance, profile, count))
        return session.result;
    *count = compute_instance_capacity(instance_of(&session), profile_of(&session), profile);
    return session_end(&session, NVML_SUCCESS);
}

/* Commit a compute instance at `start`, where it fits, under the lowest free id. */
static nvmlReturn_t create(struct change *change, unsigned int profile, unsigned int start,
                           nvmlComputeInstance_t *compute)
{
    struct gpu_instance *instance = instance_of(change->session);
    struct place place = change->session->place;

    place.compute_instance = 0;
    while (instance->compute[place.compute_instance].present) /* one slice at least is free */
        place.compute_instance++;
    instance->compute[place.compute_instance] =
        (struct compute_instance){.present = true, .profile = profile, .start = start};
    *compute = compute_instance_handle(place);
    return change_commit(change);
}

/* Under the lock: is the GPU instance still there? False: change and session are over. */
static bool begin_create(struct change *change, struct session *session)
{
    if (!change_begin(change, session))
        return false;
    if (instance_of(session)->present)
        return true;
    change_end(change, NVML_ERROR_INVALID_ARGUMENT);
    return false;
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t instance,
                                                              unsigned int profile,
                                                              nvmlComputeInstance_t *compute)
{
    struct session session;
    struct change change;
    if (!begin_profile(&session, instance, profile, compute) || !begin_create(&change, &session))
        return session.result;
    const struct mig_profile *inside = profile_of(&session);
    for (unsigned int start = 0; start < inside->slices; start++)
        if (compute_instance_fits(instance_of(&session), inside, profile, start))
            return create(&change, profile, start, compute);
    return change_end(&change, NVML_ERROR_INSUFFICIENT_RESOURCES);
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceCreateComputeInstanceWithPlacement(
    nvmlGpuInstance_t instance, unsigned int profile,
    const nvmlComputeInstancePlacement_t *placement, nvmlComputeInstance_t *compute)
{
    struct session session;
    struct change change;
    if (!begin_profile(&session, instance, profile, compute))
        return session.result;
    if (placement == NULL || placement->size != compute_slices(profile_of(&session), profile))
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    if (!begin_create(&change, &session))
        return session.result;
    if (!compute_instance_fits(instance_of(&session), profile_of(&session), profile,
                               placement->start))
        return change_end(&change, NVML_ERROR_INSUFFICIENT_RESOURCES);
    return create(&change, profile, placement->start, compute);
}

NVML_EXPORT nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t compute)
{
    struct session session;
    struct change change;
    if (!session_begin_compute_instance(&session, compute) || !change_begin(&change, &session))
        return session.result;
    struct compute_instance *target =
        &instance_of(&session)->compute[session.place.compute_instance];
    if (!instance_of(&session)->present || !target->present)
        return change_end(&change, NVML_ERROR_INVALID_ARGUMENT);
    if (is_held(session.state, session.place))
        return change_end(&change, NVML_ERROR_IN_USE);
    memset(target, 0, sizeof *target);
    return change_commit(&change);
}

/* Those of one profile, in id order; the array takes as many as the profile allows. */
NVML_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t instance,
                                                            unsigned int profile,
                                                            nvmlComputeInstance_t *computes,
                                                            unsigned int *count)
{
    struct session session;
    if (!begin_profile(&session, instance, profile, count))
        return session.result;
    if (computes == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    struct place place = session.place;
    *count = 0;
    for (unsigned int i = 0; i < MAX_COMPUTE_INSTANCES; i++) {
        const struct compute_instance *one = &instance_of(&session)->compute[i];
        place.compute_instance = i;
        if (one->present && one->profile == profile)
            computes[(*count)++] = compute_instance_handle(place);
    }
    return session_end(&session, NVML_SUCCESS);
}

NVML_EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t instance,
                                                               unsigned int id,
                                                               nvmlComputeInstance_t *compute)
{
    struct session session;
    if (!session_begin_gpu_instance(&session, instance))
        return session.result;
    if (compute == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    if (id >= MAX_COMPUTE_INSTANCES || !instance_of(&session)->compute[id].present)
        return session_end(&session, NVML_ERROR_NOT_FOUND);
    struct place place = session.place;
    place.compute_instance = id;
    *compute = compute_instance_handle(place);
    return session_end(&session, NVML_SUCCESS);
}

NVML_EXPORT nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t compute,
                                                       nvmlComputeInstanceInfo_t *info)
{
    struct session session;
    if (!session_begin_compute_instance(&session, compute))
        return session.result;
    if (info == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    const struct compute_instance *one =
        &instance_of(&session)->compute[session.place.compute_instance];
    struct place above = session.place;
    above.compute_instance = NO_INSTANCE;
    *info = (nvmlComputeInstanceInfo_t){
        .device = handle_of(session.place.gpu),
        .gpuInstance = gpu_instance_handle(above),
        .id = session.place.compute_instance,
        .profileId = one->profile,
        .placement = {one->start, compute_slices(profile_of(&session), one->profile)},
    };
    return session_end(&session, NVML_SUCCESS);
}
