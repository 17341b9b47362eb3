/* SIMULATION for the steadygpu lab: not NVIDIA's library. */
#include "mig_store.h"
#include "words.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { MAX_PATH = 512 };

static struct stat seen; /* what the last read file looked like */
static bool known;       /* false: the file must be read whatever it looks like */

static void path_with(char path[MAX_PATH], const char *suffix)
{
    snprintf(path, MAX_PATH, "%s.mig%s", state_path(), suffix);
}

/* The state file's word for this boot, or the kernel's. */
static void boot_id(const struct state *state, char id[MAX_TEXT])
{
    struct stat unused;
    copy_text(id, MAX_TEXT, state->boot);
    char *text = read_file("/proc/sys/kernel/random/boot_id", &unused);
    if (state->boot[0] == '\0' && text != NULL) {
        text[strcspn(text, "\n")] = '\0';
        copy_text(id, MAX_TEXT, text);
    }
    free(text);
}

struct reading {
    struct mig_store *store;
    char boot[MAX_TEXT];
};

static void read_line(void *target, char *line)
{
    struct reading *reading = target;
    char *rest = line;
    const char *key = next_word(&rest);

    if (key == NULL)
        return;
    if (strcmp(key, "boot") == 0) {
        copy_text(reading->boot, MAX_TEXT, rest);
        return;
    }
    unsigned long long words[5];
    const unsigned int found = read_numbers(words, 5, rest);
    if (found < 3 || words[0] >= MAX_GPUS)
        return;
    struct mig_gpu *gpu = &reading->store->gpus[words[0]];
    if (strcmp(key, "mode") == 0) {
        gpu->current = words[1] != 0;
        gpu->pending = words[2] != 0;
    } else if (words[1] < MAX_GPU_INSTANCES && found == 4 &&
               words[2] < MAX_MIG_PROFILES && strcmp(key, "gi") == 0) {
        struct gpu_instance *instance = &gpu->instances[words[1]];
        instance->present = true;
        instance->profile = (unsigned int)words[2];
        instance->start = (unsigned int)words[3];
    } else if (words[1] < MAX_GPU_INSTANCES && found == 5 && words[2] < MAX_COMPUTE_INSTANCES &&
               strcmp(key, "ci") == 0) {
        struct compute_instance *compute = &gpu->instances[words[1]].compute[words[2]];
        compute->present = true;
        compute->profile = (unsigned int)words[3];
        compute->start = (unsigned int)words[4];
    }
}

/* What a reboot leaves of the modes; it leaves nothing of the instances. */
static void reboot(struct mig_store *store, const struct state *state)
{
    for (unsigned int i = 0; i < MAX_GPUS; i++) {
        const bool mode = store->gpus[i].pending && state->gpus[i].mig_persists;
        memset(&store->gpus[i], 0, sizeof store->gpus[i]);
        store->gpus[i].current = store->gpus[i].pending = mode;
    }
}

static void read_store(struct mig_store *store, const struct state *state)
{
    char path[MAX_PATH], boot[MAX_TEXT];
    struct reading reading = {.store = store};

    path_with(path, "");
    memset(store, 0, sizeof *store);
    char *text = read_file(path, &seen);
    known = true;
    if (text == NULL)
        return;
    each_line(text, read_line, &reading);
    free(text);
    boot_id(state, boot);
    if (strcmp(boot, reading.boot) != 0)
        reboot(store, state);
}

void mig_store_refresh(struct mig_store *store, const struct state *state)
{
    static char boot[MAX_TEXT]; /* the state file's word for it when the store was read */
    char path[MAX_PATH];

    path_with(path, "");
    if (known && looks_like(path, &seen) && strcmp(boot, state->boot) == 0)
        return;
    copy_text(boot, MAX_TEXT, state->boot);
    read_store(store, state);
}

int mig_store_lock(struct mig_store *store, const struct state *state)
{
    char path[MAX_PATH];
    path_with(path, ".lock");
    const int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (lock < 0)
        return -1;
    while (flock(lock, LOCK_EX) != 0)
        if (errno != EINTR) {
            close(lock);
            return -1;
        }
    read_store(store, state);
    return lock;
}

void mig_store_unlock(int lock)
{
    close(lock);
}

static void print_store(FILE *file, const struct mig_store *store, const char *boot)
{
    fprintf(file, "format 1\nboot %s\n", boot);
    for (unsigned int g = 0; g < MAX_GPUS; g++) {
        const struct mig_gpu *gpu = &store->gpus[g];
        if (gpu->current || gpu->pending)
            fprintf(file, "mode %u %d %d\n", g, gpu->current, gpu->pending);
        for (unsigned int i = 0; i < MAX_GPU_INSTANCES; i++) {
            const struct gpu_instance *instance = &gpu->instances[i];
            if (!instance->present)
                continue;
            fprintf(file, "gi %u %u %u %u\n", g, i, instance->profile, instance->start);
            for (unsigned int c = 0; c < MAX_COMPUTE_INSTANCES; c++)
                if (instance->compute[c].present)
                    fprintf(file, "ci %u %u %u %u %u\n", g, i, c, instance->compute[c].profile,
                            instance->compute[c].start);
        }
    }
}

/* Make the rename survive a power cut. */
static void sync_directory(const char *path)
{
    char directory[MAX_PATH];
    copy_text(directory, MAX_PATH, path);
    char *slash = strrchr(directory, '/');
    if (slash != NULL)
        *slash = '\0';
    const int fd = open(slash == NULL ? "." : directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

bool mig_store_write(const struct mig_store *store, const struct state *state)
{
    char path[MAX_PATH], next[MAX_PATH], boot[MAX_TEXT];

    path_with(path, "");
    path_with(next, ".new"); /* one name suffices under the lock; a kill leaves one file at most */
    boot_id(state, boot);
    known = false;
    FILE *file = fopen(next, "we");
    if (file == NULL)
        return false;
    print_store(file, store, boot);
    const bool written = fflush(file) == 0 && fsync(fileno(file)) == 0;
    if (fclose(file) != 0 || !written || rename(next, path) != 0)
        return false;
    sync_directory(path);
    return true;
}
