/* SIMULATION for the steadygpu lab: not NVIDIA's library. */
#include "capabilities.h"
#include "words.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { FIRST_MINOR = 3, PER_INSTANCE = 1 + MAX_COMPUTE_INSTANCES };
enum { PER_GPU = MAX_GPU_INSTANCES * PER_INSTANCE };
enum { MAX_PATH = 512 };

#define NODE_PREFIX "nvidia-cap"

unsigned int capability_minor(const struct gpu *gpu, struct place place)
{
    const unsigned int part =
        place.compute_instance == NO_INSTANCE ? 0 : 1 + place.compute_instance;
    return FIRST_MINOR + (unsigned int)gpu->minor * PER_GPU + place.gpu_instance * PER_INSTANCE +
           part;
}

bool capability_place(const struct state *state, unsigned int minor, struct place *place)
{
    if (minor < FIRST_MINOR)
        return false;
    const unsigned int number = minor - FIRST_MINOR, part = number % PER_INSTANCE;
    for (unsigned int slot = 0; slot < state->count; slot++)
        if (state->gpus[slot].minor == number / PER_GPU) {
            *place = (struct place){slot, number % PER_GPU / PER_INSTANCE,
                                    part == 0 ? NO_INSTANCE : part - 1};
            return true;
        }
    return false;
}

/* Whether the store has the instance. */
static bool is_present(const struct mig_store *store, struct place place)
{
    const struct gpu_instance *instance = &store->gpus[place.gpu].instances[place.gpu_instance];
    return instance->present && (place.compute_instance == NO_INSTANCE ||
                                 instance->compute[place.compute_instance].present);
}

/* A directory entry gi<id> or ci<id> whose instance is gone is removed, with what is below it. */
static void remove_tree(const char *path)
{
    DIR *directory = opendir(path);
    if (directory != NULL) {
        for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
            char below[MAX_PATH];
            if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                continue;
            if (snprintf(below, sizeof below, "%s/%s", path, entry->d_name) < MAX_PATH)
                remove_tree(below);
        }
        closedir(directory);
    }
    remove(path);
}

static void write_access(const char *directory, unsigned int minor)
{
    char path[MAX_PATH], text[96];
    if (snprintf(path, sizeof path, "%s/access", directory) >= MAX_PATH)
        return;
    const int length = snprintf(text, sizeof text,
                                "DeviceFileMinor: %u\nDeviceFileMode: 292\nDeviceFileModify: 1\n",
                                minor);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0444);
    if (fd < 0)
        return;
    if (write(fd, text, (size_t)length) != length)
        unlink(path);
    close(fd);
}

/* `directory`/access where the store has the instance, and no such directory where it has not. */
static void sync_directory(const struct state *state, const struct mig_store *store,
                           struct place place, const char *directory)
{
    if (!is_present(store, place)) {
        if (access(directory, F_OK) == 0)
            remove_tree(directory);
        return;
    }
    mkdir(directory, 0555);
    write_access(directory, capability_minor(&state->gpus[place.gpu], place));
}

static void sync_gpu(const struct state *state, const struct mig_store *store, unsigned int slot,
                     const char *capabilities)
{
    char base[MAX_PATH], path[2 * MAX_PATH];

    snprintf(base, sizeof base, "%s/gpu%llu", capabilities, state->gpus[slot].minor);
    if (!store->gpus[slot].current) {
        if (access(base, F_OK) == 0)
            remove_tree(base);
        return;
    }
    mkdir(base, 0555);
    snprintf(base, sizeof base, "%s/gpu%llu/mig", capabilities, state->gpus[slot].minor);
    mkdir(base, 0555);
    for (unsigned int i = 0; i < MAX_GPU_INSTANCES; i++) {
        struct place place = {slot, i, NO_INSTANCE};
        snprintf(path, sizeof path, "%s/gi%u", base, i);
        sync_directory(state, store, place, path);
        for (unsigned int c = 0; c < MAX_COMPUTE_INSTANCES && is_present(store, place); c++) {
            struct place part = {slot, i, c};
            snprintf(path, sizeof path, "%s/gi%u/ci%u", base, i, c);
            sync_directory(state, store, part, path);
        }
    }
}

static void remove_stale_nodes(const struct state *state, const struct mig_store *store,
                               const char *directory)
{
    DIR *nodes = opendir(directory);
    if (nodes == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(nodes)) != NULL;) {
        struct place place;
        if (strncmp(entry->d_name, NODE_PREFIX, strlen(NODE_PREFIX)) != 0)
            continue;
        const unsigned int minor = (unsigned int)number(entry->d_name + strlen(NODE_PREFIX));
        if (minor >= FIRST_MINOR &&
            !(capability_place(state, minor, &place) && is_present(store, place)))
            unlinkat(dirfd(nodes), entry->d_name, 0);
    }
    closedir(nodes);
}

static void make_node(const struct state *state, const char *directory, struct place place)
{
    char path[MAX_PATH];
    const unsigned int minor = capability_minor(&state->gpus[place.gpu], place);
    snprintf(path, sizeof path, "%s/" NODE_PREFIX "%u", directory, minor);
    if (mknod(path, S_IFCHR | 0444, makedev(state->caps_major, minor)) == 0)
        chmod(path, 0444); /* whatever the umask */
}

static void sync_nodes(const struct state *state, const struct mig_store *store,
                       const char *directory)
{
    mkdir(directory, 0755);
    remove_stale_nodes(state, store, directory);
    for (unsigned int slot = 0; slot < state->count; slot++)
        for (unsigned int i = 0; i < MAX_GPU_INSTANCES; i++) {
            struct place place = {slot, i, NO_INSTANCE};
            if (!is_present(store, place))
                continue;
            make_node(state, directory, place);
            for (unsigned int c = 0; c < MAX_COMPUTE_INSTANCES; c++) {
                struct place part = {slot, i, c};
                if (is_present(store, part))
                    make_node(state, directory, part);
            }
        }
}

void capabilities_sync(const struct state *state, const struct mig_store *store)
{
    char path[MAX_PATH / 2];
    const char *root = getenv("SIMGPU_ROOT");

    if (root == NULL && (!state->check_nodes || geteuid() != 0))
        return;
    root = root == NULL ? "" : root;
    snprintf(path, sizeof path, "%s/proc/driver/nvidia/capabilities", root);
    if (access(path, F_OK) != 0)
        return; /* no driver is shown here: a container, or a driver that is not loaded */
    for (unsigned int slot = 0; slot < state->count; slot++)
        sync_gpu(state, store, slot, path);
    snprintf(path, sizeof path, "%s/dev/nvidia-caps", root);
    if (state->caps_major != 0)
        sync_nodes(state, store, path);
}
