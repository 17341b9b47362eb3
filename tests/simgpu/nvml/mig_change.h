/* SIMULATION for the steadygpu lab: not NVIDIA's library.
 *
 * How a call changes the MIG store:
 *
 *     struct change change;
 *     if (!change_begin(&change, &session)) return session.result;
 *     … refuse: return change_end(&change, error);
 *     … change session.mig
 *     return change_commit(&change);
 */
#ifndef SIMGPU_MIG_CHANGE_H
#define SIMGPU_MIG_CHANGE_H

#include "session.h"

struct change {
    struct session *session;
    int lock;
};

/* Root on a lab machine outside containers, and anybody who may write the store elsewhere. False: the session is
 * over and its result says why. */
bool change_begin(struct change *change, struct session *session);

/* End change and session without writing; what the call did to session.mig is forgotten. */
nvmlReturn_t change_end(struct change *change, nvmlReturn_t result);

/* Write the store, let the kernel side follow, end change and session. */
nvmlReturn_t change_commit(struct change *change);

#endif
