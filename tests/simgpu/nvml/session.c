/* SIMULATION for the steadygpu lab: not NVIDIA's library.
 *
 * Library life cycle: nvmlInit and nvmlShutdown, the lock, and which GPUs a process may see.
 */
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct state state;
static struct mig_store store;
static unsigned int initialised;
static unsigned int visible[MAX_GPUS];
static unsigned int visible_total;
static bool visible_known; /* false: the state file has changed since */

/* A node made by mknod answers ENXIO on open (no driver behind it) where the device cgroup
 * allows it and EPERM where it does not; a missing node answers ENOENT. */
static int node_error(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0) {
        close(fd);
        return 0;
    }
    return errno == ENXIO || errno == ENODEV ? 0 : errno;
}

bool may_open(const struct state *current, const char *path)
{
    return !current->check_nodes || node_error(path) == 0;
}

/* As in a container with a real driver: what cannot be opened is not counted. */
static void find_visible(void)
{
    visible_known = true;
    visible_total = 0;
    for (unsigned int slot = 0; slot < state.count; slot++) {
        char path[64];
        snprintf(path, sizeof path, "/dev/nvidia%llu", state.gpus[slot].minor);
        if (may_open(&state, path))
            visible[visible_total++] = slot;
    }
}

/* NVML_SUCCESS, or why the "driver" cannot be talked to. */
static nvmlReturn_t driver_status(void)
{
    if (state_refresh(&state))
        visible_known = false;
    if (state.fail == FAIL_TIMEOUT) {
        pthread_mutex_unlock(&lock); /* other threads get here and hang by themselves */
        for (;;)
            pause();
    }
    if (!state.loaded || state.fail == FAIL_DRIVER_NOT_LOADED)
        return NVML_ERROR_DRIVER_NOT_LOADED;
    if (strcmp(state.module_version, SIMGPU_LIBRARY_VERSION) != 0)
        return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    return NVML_SUCCESS;
}

/* A control node that a container lost is the field's "Failed to initialize NVML: Unknown
 * Error"; one that was never there looks like an absent driver. */
static nvmlReturn_t control_node_status(void)
{
    if (!state.check_nodes)
        return NVML_SUCCESS;
    switch (node_error("/dev/nvidiactl")) {
    case 0:
        return NVML_SUCCESS;
    case ENOENT:
        return NVML_ERROR_DRIVER_NOT_LOADED;
    default:
        return NVML_ERROR_UNKNOWN;
    }
}

NVML_EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    (void)flags;
    pthread_mutex_lock(&lock);
    nvmlReturn_t result = driver_status();
    if (result == NVML_SUCCESS)
        result = control_node_status();
    if (result == NVML_SUCCESS) {
        find_visible(); /* nodes may have come or gone since the state file was written */
        initialised++;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

NVML_EXPORT nvmlReturn_t nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

NVML_EXPORT nvmlReturn_t nvmlInit(void)
{
    return nvmlInitWithFlags(0);
}

NVML_EXPORT nvmlReturn_t nvmlShutdown(void)
{
    nvmlReturn_t result = NVML_ERROR_UNINITIALIZED;
    pthread_mutex_lock(&lock);
    if (initialised > 0) {
        initialised--;
        result = NVML_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

bool session_begin(struct session *session)
{
    pthread_mutex_lock(&lock);
    *session = (struct session){.state = &state, .store = &store};
    session->result = initialised == 0 ? NVML_ERROR_UNINITIALIZED : driver_status();
    if (session->result == NVML_SUCCESS) {
        if (!visible_known)
            find_visible();
        mig_store_refresh(&store, &state);
        return true;
    }
    pthread_mutex_unlock(&lock);
    return false;
}

static bool is_visible(unsigned int slot)
{
    for (unsigned int i = 0; i < visible_total; i++)
        if (visible[i] == slot)
            return true;
    return false;
}

/* Whether every instance the handle names is there. */
static bool exists(struct place place)
{
    if (!is_visible(place.gpu))
        return false;
    if (place.gpu_instance == NO_INSTANCE)
        return true;
    const struct gpu_instance *instance = &store.gpus[place.gpu].instances[place.gpu_instance];
    return instance->present && (place.compute_instance == NO_INSTANCE ||
                                 instance->compute[place.compute_instance].present);
}

/* The session is begun; `known`: the handle was ours and stands for `place`. */
static bool begin_place(struct session *session, bool known, struct place place, enum query query)
{
    if (!known || !exists(place)) {
        session_end(session, NVML_ERROR_INVALID_ARGUMENT);
        return false;
    }
    session->place = place;
    session->gpu = &state.gpus[place.gpu];
    session->mig = &store.gpus[place.gpu];
    if (session->gpu->lost)
        session_end(session, NVML_ERROR_GPU_IS_LOST);
    else if (query == QUERY_OPTIONAL && state.fail == FAIL_NOT_SUPPORTED)
        session_end(session, NVML_ERROR_NOT_SUPPORTED);
    else
        return true;
    return false;
}

bool session_begin_any(struct session *session, nvmlDevice_t device, enum query query)
{
    struct place place = {0};
    const bool known = place_of_device(device, &place);
    return session_begin(session) && begin_place(session, known, place, query);
}

bool session_begin_device(struct session *session, nvmlDevice_t device, enum query query)
{
    if (!session_begin_any(session, device, query))
        return false;
    if (session->place.gpu_instance == NO_INSTANCE)
        return true;
    session_end(session, NVML_ERROR_NOT_SUPPORTED);
    return false;
}

bool session_begin_gpu_instance(struct session *session, nvmlGpuInstance_t instance)
{
    struct place place = {0};
    const bool known = place_of_gpu_instance(instance, &place);
    return session_begin(session) && begin_place(session, known, place, QUERY_OPTIONAL);
}

bool session_begin_compute_instance(struct session *session, nvmlComputeInstance_t instance)
{
    struct place place = {0};
    const bool known = place_of_compute_instance(instance, &place);
    return session_begin(session) && begin_place(session, known, place, QUERY_OPTIONAL);
}

nvmlReturn_t session_end(struct session *session, nvmlReturn_t result)
{
    session->result = result;
    pthread_mutex_unlock(&lock);
    return result;
}

unsigned int visible_count(void)
{
    return visible_total;
}

unsigned int visible_slot(unsigned int index)
{
    return visible[index];
}

unsigned int visible_index_of(const struct state *current, const struct gpu *gpu)
{
    unsigned int index = 0;
    while (index < visible_total && &current->gpus[visible[index]] != gpu)
        index++;
    return index;
}

nvmlDevice_t handle_of(unsigned int slot)
{
    return device_handle((struct place){slot, NO_INSTANCE, NO_INSTANCE});
}

struct gpu *gpu_of(struct state *current, nvmlDevice_t device)
{
    struct place place;
    if (!place_of_device(device, &place) || place.gpu_instance != NO_INSTANCE ||
        !is_visible(place.gpu))
        return NULL;
    return &current->gpus[place.gpu];
}

nvmlReturn_t give_text(char *buffer, unsigned int size, const char *text)
{
    const size_t needed = strlen(text) + 1;
    if (buffer == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (needed > size)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(buffer, text, needed);
    return NVML_SUCCESS;
}
