/* SIMULATION for the steadygpu lab: not NVIDIA's library.
 *
 * The state file: what the simulated driver "knows". The guest's `simgpu` command
 * writes it (simgpu_guest/state.py documents each line); the library only reads.
 */
#ifndef SIMGPU_STATE_H
#define SIMGPU_STATE_H

#include <stdbool.h>

#include "abi.h"

enum { MAX_GPUS = 8, MAX_CPU_WORDS = 16, MAX_TEXT = 96 };
enum { MAX_MIG_PROFILES = 18, MAX_MIG_STARTS = 8, MIG_NUMBERS = 12 };
enum { MAX_STATED_HOLDERS = 32 };

/* In place of the id of a GPU or compute instance. */
#define NO_INSTANCE 0xffffffffU

enum fail_mode { FAIL_NONE, FAIL_DRIVER_NOT_LOADED, FAIL_NOT_SUPPORTED, FAIL_TIMEOUT };

struct link {
    bool present;
    bool up;
    bool to_switch;      /* otherwise to a GPU */
    char remote[MAX_TEXT]; /* PCI address of the other end */
};

/* What a change of the MIG mode needs on an idle GPU. */
enum mig_reset {
    MIG_RESET_NONE,  /* nothing (Hopper and newer) */
    MIG_RESET_GPU,   /* a reset of the GPU, which the library does itself (Ampere) */
    MIG_RESET_REBOOT /* a reset that cannot be done here: a passed-through Ampere */
};

/* One kind of GPU instance, indexed by NVML_GPU_INSTANCE_PROFILE_*; slices 0: not offered. */
struct mig_profile {
    char name[32]; /* 1g.5gb+me */
    unsigned int id, slices, size /* memory slices */, instances;
    unsigned int processors, memory_mib, copy_engines, decoders, encoders, jpegs, ofas, p2p;
    unsigned int starts;                /* number of possible placements */
    unsigned int start[MAX_MIG_STARTS]; /* their first memory slices, ascending */
};

/* A process that has a GPU, or an instance of it, open. */
struct holder {
    unsigned int gpu; /* entry of state->gpus */
    unsigned int gpu_instance, compute_instance; /* NO_INSTANCE: the whole of what is above */
    unsigned int pid;
    char name[32];
};

struct gpu {
    char uuid[MAX_TEXT], name[MAX_TEXT], serial[MAX_TEXT], pci[MAX_TEXT], vbios[MAX_TEXT];
    unsigned long long minor, pci_device_id, pci_subsystem_id, architecture;
    unsigned long long cc_major, cc_minor;
    unsigned long long memory_total, memory_reserved, memory_used; /* bytes */
    unsigned long long bar1_total, bar1_used;                      /* bytes */
    unsigned long long pcie_gen_max, pcie_gen, pcie_width_max, pcie_width;
    unsigned long long power_limit_mw;
    unsigned long long numa_node;
    unsigned long long cpu_mask[MAX_CPU_WORDS];
    unsigned long long persistence, compute_mode, nvlink_version;
    unsigned long long mig_supported, ecc_supported, ecc_enabled, gsp, fabric, lost;
    unsigned long long p2p_status; /* nvmlGpuP2PStatus_t over PCIe */
    unsigned long long power_default_mw, power_min_mw, power_max_mw;
    unsigned long long clock_sm, clock_sm_max, clock_memory, clock_memory_max; /* MHz */
    unsigned long long display_active, display_mode;
    unsigned long long ecc_corrected, ecc_uncorrected, ecc_pending;
    unsigned long long remap_supported, remapped_corrected, remapped_uncorrected;
    unsigned long long remapped_pending, remapped_failed;
    unsigned long long fabric_state, fabric_status, fabric_clique;
    unsigned long long mig_slices, mig_memory_slices; /* 7 and 8 */
    unsigned long long mig_persists; /* the mode survives a reboot (InfoROM) */
    enum mig_reset mig_reset;
    struct mig_profile mig_profiles[MAX_MIG_PROFILES];
    unsigned long long level[MAX_GPUS]; /* nvmlGpuTopologyLevel_t to each other GPU */
    struct link links[NVML_NVLINK_MAX_LINKS];
};

struct state {
    bool loaded; /* a readable state file with a format we know */
    enum fail_mode fail;
    bool check_nodes; /* a GPU is visible only if its device node may be opened */
    char module_version[MAX_TEXT]; /* of the "kernel module" */
    unsigned long long cuda_version; /* 12040 = 12.4 */
    char boot[MAX_TEXT]; /* identity of this boot; empty: the kernel's */
    unsigned int caps_major; /* character major of /dev/nvidia-caps/; 0: no such nodes */
    unsigned int count;
    struct gpu gpus[MAX_GPUS];
    unsigned int holder_count; /* stated in the file, beside those found in /proc */
    struct holder holders[MAX_STATED_HOLDERS];
};

/* Path of the state file. */
const char *state_path(void);

/* Re-read the file when it has changed since the last call. Returns true if it was read anew.
 * A missing or unreadable file leaves `loaded` false. The caller holds the library's lock. */
bool state_refresh(struct state *state);

#endif
