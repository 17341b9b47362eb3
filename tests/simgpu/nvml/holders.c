/* SIMULATION for the steadygpu lab: not NVIDIA's library. */
#include "holders.h"
#include "capabilities.h"
#include "words.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

enum { NVIDIA_MAJOR = 195 };

enum { SCAN_LASTS_MS = 100 };

/* Everything found in the last scan of /proc, of all GPUs. The library's lock guards it. */
static struct {
    long long at_ms; /* on the monotonic clock; 0: never */
    unsigned int count;
    struct holder found[MAX_HOLDERS];
} scan;

static void add(struct holder found[MAX_HOLDERS], unsigned int *count, const struct holder *holder)
{
    for (unsigned int i = 0; i < *count; i++)
        if (found[i].pid == holder->pid && found[i].gpu == holder->gpu &&
            found[i].gpu_instance == holder->gpu_instance &&
            found[i].compute_instance == holder->compute_instance)
            return;
    if (*count < MAX_HOLDERS)
        found[(*count)++] = *holder;
}

/* What a device number belongs to; false: nothing of ours. */
static bool place_of_number(const struct state *state, dev_t device, struct place *place)
{
    if (state->caps_major != 0 && major(device) == state->caps_major)
        return capability_place(state, minor(device), place);
    if (major(device) != NVIDIA_MAJOR)
        return false;
    for (unsigned int slot = 0; slot < state->count; slot++)
        if (state->gpus[slot].minor == minor(device)) {
            *place = (struct place){slot, NO_INSTANCE, NO_INSTANCE};
            return true;
        }
    return false;
}

static void read_name(struct holder *holder)
{
    char path[64];
    struct stat unused;
    snprintf(path, sizeof path, "/proc/%u/comm", holder->pid);
    char *text = read_file(path, &unused);
    copy_text(holder->name, sizeof holder->name, text == NULL ? "" : text);
    holder->name[strcspn(holder->name, "\n")] = '\0';
    free(text);
}

static void scan_process(const struct state *state, unsigned int pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/fd", pid);
    DIR *descriptors = opendir(path);
    if (descriptors == NULL)
        return; /* gone, or not ours to look at */
    for (struct dirent *entry; (entry = readdir(descriptors)) != NULL;) {
        struct stat status;
        struct place place;
        if (entry->d_name[0] == '.' ||
            fstatat(dirfd(descriptors), entry->d_name, &status, 0) != 0 ||
            !S_ISCHR(status.st_mode) || !place_of_number(state, status.st_rdev, &place))
            continue;
        struct holder holder = {place.gpu, place.gpu_instance, place.compute_instance, pid, ""};
        read_name(&holder);
        add(scan.found, &scan.count, &holder);
    }
    closedir(descriptors);
}

static void scan_proc(const struct state *state)
{
    DIR *processes = opendir("/proc");
    scan.count = 0;
    if (processes == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(processes)) != NULL;) {
        const unsigned int pid = (unsigned int)number(entry->d_name);
        if (pid != 0 && pid != (unsigned int)getpid())
            scan_process(state, pid);
    }
    closedir(processes);
}

static long long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static bool lives(unsigned int pid)
{
    return kill((pid_t)pid, 0) == 0 || errno == EPERM;
}

unsigned int find_holders(const struct state *state, unsigned int slot,
                          struct holder found[MAX_HOLDERS])
{
    unsigned int count = 0;
    if (state->check_nodes && (scan.at_ms == 0 || now_ms() - scan.at_ms >= SCAN_LASTS_MS)) {
        scan_proc(state);
        scan.at_ms = now_ms();
    }
    for (unsigned int i = 0; state->check_nodes && i < scan.count; i++)
        if (scan.found[i].gpu == slot)
            add(found, &count, &scan.found[i]);
    for (unsigned int i = 0; i < state->holder_count; i++)
        if (state->holders[i].gpu == slot && lives(state->holders[i].pid))
            add(found, &count, &state->holders[i]);
    return count;
}

bool is_held(const struct state *state, struct place place)
{
    struct holder found[MAX_HOLDERS];
    scan.at_ms = 0; /* a decision needs the holders of now */
    const unsigned int count = find_holders(state, place.gpu, found);
    for (unsigned int i = 0; i < count; i++) {
        const bool same_instance =
            place.gpu_instance == NO_INSTANCE || found[i].gpu_instance == place.gpu_instance;
        /* Who holds a whole GPU instance may use any part of it. */
        const bool same_part = place.compute_instance == NO_INSTANCE ||
                               found[i].compute_instance == NO_INSTANCE ||
                               found[i].compute_instance == place.compute_instance;
        if (same_instance && same_part)
            return true;
    }
    return false;
}
