/* SIMULATION for the steadygpu lab: not NVIDIA's library.
 *
 * Running processes. Nothing computes here, so whoever has the GPU open counts: display servers
 * as graphics processes, everybody else as compute processes.
 */
#include "holders.h"

#include <string.h>

#define NVML_VALUE_NOT_AVAILABLE (~0ULL)

static bool draws(const struct holder *holder)
{
    static const char *const names[] = {"Xorg", "Xwayland", "gnome-shell", "kwin_wayland"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(holder->name, names[i]) == 0)
            return true;
    return false;
}

/* One entry a process, and of a process's holdings the most special one. */
static unsigned int one_each(struct holder holders[MAX_HOLDERS], unsigned int count)
{
    unsigned int kept = 0;
    for (unsigned int i = 0; i < count; i++) {
        unsigned int same = 0;
        while (same < kept && holders[same].pid != holders[i].pid)
            same++;
        if (same == kept)
            holders[kept++] = holders[i];
        else if (holders[same].gpu_instance == NO_INSTANCE ||
                 holders[same].compute_instance == NO_INSTANCE)
            holders[same] = holders[i];
    }
    return kept;
}

/* Does a process with this holding belong to the device asked about? */
static bool belongs(const struct session *session, const struct holder *holder)
{
    return session->place.gpu_instance == NO_INSTANCE ||
           (holder->gpu_instance == session->place.gpu_instance &&
            (holder->compute_instance == NO_INSTANCE ||
             holder->compute_instance == session->place.compute_instance));
}

/* Used memory is shared out evenly; in MIG mode the driver does not know it. NULL with a count of
 * 0 is how callers ask for the size. */
static nvmlReturn_t give_processes(nvmlDevice_t device, bool graphics, unsigned int *count,
                                   nvmlProcessInfo_t *processes)
{
    struct session session;
    struct holder holders[MAX_HOLDERS];
    if (!session_begin_any(&session, device, QUERY_OPTIONAL))
        return session.result;
    if (count == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    const unsigned int all =
        one_each(holders, find_holders(session.state, session.place.gpu, holders));
    const unsigned int room = processes == NULL ? 0 : *count;
    unsigned int found = 0;
    for (unsigned int i = 0; i < all; i++) {
        if (draws(&holders[i]) != graphics || !belongs(&session, &holders[i]))
            continue;
        if (found < room)
            processes[found] = (nvmlProcessInfo_t){
                .pid = holders[i].pid,
                .usedGpuMemory = session.mig->current ? NVML_VALUE_NOT_AVAILABLE
                                                      : session.gpu->memory_used / all,
                .gpuInstanceId = holders[i].gpu_instance,
                .computeInstanceId = holders[i].compute_instance,
            };
        found++;
    }
    *count = found;
    return session_end(&session, found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device,
                                                                 unsigned int *count,
                                                                 nvmlProcessInfo_t *processes)
{
    return give_processes(device, false, count, processes);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device,
                                                                  unsigned int *count,
                                                                  nvmlProcessInfo_t *processes)
{
    return give_processes(device, true, count, processes);
}

/* The second version has the third's layout. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device,
                                                                 unsigned int *count,
                                                                 nvmlProcessInfo_t *processes)
{
    return give_processes(device, false, count, processes);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device,
                                                                  unsigned int *count,
                                                                  nvmlProcessInfo_t *processes)
{
    return give_processes(device, true, count, processes);
}
