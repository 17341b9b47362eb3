/* SIMULATION for the steadygpu lab: not NVIDIA's library.
 *
 * Calls about the system, and from an index, UUID, serial or PCI address to a handle.
 */
#include "mig_devices.h"
#include "names.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The texts of the real library, as nvidia-ml-py lists them. */
NVML_EXPORT const char *nvmlErrorString(nvmlReturn_t result)
{
    switch (result) {
    case NVML_SUCCESS:
        return "Success";
    case NVML_ERROR_UNINITIALIZED:
        return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
        return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED:
        return "Not Supported";
    case NVML_ERROR_NO_PERMISSION:
        return "Insufficient Permissions";
    case NVML_ERROR_NOT_FOUND:
        return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
        return "Insufficient Size";
    case NVML_ERROR_DRIVER_NOT_LOADED:
        return "Driver Not Loaded";
    case NVML_ERROR_GPU_IS_LOST:
        return "GPU is lost";
    case NVML_ERROR_RESET_REQUIRED:
        return "GPU requires restart";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
        return "RM has detected an NVML/RM version mismatch.";
    case NVML_ERROR_IN_USE:
        return "In use by another client";
    case NVML_ERROR_INSUFFICIENT_RESOURCES:
        return "Insufficient Resources";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
        return "Argument version mismatch";
    default:
        return "Unknown Error";
    }
}

NVML_EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int size)
{
    struct session session;
    if (!session_begin(&session))
        return session.result;
    return session_end(&session, give_text(version, size, session.state->module_version));
}

/* Answers without nvmlInit, as the real call does: it is a property of the library. */
NVML_EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int size)
{
    return give_text(version, size, "12." SIMGPU_LIBRARY_VERSION);
}

static nvmlReturn_t cuda_version(int *version)
{
    struct session session;
    if (!session_begin(&session))
        return session.result;
    if (version == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    *version = (int)session.state->cuda_version;
    return session_end(&session, NVML_SUCCESS);
}

NVML_EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    return cuda_version(version);
}

NVML_EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return cuda_version(version);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    struct session session;
    if (!session_begin(&session))
        return session.result;
    if (count == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    *count = visible_count();
    return session_end(&session, NVML_SUCCESS);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
    return nvmlDeviceGetCount_v2(count);
}

static nvmlReturn_t give_handle(const struct session *session, unsigned int index,
                                nvmlDevice_t *device)
{
    const unsigned int slot = visible_slot(index);
    if (session->state->gpus[slot].lost)
        return NVML_ERROR_GPU_IS_LOST;
    *device = handle_of(slot);
    return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    struct session session;
    if (!session_begin(&session))
        return session.result;
    if (device == NULL || index >= visible_count())
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    return session_end(&session, give_handle(&session, index, device));
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

/* `matches` says whether a GPU is the one that `wanted` names. */
static nvmlReturn_t find_handle(const char *wanted, nvmlDevice_t *device,
                                bool (*matches)(const struct gpu *, const char *))
{
    struct session session;
    if (!session_begin(&session))
        return session.result;
    if (wanted == NULL || device == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    for (unsigned int index = 0; index < visible_count(); index++)
        if (matches(&session.state->gpus[visible_slot(index)], wanted))
            return session_end(&session, give_handle(&session, index, device));
    return session_end(&session, NVML_ERROR_NOT_FOUND);
}

static bool has_uuid(const struct gpu *gpu, const char *wanted)
{
    return strcmp(gpu->uuid, wanted) == 0;
}

static bool has_serial(const struct gpu *gpu, const char *wanted)
{
    return gpu->serial[0] != '\0' && strcmp(gpu->serial, wanted) == 0;
}

/* Accepts bb:dd.f, dddd:bb:dd.f and dddddddd:bb:dd.f in either case, as the real call does. */
static bool has_address(const struct gpu *gpu, const char *wanted)
{
    const char *ours = gpu->pci;
    const size_t length = strlen(wanted), own = strlen(ours);

    if (length == own + 4 && strncmp(wanted, "0000", 4) == 0)
        wanted += 4;
    else if (length + 5 == own && strncmp(ours, "0000:", 5) == 0)
        ours += 5;
    return strcasecmp(ours, wanted) == 0;
}

/* The MIG device with that UUID, among those of the GPUs that can be asked. */
static nvmlReturn_t find_mig_device(const char *uuid, nvmlDevice_t *device)
{
    struct session session;
    struct place place;
    char own[UUID_SIZE];
    if (!session_begin(&session))
        return session.result;
    if (device == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    for (unsigned int index = 0; index < visible_count(); index++)
        for (unsigned int i = 0; mig_device_at(&session, visible_slot(index), i, &place); i++) {
            mig_uuid(own, &session.state->gpus[place.gpu], place);
            if (strcmp(own, uuid) == 0) {
                *device = device_handle(place);
                return session_end(&session, NVML_SUCCESS);
            }
        }
    return session_end(&session, NVML_ERROR_NOT_FOUND);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    if (uuid != NULL && strncmp(uuid, "MIG-", 4) == 0)
        return find_mig_device(uuid, device);
    return find_handle(uuid, device, has_uuid);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
    return find_handle(serial, device, has_serial);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *address, nvmlDevice_t *device)
{
    return find_handle(address, device, has_address);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *address, nvmlDevice_t *device)
{
    return find_handle(address, device, has_address);
}
