/* SIMULATION for the steadygpu lab: not NVIDIA's library. */
#include "mig_rules.h"

static bool overlap(unsigned int one, unsigned int one_size, unsigned int other,
                    unsigned int other_size)
{
    return one < other + other_size && other < one + one_size;
}

const struct mig_profile *profile_by_id(const struct gpu *gpu, unsigned int id)
{
    for (unsigned int i = 0; i < MAX_MIG_PROFILES; i++)
        if (gpu->mig_profiles[i].slices != 0 && gpu->mig_profiles[i].id == id)
            return &gpu->mig_profiles[i];
    return NULL;
}

static bool is_a_start(const struct mig_profile *profile, unsigned int start)
{
    for (unsigned int i = 0; i < profile->starts; i++)
        if (profile->start[i] == start)
            return true;
    return false;
}

bool gpu_instance_fits(const struct gpu *gpu, const struct mig_gpu *mig,
                       const struct mig_profile *profile, unsigned int start)
{
    unsigned int slices = profile->slices, same = 1;

    if (!is_a_start(profile, start))
        return false;
    for (unsigned int i = 0; i < MAX_GPU_INSTANCES; i++) {
        const struct gpu_instance *other = &mig->instances[i];
        if (!other->present)
            continue;
        const struct mig_profile *theirs = &gpu->mig_profiles[other->profile];
        if (overlap(start, profile->size, other->start, theirs->size))
            return false;
        slices += theirs->slices;
        same += theirs == profile;
    }
    return slices <= gpu->mig_slices && same <= profile->instances;
}

unsigned int gpu_instance_capacity(const struct gpu *gpu, const struct mig_gpu *mig,
                                   const struct mig_profile *profile)
{
    struct mig_gpu trial = *mig;
    unsigned int count = 0;

    /* Intervals of one size, taken in ascending order: no other choice places more. */
    for (unsigned int i = 0; i < profile->starts; i++) {
        if (!gpu_instance_fits(gpu, &trial, profile, profile->start[i]))
            continue;
        const unsigned int id = free_gpu_instance_id(gpu, &trial, profile);
        trial.instances[id] = (struct gpu_instance){
            .present = true,
            .profile = (unsigned int)(profile - gpu->mig_profiles),
            .start = profile->start[i],
        };
        count++;
    }
    return count;
}

unsigned int free_gpu_instance_id(const struct gpu *gpu, const struct mig_gpu *mig,
                                  const struct mig_profile *profile)
{
    const unsigned int family = (unsigned int)gpu->mig_memory_slices / profile->size;
    unsigned int id = family - 1;
    while (id < MAX_GPU_INSTANCES - 1 && mig->instances[id].present)
        id++;
    return id;
}

unsigned int compute_slices(const struct mig_profile *inside, unsigned int profile)
{
    static const unsigned int slices[COMPUTE_PROFILES] = {1, 2, 3, 4, 7};

    if (profile >= COMPUTE_PROFILES || slices[profile] > inside->slices)
        return 0;
    if (slices[profile] == 3 && inside->slices == 4) /* 3c.4g exists on no GPU */
        return 0;
    return slices[profile];
}

bool compute_instance_fits(const struct gpu_instance *instance, const struct mig_profile *inside,
                           unsigned int profile, unsigned int start)
{
    const unsigned int size = compute_slices(inside, profile);

    if (size == 0 || start >= inside->slices || size > inside->slices - start)
        return false;
    for (unsigned int i = 0; i < MAX_COMPUTE_INSTANCES; i++) {
        const struct compute_instance *other = &instance->compute[i];
        if (other->present &&
            overlap(start, size, other->start, compute_slices(inside, other->profile)))
            return false;
    }
    return true;
}

unsigned int compute_instance_capacity(const struct gpu_instance *instance,
                                       const struct mig_profile *inside, unsigned int profile)
{
    const unsigned int size = compute_slices(inside, profile);
    unsigned int count = 0;

    if (size == 0)
        return 0;
    for (unsigned int start = 0; start + size <= inside->slices;) {
        const bool fits = compute_instance_fits(instance, inside, profile, start);
        count += fits;
        start += fits ? size : 1;
    }
    return count;
}
