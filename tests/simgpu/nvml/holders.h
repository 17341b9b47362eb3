/* SIMULATION for the steadygpu lab: not NVIDIA's library.
 *
 * Who has a GPU open. No simulated node can be opened, but an O_PATH descriptor of one can be
 * held: such processes are found in /proc/PID/fd by the node's number, whatever mount namespace
 * they live in. Where nodes are not checked (tests without a machine) the state file's `holder`
 * lines count while their process lives.
 */
#ifndef SIMGPU_HOLDERS_H
#define SIMGPU_HOLDERS_H

#include "session.h"

enum { MAX_HOLDERS = 256 };

/* Every holder of GPU `slot` and of its instances, one entry for each process and thing held;
 * this process is none. Returns how many. What was found in /proc lasts for a tenth of a second:
 * an inventory asks sixteen times in a row. */
unsigned int find_holders(const struct state *state, unsigned int slot,
                          struct holder found[MAX_HOLDERS]);

/* Does any process at this moment hold what `place` names, or a part of it? */
bool is_held(const struct state *state, struct place place);

#endif
