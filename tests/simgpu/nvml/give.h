/* SIMULATION for the steadygpu lab: not NVIDIA's library.
 *
 * Entry points that hand out one value of a GPU.
 */
#ifndef SIMGPU_GIVE_H
#define SIMGPU_GIVE_H

#include "session.h"

/* A text of the state file; an empty one is not supported. */
#define GIVE_TEXT(function, field)                                                                 \
    NVML_EXPORT nvmlReturn_t function(nvmlDevice_t device, char *buffer, unsigned int size)        \
    {                                                                                              \
        struct session session;                                                                    \
        if (!session_begin_device(&session, device, QUERY_IDENTITY))                               \
            return session.result;                                                                 \
        if (session.gpu->field[0] == '\0')                                                         \
            return session_end(&session, NVML_ERROR_NOT_SUPPORTED);                                \
        return session_end(&session, give_text(buffer, size, session.gpu->field));                 \
    }

/* One unsigned number, `value`, where `supported` holds of `gpu`. */
#define GIVE_NUMBER(function, query, supported, value)                                             \
    NVML_EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned int *result)                   \
    {                                                                                              \
        struct session session;                                                                    \
        if (!session_begin_device(&session, device, query))                                        \
            return session.result;                                                                 \
        const struct gpu *gpu = session.gpu;                                                       \
        if (result == NULL)                                                                        \
            return session_end(&session, NVML_ERROR_INVALID_ARGUMENT);                             \
        if (!(supported))                                                                          \
            return session_end(&session, NVML_ERROR_NOT_SUPPORTED);                                \
        *result = (unsigned int)(value);                                                           \
        return session_end(&session, NVML_SUCCESS);                                                \
    }

#endif
