/* SIMULATION for the steadygpu lab: not NVIDIA's library.
 *
 * Calls about one whole GPU. Most of them hand out one number or text of the state file.
 */
#include "pci.h"
#include "session.h"

#include <string.h>

#define GIVE_TEXT(function, field)                                                                 \
    NVML_EXPORT nvmlReturn_t function(nvmlDevice_t device, char *buffer, unsigned int size)        \
    {                                                                                              \
        struct session session;                                                                    \
        if (!session_begin_device(&session, device, QUERY_IDENTITY))                               \
            return session.result;                                                                 \
        if (session.gpu->field[0] == '\0')                                                         \
            return session_end(&session, NVML_ERROR_NOT_SUPPORTED);                                \
        return session_end(&session, give_text(buffer, size, session.gpu->field));                 \
    }

GIVE_TEXT(nvmlDeviceGetName, name)
GIVE_TEXT(nvmlDeviceGetUUID, uuid)
GIVE_TEXT(nvmlDeviceGetSerial, serial)
GIVE_TEXT(nvmlDeviceGetVbiosVersion, vbios)

/* One unsigned number, `value`, where `supported` holds of `gpu`. */
#define GIVE_NUMBER(function, query, supported, value)                                             \
    NVML_EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned int *result)                   \
    {                                                                                              \
        struct session session;                                                                    \
        if (!session_begin_device(&session, device, query))                                        \
            return session.result;                                                                 \
        const struct gpu *gpu = session.gpu;                                                       \
        if (result == NULL)                                                                        \
            return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);                             \
        if (!(supported))                                                                          \
            return session_end(&session, NVML_ERROR_NOT_SUPPORTED);                                \
        *result = (unsigned int)(value);                                                           \
        return session_end(&session, NVML_SUCCESS);                                                \
    }

GIVE_NUMBER(nvmlDeviceGetMinorNumber, QUERY_IDENTITY, gpu, gpu->minor)
GIVE_NUMBER(nvmlDeviceGetIndex, QUERY_IDENTITY, gpu, visible_index_of(session.state, gpu))
GIVE_NUMBER(nvmlDeviceGetArchitecture, QUERY_OPTIONAL, gpu->architecture, gpu->architecture)
GIVE_NUMBER(nvmlDeviceGetPersistenceMode, QUERY_OPTIONAL, gpu, gpu->persistence)
GIVE_NUMBER(nvmlDeviceGetComputeMode, QUERY_OPTIONAL, gpu, gpu->compute_mode)
GIVE_NUMBER(nvmlDeviceGetPowerManagementLimit, QUERY_OPTIONAL, gpu, gpu->power_limit_mw)
GIVE_NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, QUERY_OPTIONAL, gpu, gpu->pcie_gen_max)
GIVE_NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, QUERY_OPTIONAL, gpu, gpu->pcie_gen)
GIVE_NUMBER(nvmlDeviceGetMaxPcieLinkWidth, QUERY_OPTIONAL, gpu, gpu->pcie_width_max)
GIVE_NUMBER(nvmlDeviceGetCurrPcieLinkWidth, QUERY_OPTIONAL, gpu, gpu->pcie_width)

/* Only a GPU whose memory is a NUMA node of the kernel (Grace Hopper) has one; none here has. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, unsigned int *node)
{
    struct session session;
    if (!session_begin_device(&session, device, QUERY_OPTIONAL))
        return session.result;
    return session_end(&session, node == NULL ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_NOT_SUPPORTED);
}

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

/* The first version of the call counts reserved memory as used. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    struct session session;
    if (!session_begin_device(&session, device, QUERY_OPTIONAL))
        return session.result;
    if (memory == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    memory->total = session.gpu->memory_total;
    memory->used = session.gpu->memory_used + session.gpu->memory_reserved;
    memory->free = memory->total - memory->used;
    return session_end(&session, NVML_SUCCESS);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    struct session session;
    if (!session_begin_device(&session, device, QUERY_OPTIONAL))
        return session.result;
    if (memory == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    if (memory->version != NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2U))
        return session_end(&session, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    memory->total = session.gpu->memory_total;
    memory->reserved = session.gpu->memory_reserved;
    memory->used = session.gpu->memory_used;
    memory->free = memory->total - memory->reserved - memory->used;
    return session_end(&session, NVML_SUCCESS);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory)
{
    struct session session;
    if (!session_begin_device(&session, device, QUERY_OPTIONAL))
        return session.result;
    if (memory == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    memory->bar1Total = session.gpu->bar1_total;
    memory->bar1Used = session.gpu->bar1_used;
    memory->bar1Free = memory->bar1Total - memory->bar1Used;
    return session_end(&session, NVML_SUCCESS);
}

/* Two modes, now and after the next reset; the simulation has no pending change of its own. */
static nvmlReturn_t give_modes(struct session *session, bool supported, unsigned long long mode,
                               unsigned int *current, unsigned int *pending)
{
    if (current == NULL || pending == NULL)
        return session_end(session, NVML_ERROR_INVALID_ARGUMENT);
    if (!supported)
        return session_end(session, NVML_ERROR_NOT_SUPPORTED);
    *current = *pending = (unsigned int)mode;
    return session_end(session, NVML_SUCCESS);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned int *current,
                                              unsigned int *pending)
{
    struct session session;
    if (!session_begin_device(&session, device, QUERY_OPTIONAL))
        return session.result;
    return give_modes(&session, session.gpu->ecc_supported, session.gpu->ecc_enabled, current,
                      pending);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current,
                                              unsigned int *pending)
{
    struct session session;
    if (!session_begin_device(&session, device, QUERY_OPTIONAL))
        return session.result;
    return give_modes(&session, session.gpu->mig_supported, 0, current, pending);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGspFirmwareMode(nvmlDevice_t device, unsigned int *enabled,
                                                      unsigned int *default_mode)
{
    struct session session;
    if (!session_begin_device(&session, device, QUERY_OPTIONAL))
        return session.result;
    return give_modes(&session, true, session.gpu->gsp, enabled, default_mode);
}

/* No simulated process ever computes. NULL with a count of 0 is how callers ask for the size. */
static nvmlReturn_t no_processes(nvmlDevice_t device, unsigned int *count)
{
    struct session session;
    if (!session_begin_device(&session, device, QUERY_OPTIONAL))
        return session.result;
    if (count == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    *count = 0;
    return session_end(&session, NVML_SUCCESS);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device,
                                                                 unsigned int *count,
                                                                 void *processes)
{
    (void)processes;
    return no_processes(device, count);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device,
                                                              unsigned int *count,
                                                              void *processes)
{
    (void)processes;
    return no_processes(device, count);
}
