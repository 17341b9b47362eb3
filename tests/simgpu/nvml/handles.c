/* SIMULATION for the steadygpu lab: not NVIDIA's library. */
#include "handles.h"

#include <stdint.h>

enum { INSTANCES = MAX_GPUS * MAX_GPU_INSTANCES, PARTS = INSTANCES * MAX_COMPUTE_INSTANCES };

/* Only the addresses mean something. */
struct nvmlDevice_st {
    char unused;
};
struct nvmlGpuInstance_st {
    char unused;
};
struct nvmlComputeInstance_st {
    char unused;
};

static struct nvmlDevice_st devices[MAX_GPUS + PARTS]; /* GPUs first, then MIG devices */
static struct nvmlGpuInstance_st gpu_instances[INSTANCES];
static struct nvmlComputeInstance_st compute_instances[PARTS];

static unsigned int instance_number(struct place place)
{
    return place.gpu * MAX_GPU_INSTANCES + place.gpu_instance;
}

static unsigned int part_number(struct place place)
{
    return instance_number(place) * MAX_COMPUTE_INSTANCES + place.compute_instance;
}

static struct place instance_place(unsigned int number)
{
    return (struct place){number / MAX_GPU_INSTANCES, number % MAX_GPU_INSTANCES, NO_INSTANCE};
}

static struct place part_place(unsigned int number)
{
    struct place place = instance_place(number / MAX_COMPUTE_INSTANCES);
    place.compute_instance = number % MAX_COMPUTE_INSTANCES;
    return place;
}

nvmlDevice_t device_handle(struct place place)
{
    return &devices[place.gpu_instance == NO_INSTANCE ? place.gpu : MAX_GPUS + part_number(place)];
}

nvmlGpuInstance_t gpu_instance_handle(struct place place)
{
    return &gpu_instances[instance_number(place)];
}

nvmlComputeInstance_t compute_instance_handle(struct place place)
{
    return &compute_instances[part_number(place)];
}

/* The entry of a table of one-byte entries that `handle` is; false: it points elsewhere. */
static bool number_in(const void *table, unsigned int entries, const void *handle,
                      unsigned int *entry)
{
    const uintptr_t first = (uintptr_t)table, wanted = (uintptr_t)handle;
    *entry = (unsigned int)(wanted - first);
    return wanted >= first && wanted - first < entries;
}

bool place_of_device(nvmlDevice_t handle, struct place *place)
{
    unsigned int number;
    if (!number_in(devices, MAX_GPUS + PARTS, handle, &number))
        return false;
    *place = number < MAX_GPUS ? (struct place){number, NO_INSTANCE, NO_INSTANCE}
                               : part_place(number - MAX_GPUS);
    return true;
}

bool place_of_gpu_instance(nvmlGpuInstance_t handle, struct place *place)
{
    unsigned int number;
    if (!number_in(gpu_instances, INSTANCES, handle, &number))
        return false;
    *place = instance_place(number);
    return true;
}

bool place_of_compute_instance(nvmlComputeInstance_t handle, struct place *place)
{
    unsigned int number;
    if (!number_in(compute_instances, PARTS, handle, &number))
        return false;
    *place = part_place(number);
    return true;
}
