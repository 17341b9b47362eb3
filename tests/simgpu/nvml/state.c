/* SIMULATION for the steadygpu lab: not NVIDIA's library.
 *
 * Reads the state file. Numbers are parsed here by hand: newer headers redirect strtol and
 * sscanf to symbols (__isoc23_*) that the C library of an older guest does not have.
 */
#include "state.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_PATH "/var/lib/simgpu/state"
enum { MAX_FILE = 64 * 1024 };

/* A number in decimal or 0x-hexadecimal; stops at the first character that is no digit. */
static unsigned long long number(const char *text)
{
    unsigned int base = 10;
    unsigned long long value = 0;

    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        base = 16;
        text += 2;
    }
    for (;; text++) {
        unsigned int digit;
        if (*text >= '0' && *text <= '9')
            digit = (unsigned int)(*text - '0');
        else if (base == 16 && *text >= 'a' && *text <= 'f')
            digit = (unsigned int)(*text - 'a') + 10;
        else
            return value;
        value = value * base + digit;
    }
}

static void copy_text(char target[MAX_TEXT], const char *text)
{
    size_t length = strlen(text);
    if (length >= MAX_TEXT)
        length = MAX_TEXT - 1;
    memcpy(target, text, length);
    target[length] = '\0';
}

/* Cut the next blank-separated word out of *rest; NULL at the end. */
static char *next_word(char **rest)
{
    char *word = *rest;
    while (*word == ' ')
        word++;
    if (*word == '\0')
        return NULL;
    char *end = word;
    while (*end != ' ' && *end != '\0')
        end++;
    *rest = *end == '\0' ? end : end + 1;
    *end = '\0';
    return word;
}

static void read_words(unsigned long long *target, unsigned int limit, char *rest)
{
    for (unsigned int i = 0; i < limit; i++) {
        char *word = next_word(&rest);
        if (word == NULL)
            return;
        target[i] = number(word);
    }
}

/* `gpu INDEX KEY VALUE…` */
static void read_gpu(struct gpu *gpu, const char *key, char *value)
{
    const struct {
        const char *key;
        char *target;
    } texts[] = {
        {"uuid", gpu->uuid}, {"name", gpu->name},   {"serial", gpu->serial},
        {"pci", gpu->pci},   {"vbios", gpu->vbios},
    };
    const struct {
        const char *key;
        unsigned long long *target;
    } numbers[] = {
        {"minor", &gpu->minor},
        {"pci_device_id", &gpu->pci_device_id},
        {"pci_subsystem_id", &gpu->pci_subsystem_id},
        {"architecture", &gpu->architecture},
        {"cc_major", &gpu->cc_major},
        {"cc_minor", &gpu->cc_minor},
        {"memory_total", &gpu->memory_total},
        {"memory_reserved", &gpu->memory_reserved},
        {"memory_used", &gpu->memory_used},
        {"bar1_total", &gpu->bar1_total},
        {"bar1_used", &gpu->bar1_used},
        {"pcie_gen_max", &gpu->pcie_gen_max},
        {"pcie_gen", &gpu->pcie_gen},
        {"pcie_width_max", &gpu->pcie_width_max},
        {"pcie_width", &gpu->pcie_width},
        {"power_limit_mw", &gpu->power_limit_mw},
        {"numa_node", &gpu->numa_node},
        {"persistence", &gpu->persistence},
        {"compute_mode", &gpu->compute_mode},
        {"nvlink_version", &gpu->nvlink_version},
        {"mig_supported", &gpu->mig_supported},
        {"ecc_supported", &gpu->ecc_supported},
        {"ecc_enabled", &gpu->ecc_enabled},
        {"gsp", &gpu->gsp},
        {"fabric", &gpu->fabric},
        {"lost", &gpu->lost},
        {"p2p_status", &gpu->p2p_status},
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(key, texts[i].key) == 0)
            copy_text(texts[i].target, value);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(key, numbers[i].key) == 0)
            *numbers[i].target = number(value);
    if (strcmp(key, "cpu_mask") == 0)
        read_words(gpu->cpu_mask, MAX_CPU_WORDS, value);
    if (strcmp(key, "levels") == 0)
        read_words(gpu->level, MAX_GPUS, value);
}

/* `link GPU LINK gpu|switch ADDRESS up|down` */
static void read_link(struct gpu *gpu, const char *index, char *rest)
{
    const unsigned long long link = number(index);
    const char *kind = next_word(&rest);
    const char *remote = next_word(&rest);
    const char *status = next_word(&rest);

    if (link >= NVML_NVLINK_MAX_LINKS || kind == NULL || remote == NULL || status == NULL)
        return;
    gpu->links[link].present = true;
    gpu->links[link].to_switch = strcmp(kind, "switch") == 0;
    gpu->links[link].up = strcmp(status, "up") == 0;
    copy_text(gpu->links[link].remote, remote);
}

static enum fail_mode fail_mode(const char *name)
{
    if (strcmp(name, "driver_not_loaded") == 0)
        return FAIL_DRIVER_NOT_LOADED;
    if (strcmp(name, "not_supported") == 0)
        return FAIL_NOT_SUPPORTED;
    if (strcmp(name, "timeout") == 0)
        return FAIL_TIMEOUT;
    return FAIL_NONE;
}

static void read_line(struct state *state, char *line)
{
    char *rest = line;
    const char *key = next_word(&rest);

    if (key == NULL || *key == '#')
        return;
    if (strcmp(key, "format") == 0)
        state->loaded = number(rest) == 1;
    else if (strcmp(key, "fail") == 0)
        state->fail = fail_mode(rest);
    else if (strcmp(key, "check_nodes") == 0)
        state->check_nodes = number(rest) != 0;
    else if (strcmp(key, "module") == 0)
        copy_text(state->module_version, rest);
    else if (strcmp(key, "cuda") == 0)
        state->cuda_version = number(rest);
    else if (strcmp(key, "gpu") == 0 || strcmp(key, "link") == 0) {
        const char *index = next_word(&rest);
        const char *name = next_word(&rest);
        if (index == NULL || name == NULL || number(index) >= MAX_GPUS)
            return;
        struct gpu *gpu = &state->gpus[number(index)];
        if (number(index) >= state->count)
            state->count = (unsigned int)number(index) + 1;
        if (*key == 'g')
            read_gpu(gpu, name, rest);
        else
            read_link(gpu, name, rest);
    }
}

/* The whole file as one string, or NULL; the caller frees it. */
static char *read_file(int fd)
{
    char *text = malloc(MAX_FILE);
    size_t length = 0;

    if (text == NULL)
        return NULL;
    while (length < MAX_FILE - 1) {
        ssize_t got = read(fd, text + length, MAX_FILE - 1 - length);
        if (got < 0) {
            free(text);
            return NULL;
        }
        if (got == 0)
            break;
        length += (size_t)got;
    }
    text[length] = '\0';
    return text;
}

static void read_lines(struct state *state, char *text)
{
    for (char *line = text; line != NULL;) {
        char *end = strchr(line, '\n');
        if (end != NULL)
            *end = '\0';
        read_line(state, line);
        line = end == NULL ? NULL : end + 1;
    }
}

bool state_refresh(struct state *state)
{
    static struct stat seen; /* what the last read file looked like */
    struct stat now;
    const char *path = getenv("SIMGPU_STATE");
    int fd = open(path != NULL ? path : DEFAULT_PATH, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &now) != 0) {
        if (fd >= 0)
            close(fd);
        const bool was_loaded = state->loaded;
        memset(state, 0, sizeof *state);
        memset(&seen, 0, sizeof seen);
        return was_loaded;
    }
    /* Writers replace the file by rename, so a change shows as another inode or time. */
    if (state->loaded && now.st_ino == seen.st_ino && now.st_size == seen.st_size &&
        now.st_mtim.tv_sec == seen.st_mtim.tv_sec && now.st_mtim.tv_nsec == seen.st_mtim.tv_nsec) {
        close(fd);
        return false;
    }
    memset(state, 0, sizeof *state);
    char *text = read_file(fd);
    close(fd);
    if (text != NULL) {
        read_lines(state, text);
        free(text);
    }
    seen = now;
    return true;
}
