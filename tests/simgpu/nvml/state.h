/* SIMULATION for the steadygpu lab: not NVIDIA's library.
 *
 * The state file: what the simulated driver "knows". The guest's `simgpu` command
 * writes it (tests/simgpu/guest/state.py documents each line); the library only reads.
 */
#ifndef SIMGPU_STATE_H
#define SIMGPU_STATE_H

#include <stdbool.h>

#include "abi.h"

enum { MAX_GPUS = 8, MAX_CPU_WORDS = 16, MAX_TEXT = 96 };

enum fail_mode { FAIL_NONE, FAIL_DRIVER_NOT_LOADED, FAIL_NOT_SUPPORTED, FAIL_TIMEOUT };

struct link {
    bool present;
    bool up;
    bool to_switch;      /* otherwise to a GPU */
    char remote[MAX_TEXT]; /* PCI address of the other end */
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
    unsigned long long level[MAX_GPUS]; /* nvmlGpuTopologyLevel_t to each other GPU */
    struct link links[NVML_NVLINK_MAX_LINKS];
};

struct state {
    bool loaded; /* a readable state file with a format we know */
    enum fail_mode fail;
    bool check_nodes; /* a GPU is visible only if its device node may be opened */
    char module_version[MAX_TEXT]; /* of the "kernel module" */
    unsigned long long cuda_version; /* 12040 = 12.4 */
    unsigned int count;
    struct gpu gpus[MAX_GPUS];
};

/* Re-read the file when it has changed since the last call. Returns true if it was read anew.
 * A missing or unreadable file leaves `loaded` false. The caller holds the library's lock. */
bool state_refresh(struct state *state);

#endif
