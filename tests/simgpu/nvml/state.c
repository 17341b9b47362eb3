/* SIMULATION for the steadygpu lab: not NVIDIA's library.
 *
 * Reads the state file. What a line means is documented in simgpu_guest/state.py.
 */
#include "state.h"
#include "words.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_PATH "/var/lib/simgpu/state"

const char *state_path(void)
{
    const char *path = getenv("SIMGPU_STATE");
    return path != NULL ? path : DEFAULT_PATH;
}

static enum mig_reset mig_reset(const char *word)
{
    if (strcmp(word, "none") == 0)
        return MIG_RESET_NONE;
    return strcmp(word, "reboot") == 0 ? MIG_RESET_REBOOT : MIG_RESET_GPU;
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
        {"power_default_mw", &gpu->power_default_mw},
        {"power_min_mw", &gpu->power_min_mw},
        {"power_max_mw", &gpu->power_max_mw},
        {"clock_sm", &gpu->clock_sm},
        {"clock_sm_max", &gpu->clock_sm_max},
        {"clock_memory", &gpu->clock_memory},
        {"clock_memory_max", &gpu->clock_memory_max},
        {"display_active", &gpu->display_active},
        {"display_mode", &gpu->display_mode},
        {"ecc_corrected", &gpu->ecc_corrected},
        {"ecc_uncorrected", &gpu->ecc_uncorrected},
        {"ecc_pending", &gpu->ecc_pending},
        {"remap_supported", &gpu->remap_supported},
        {"remapped_corrected", &gpu->remapped_corrected},
        {"remapped_uncorrected", &gpu->remapped_uncorrected},
        {"remapped_pending", &gpu->remapped_pending},
        {"remapped_failed", &gpu->remapped_failed},
        {"fabric_state", &gpu->fabric_state},
        {"fabric_status", &gpu->fabric_status},
        {"fabric_clique", &gpu->fabric_clique},
        {"mig_slices", &gpu->mig_slices},
        {"mig_memory_slices", &gpu->mig_memory_slices},
        {"mig_persists", &gpu->mig_persists},
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(key, texts[i].key) == 0)
            copy_text(texts[i].target, MAX_TEXT, value);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(key, numbers[i].key) == 0)
            *numbers[i].target = number(value);
    if (strcmp(key, "mig_reset") == 0)
        gpu->mig_reset = mig_reset(value);
    if (strcmp(key, "cpu_mask") == 0)
        read_numbers(gpu->cpu_mask, MAX_CPU_WORDS, value);
    if (strcmp(key, "levels") == 0)
        read_numbers(gpu->level, MAX_GPUS, value);
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
    copy_text(gpu->links[link].remote, MAX_TEXT, remote);
}

/* `mig GPU PROFILE NAME NUMBER…`: one kind of GPU instance; the numbers are in the order of
 * the structure, the placements' starts come last. */
static void read_mig_profile(struct gpu *gpu, const char *index, char *rest)
{
    const unsigned long long profile = number(index);
    const char *name = next_word(&rest);
    if (profile >= MAX_MIG_PROFILES || name == NULL)
        return;
    struct mig_profile *target = &gpu->mig_profiles[profile];
    unsigned long long numbers[MIG_NUMBERS + MAX_MIG_STARTS];
    const unsigned int found = read_numbers(numbers, sizeof numbers / sizeof *numbers, rest);
    if (found <= MIG_NUMBERS)
        return;
    copy_text(target->name, sizeof target->name, name);
    unsigned int *const fields[MIG_NUMBERS] = {
        &target->id,         &target->slices,     &target->size,         &target->instances,
        &target->processors, &target->memory_mib, &target->copy_engines, &target->decoders,
        &target->encoders,   &target->jpegs,      &target->ofas,         &target->p2p,
    };
    for (unsigned int i = 0; i < MIG_NUMBERS; i++)
        *fields[i] = (unsigned int)numbers[i];
    target->starts = found - MIG_NUMBERS;
    for (unsigned int i = 0; i < target->starts; i++)
        target->start[i] = (unsigned int)numbers[MIG_NUMBERS + i];
}

/* `holder GPU[/GI[/CI]] PID NAME` */
static void read_holder(struct state *state, const char *where, char *rest)
{
    const char *pid = next_word(&rest);
    if (pid == NULL || state->holder_count == MAX_STATED_HOLDERS)
        return;
    struct holder *holder = &state->holders[state->holder_count++];
    const char *gi = strchr(where, '/');
    const char *ci = gi == NULL ? NULL : strchr(gi + 1, '/');
    holder->gpu = (unsigned int)number(where);
    holder->gpu_instance = gi == NULL ? NO_INSTANCE : (unsigned int)number(gi + 1);
    holder->compute_instance = ci == NULL ? NO_INSTANCE : (unsigned int)number(ci + 1);
    holder->pid = (unsigned int)number(pid);
    copy_text(holder->name, sizeof holder->name, rest);
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

static void read_line(void *target, char *line)
{
    struct state *state = target;
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
        copy_text(state->module_version, MAX_TEXT, rest);
    else if (strcmp(key, "boot") == 0)
        copy_text(state->boot, MAX_TEXT, rest);
    else if (strcmp(key, "cuda") == 0)
        state->cuda_version = number(rest);
    else if (strcmp(key, "caps_major") == 0)
        state->caps_major = (unsigned int)number(rest);
    else if (strcmp(key, "gpu") == 0 || strcmp(key, "link") == 0 || strcmp(key, "mig") == 0 ||
             strcmp(key, "holder") == 0) {
        const char *index = next_word(&rest);
        if (index == NULL || number(index) >= MAX_GPUS)
            return;
        if (*key == 'h') {
            read_holder(state, index, rest);
            return;
        }
        const char *name = next_word(&rest);
        if (name == NULL)
            return;
        struct gpu *gpu = &state->gpus[number(index)];
        if (number(index) >= state->count)
            state->count = (unsigned int)number(index) + 1;
        if (*key == 'g')
            read_gpu(gpu, name, rest);
        else if (*key == 'l')
            read_link(gpu, name, rest);
        else
            read_mig_profile(gpu, name, rest);
    }
}

bool state_refresh(struct state *state)
{
    static struct stat seen; /* what the last read file looked like */

    if (state->loaded && looks_like(state_path(), &seen))
        return false;
    const bool was_loaded = state->loaded;
    memset(state, 0, sizeof *state);
    char *text = read_file(state_path(), &seen);
    if (text == NULL)
        return was_loaded;
    each_line(text, read_line, state);
    free(text);
    return true;
}
