/* SIMULATION for the steadygpu lab: not NVIDIA's library.
 *
 * What a GPU or MIG device is, and its memory. Most calls hand out one number or text of the
 * state file.
 */
#include "give.h"
#include "mig_devices.h"
#include "names.h"
#include "pci.h"

#include <stdio.h>
#include <string.h>

GIVE_TEXT(nvmlDeviceGetSerial, serial)
GIVE_TEXT(nvmlDeviceGetVbiosVersion, vbios)

/* A MIG device is named after its GPU and its profile. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *buffer, unsigned int size)
{
    struct session session;
    char part[48], name[MAX_TEXT + sizeof part];
    if (!session_begin_any(&session, device, QUERY_IDENTITY))
        return session.result;
    if (session.place.gpu_instance == NO_INSTANCE)
        return session_end(&session, give_text(buffer, size, session.gpu->name));
    const struct gpu_instance *instance = &session.mig->instances[session.place.gpu_instance];
    compute_instance_name(part, sizeof part, mig_device_profile(&session),
                          instance->compute[session.place.compute_instance].profile);
    snprintf(name, sizeof name, "%s %s", session.gpu->name, part);
    return session_end(&session, give_text(buffer, size, name));
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *buffer, unsigned int size)
{
    struct session session;
    char uuid[UUID_SIZE];
    if (!session_begin_any(&session, device, QUERY_IDENTITY))
        return session.result;
    if (session.place.gpu_instance == NO_INSTANCE)
        return session_end(&session, give_text(buffer, size, session.gpu->uuid));
    mig_uuid(uuid, session.gpu, session.place);
    return session_end(&session, give_text(buffer, size, uuid));
}

/* Of a GPU among GPUs, of a MIG device among those of its GPU. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    struct session session;
    if (!session_begin_any(&session, device, QUERY_IDENTITY))
        return session.result;
    if (index == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    *index = session.place.gpu_instance == NO_INSTANCE
                 ? visible_index_of(session.state, session.gpu)
                 : mig_device_index(&session);
    return session_end(&session, NVML_SUCCESS);
}

GIVE_NUMBER(nvmlDeviceGetMinorNumber, QUERY_IDENTITY, gpu, gpu->minor)
GIVE_NUMBER(nvmlDeviceGetArchitecture, QUERY_OPTIONAL, gpu->architecture, gpu->architecture)

NVML_EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major,
                                                            int *minor)
{
    struct session session;
    if (!session_begin_device(&session, device, QUERY_OPTIONAL))
        return session.result;
    if (major == NULL || minor == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    *major = (int)session.gpu->cc_major;
    *minor = (int)session.gpu->cc_minor;
    return session_end(&session, NVML_SUCCESS);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *info)
{
    struct session session;
    if (!session_begin_device(&session, device, QUERY_IDENTITY))
        return session.result;
    if (info == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    fill_pci_info(info, session.gpu->pci);
    info->pciDeviceId = (unsigned int)session.gpu->pci_device_id;
    info->pciSubSystemId = (unsigned int)session.gpu->pci_subsystem_id;
    return session_end(&session, NVML_SUCCESS);
}

/* A MIG device has its GPU instance's memory, of which nothing is used. */
struct memory {
    unsigned long long total, reserved, used;
};

static struct memory memory_of(const struct session *session)
{
    const struct gpu *gpu = session->gpu;
    if (session->place.gpu_instance == NO_INSTANCE)
        return (struct memory){gpu->memory_total, gpu->memory_reserved, gpu->memory_used};
    return (struct memory){.total = mig_device_profile(session)->memory_mib * 1024ULL * 1024};
}

/* The first version of the call counts reserved memory as used. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    struct session session;
    if (!session_begin_any(&session, device, QUERY_OPTIONAL))
        return session.result;
    if (memory == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    const struct memory seen = memory_of(&session);
    memory->total = seen.total;
    memory->used = seen.used + seen.reserved;
    memory->free = memory->total - memory->used;
    return session_end(&session, NVML_SUCCESS);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    struct session session;
    if (!session_begin_any(&session, device, QUERY_OPTIONAL))
        return session.result;
    if (memory == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    if (memory->version != NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2U))
        return session_end(&session, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    const struct memory seen = memory_of(&session);
    memory->total = seen.total;
    memory->reserved = seen.reserved;
    memory->used = seen.used;
    memory->free = memory->total - memory->reserved - memory->used;
    return session_end(&session, NVML_SUCCESS);
}

/* A MIG device has a share of the window as big as its share of the memory slices. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory)
{
    struct session session;
    if (!session_begin_any(&session, device, QUERY_OPTIONAL))
        return session.result;
    if (memory == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    memory->bar1Total = session.gpu->bar1_total;
    memory->bar1Used = session.gpu->bar1_used;
    if (session.place.gpu_instance != NO_INSTANCE) {
        memory->bar1Total = memory->bar1Total * mig_device_profile(&session)->size /
                            session.gpu->mig_memory_slices;
        memory->bar1Used = 0;
    }
    memory->bar1Free = memory->bar1Total - memory->bar1Used;
    return session_end(&session, NVML_SUCCESS);
}
