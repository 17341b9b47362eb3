/* SIMULATION for the steadygpu lab: not NVIDIA's library.
 *
 * How a GPU is set and how it is: modes, power, clocks, PCIe link, ECC, remapped rows, firmware.
 */
#include "give.h"

GIVE_NUMBER(nvmlDeviceGetPersistenceMode, QUERY_OPTIONAL, gpu, gpu->persistence)
GIVE_NUMBER(nvmlDeviceGetComputeMode, QUERY_OPTIONAL, gpu, gpu->compute_mode)
GIVE_NUMBER(nvmlDeviceGetDisplayActive, QUERY_OPTIONAL, gpu, gpu->display_active)
GIVE_NUMBER(nvmlDeviceGetDisplayMode, QUERY_OPTIONAL, gpu, gpu->display_mode)
GIVE_NUMBER(nvmlDeviceGetPowerManagementLimit, QUERY_OPTIONAL, gpu, gpu->power_limit_mw)
GIVE_NUMBER(nvmlDeviceGetEnforcedPowerLimit, QUERY_OPTIONAL, gpu, gpu->power_limit_mw)
GIVE_NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, QUERY_OPTIONAL, gpu, gpu->power_default_mw)
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
    return session_end(&session,
                       node == NULL ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_NOT_SUPPORTED);
}

/* Two numbers at once, where the GPU has them. */
static nvmlReturn_t give_two(struct session *session, bool supported, unsigned long long one,
                             unsigned long long other, unsigned int *first, unsigned int *second)
{
    if (first == NULL || second == NULL)
        return session_end(session, NVML_ERROR_INVALID_ARGUMENT);
    if (!supported)
        return session_end(session, NVML_ERROR_NOT_SUPPORTED);
    *first = (unsigned int)one;
    *second = (unsigned int)other;
    return session_end(session, NVML_SUCCESS);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device,
                                                                      unsigned int *least,
                                                                      unsigned int *most)
{
    struct session session;
    if (!session_begin_device(&session, device, QUERY_OPTIONAL))
        return session.result;
    const struct gpu *gpu = session.gpu;
    return give_two(&session, gpu->power_max_mw, gpu->power_min_mw, gpu->power_max_mw, least, most);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned int *current,
                                              unsigned int *pending)
{
    struct session session;
    if (!session_begin_device(&session, device, QUERY_OPTIONAL))
        return session.result;
    const struct gpu *gpu = session.gpu;
    return give_two(&session, gpu->ecc_supported, gpu->ecc_enabled, gpu->ecc_pending, current,
                    pending);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGspFirmwareMode(nvmlDevice_t device, unsigned int *enabled,
                                                      unsigned int *default_mode)
{
    struct session session;
    if (!session_begin_device(&session, device, QUERY_OPTIONAL))
        return session.result;
    return give_two(&session, true, session.gpu->gsp, session.gpu->gsp, enabled, default_mode);
}

/* The firmware comes with the module. The caller's buffer holds 64 bytes by contract. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char *version)
{
    struct session session;
    if (!session_begin_device(&session, device, QUERY_OPTIONAL))
        return session.result;
    if (!session.gpu->gsp)
        return session_end(&session, NVML_ERROR_NOT_SUPPORTED);
    return session_end(&session, give_text(version, 64, session.state->module_version));
}

enum { CLOCK_GRAPHICS, CLOCK_SM, CLOCK_MEMORY, CLOCK_VIDEO, CLOCK_TYPES };

/* Graphics and video clocks follow the SM clock here; 0 MHz is a clock that is not known. */
static nvmlReturn_t give_clock(nvmlDevice_t device, unsigned int type, bool highest,
                               unsigned int *clock)
{
    struct session session;
    if (!session_begin_device(&session, device, QUERY_OPTIONAL))
        return session.result;
    if (type >= CLOCK_TYPES || clock == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    const struct gpu *gpu = session.gpu;
    const unsigned long long sm = highest ? gpu->clock_sm_max : gpu->clock_sm;
    const unsigned long long memory = highest ? gpu->clock_memory_max : gpu->clock_memory;
    *clock = (unsigned int)(type == CLOCK_MEMORY ? memory : sm);
    return session_end(&session, *clock == 0 ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned int type,
                                                unsigned int *clock)
{
    return give_clock(device, type, false, clock);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, unsigned int type,
                                                   unsigned int *clock)
{
    return give_clock(device, type, true, clock);
}

/* `counter` is since boot or for good: the simulation counts both alike. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned int type,
                                                     unsigned int counter,
                                                     unsigned long long *count)
{
    struct session session;
    if (!session_begin_device(&session, device, QUERY_OPTIONAL))
        return session.result;
    if (type > 1 || counter > 1 || count == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    if (!session.gpu->ecc_supported || !session.gpu->ecc_enabled)
        return session_end(&session, NVML_ERROR_NOT_SUPPORTED);
    *count = type == 0 ? session.gpu->ecc_corrected : session.gpu->ecc_uncorrected;
    return session_end(&session, NVML_SUCCESS);
}

/* Ampere and newer data-centre GPUs remap rows; older ones retire pages. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *corrected,
                                                   unsigned int *uncorrected,
                                                   unsigned int *pending, unsigned int *failed)
{
    struct session session;
    if (!session_begin_device(&session, device, QUERY_OPTIONAL))
        return session.result;
    if (corrected == NULL || uncorrected == NULL || pending == NULL || failed == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    const struct gpu *gpu = session.gpu;
    if (!gpu->remap_supported)
        return session_end(&session, NVML_ERROR_NOT_SUPPORTED);
    *corrected = (unsigned int)gpu->remapped_corrected;
    *uncorrected = (unsigned int)gpu->remapped_uncorrected;
    *pending = gpu->remapped_pending != 0;
    *failed = gpu->remapped_failed != 0;
    return session_end(&session, NVML_SUCCESS);
}
