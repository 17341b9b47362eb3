/* SIMULATION for the steadygpu lab: not NVIDIA's library.
 *
 * Calls about how GPUs, CPUs and memory are joined: affinity, PCIe levels, NVLink, fabric.
 */
#include "pci.h"
#include "session.h"

#include <string.h>

static nvmlReturn_t give_words(struct session *session, unsigned int size, unsigned long *set,
                               const unsigned long long *words, unsigned int known)
{
    if (size == 0 || set == NULL)
        return session_end(session, NVML_ERROR_INVALID_ARGUMENT);
    for (unsigned int i = 0; i < size; i++)
        set[i] = i < known ? (unsigned long)words[i] : 0UL;
    return session_end(session, NVML_SUCCESS);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int size,
                                                  unsigned long *set)
{
    struct session session;
    if (!session_begin_device(&session, device, QUERY_OPTIONAL))
        return session.result;
    return give_words(&session, size, set, session.gpu->cpu_mask, MAX_CPU_WORDS);
}

/* Scope (node or socket) makes no difference: a lab machine has one node a socket. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned int size,
                                                             unsigned long *set, unsigned int scope)
{
    return scope > 1 ? NVML_ERROR_INVALID_ARGUMENT : nvmlDeviceGetCpuAffinity(device, size, set);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int size,
                                                     unsigned long *set,
                                                     unsigned int scope)
{
    struct session session;
    if (!session_begin_device(&session, device, QUERY_OPTIONAL))
        return session.result;
    if (scope > 1)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    const unsigned long long nodes = 1ULL << session.gpu->numa_node;
    return give_words(&session, size, set, &nodes, 1);
}

/* Both ends of a question about two GPUs. False: the session is over. */
static bool begin_pair(struct session *session, nvmlDevice_t one, nvmlDevice_t other,
                       const void *result,
                       struct gpu **second)
{
    if (!session_begin_device(session, one, QUERY_OPTIONAL))
        return false;
    *second = gpu_of(session->state, other);
    if (*second == NULL || result == NULL)
        session_end(session, NVML_ERROR_INVALID_ARGUMENT);
    else if ((*second)->lost)
        session_end(session, NVML_ERROR_GPU_IS_LOST);
    else
        return true;
    return false;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t one, nvmlDevice_t other,
                                                             unsigned int *level)
{
    struct session session;
    struct gpu *second;
    if (!begin_pair(&session, one, other, level, &second))
        return session.result;
    *level = (unsigned int)session.gpu->level[second - session.state->gpus];
    return session_end(&session, NVML_SUCCESS);
}

/* Joined directly, or both joined to switches. */
static bool joined_by_nvlink(const struct gpu *one, const struct gpu *other)
{
    bool one_to_switch = false, other_to_switch = false;
    for (unsigned int i = 0; i < NVML_NVLINK_MAX_LINKS; i++) {
        const struct link *link = &one->links[i];
        if (link->present && link->up && !link->to_switch && strcmp(link->remote, other->pci) == 0)
            return true;
        one_to_switch |= link->present && link->up && link->to_switch;
        other_to_switch |= other->links[i].present && other->links[i].up && other->links[i].to_switch;
    }
    return one_to_switch && other_to_switch;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t one, nvmlDevice_t other,
                                                unsigned int capability,
                                                unsigned int *status)
{
    struct session session;
    struct gpu *second;
    if (!begin_pair(&session, one, other, status, &second))
        return session.result;
    if (capability >= NVML_P2P_CAPS_INDEX_UNKNOWN)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    if (joined_by_nvlink(session.gpu, second))
        *status = NVML_P2P_STATUS_OK;
    else if (capability == NVML_P2P_CAPS_INDEX_NVLINK)
        *status = NVML_P2P_STATUS_NOT_SUPPORTED;
    else /* over PCIe both ends must be able to */
        *status = (unsigned int)(session.gpu->p2p_status ? session.gpu->p2p_status : second->p2p_status);
    return session_end(&session, NVML_SUCCESS);
}

/* The link asked about; NULL: session.result says why. GPUs without NVLink do not know the call. */
static const struct link *begin_link(struct session *session, nvmlDevice_t device,
                                     unsigned int index,
                                     const void *result)
{
    if (!session_begin_device(session, device, QUERY_OPTIONAL))
        return NULL;
    if (result == NULL || index >= NVML_NVLINK_MAX_LINKS)
        session_end(session, NVML_ERROR_INVALID_ARGUMENT);
    else if (session->gpu->nvlink_version == 0 || !session->gpu->links[index].present)
        session_end(session, NVML_ERROR_NOT_SUPPORTED);
    else
        return &session->gpu->links[index];
    return NULL;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int index,
                                                  unsigned int *active)
{
    struct session session;
    const struct link *link = begin_link(&session, device, index, active);
    if (link == NULL)
        return session.result;
    *active = link->up ? 1U : 0U;
    return session_end(&session, NVML_SUCCESS);
}

/* The state holds generations; NVML answers with its enumeration, which counts 2.2 and 3.1 too. */
static unsigned int nvlink_version_code(int generation)
{
    static const unsigned int codes[] = {0, 1, 2, 4, 6, 7};
    const int known = (int)(sizeof codes / sizeof codes[0]);
    return generation > 0 && generation < known ? codes[generation] : 0;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int index,
                                                    unsigned int *version)
{
    struct session session;
    if (begin_link(&session, device, index, version) == NULL)
        return session.result;
    *version = nvlink_version_code((int)session.gpu->nvlink_version);
    return session_end(&session, NVML_SUCCESS);
}

/* P2P and system memory, with atomics; no simulated link is an SLI bridge. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned int index,
                                                       unsigned int capability, unsigned int *result)
{
    struct session session;
    if (begin_link(&session, device, index, result) == NULL)
        return session.result;
    if (capability >= NVML_NVLINK_CAP_COUNT)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    *result = capability != NVML_NVLINK_CAP_SLI_BRIDGE;
    return session_end(&session, NVML_SUCCESS);
}

/* A link that is down does not know what is at its other end. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device,
                                                             unsigned int index,
                                                             nvmlPciInfo_t *info)
{
    struct session session;
    const struct link *link = begin_link(&session, device, index, info);
    if (link == NULL)
        return session.result;
    if (!link->up)
        return session_end(&session, NVML_ERROR_NOT_SUPPORTED);
    fill_pci_info(info, link->remote);
    return session_end(&session, NVML_SUCCESS);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned int index,
                                                          nvmlPciInfo_t *info)
{
    return nvmlDeviceGetNvLinkRemotePciInfo_v2(device, index, info);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device,
                                                             unsigned int index,
                                                             unsigned int *type)
{
    struct session session;
    const struct link *link = begin_link(&session, device, index, type);
    if (link == NULL)
        return session.result;
    if (!link->up)
        return session_end(&session, NVML_ERROR_NOT_SUPPORTED);
    *type = link->to_switch ? NVML_NVLINK_DEVICE_TYPE_SWITCH : NVML_NVLINK_DEVICE_TYPE_GPU;
    return session_end(&session, NVML_SUCCESS);
}

/* What both calls tell: this machine is no part of a cluster, the UUID is zero. */
static nvmlGpuFabricInfo_v3_t fabric_of(const struct gpu *gpu)
{
    return (nvmlGpuFabricInfo_v3_t){
        .status = (nvmlReturn_t)gpu->fabric_status,
        .cliqueId = (unsigned int)gpu->fabric_clique,
        .state = (unsigned char)gpu->fabric_state,
    };
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *info)
{
    struct session session;
    if (!session_begin_device(&session, device, QUERY_OPTIONAL))
        return session.result;
    if (info == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    if (!session.gpu->fabric)
        return session_end(&session, NVML_ERROR_NOT_SUPPORTED);
    const nvmlGpuFabricInfo_v3_t known = fabric_of(session.gpu);
    *info = (nvmlGpuFabricInfo_t){
        .status = known.status, .cliqueId = known.cliqueId, .state = known.state};
    return session_end(&session, NVML_SUCCESS);
}

/* Versions 2 and 3; the second is the beginning of the third, but for what its size adds. */
NVML_EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, void *info)
{
    struct session session;
    unsigned int version;
    if (!session_begin_device(&session, device, QUERY_OPTIONAL))
        return session.result;
    if (info == NULL)
        return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);
    if (!session.gpu->fabric)
        return session_end(&session, NVML_ERROR_NOT_SUPPORTED);
    nvmlGpuFabricInfo_v3_t known = fabric_of(session.gpu);
    memcpy(&version, info, sizeof version);
    known.version = version;
    if (version == NVML_STRUCT_VERSION(nvmlGpuFabricInfo_v2_t, 2U))
        memcpy(info, &known, sizeof(nvmlGpuFabricInfo_v2_t));
    else if (version == NVML_STRUCT_VERSION(nvmlGpuFabricInfo_v3_t, 3U))
        memcpy(info, &known, sizeof known);
    else
        return session_end(&session, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    return session_end(&session, NVML_SUCCESS);
}
