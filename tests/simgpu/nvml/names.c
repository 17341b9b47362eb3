/* SIMULATION for the steadygpu lab: not NVIDIA's library. */
#include "names.h"
#include "mig_rules.h"

#include <stdio.h>

void compute_instance_name(char *name, size_t size, const struct mig_profile *inside,
                           unsigned int profile)
{
    const unsigned int slices = compute_slices(inside, profile);
    if (slices == inside->slices)
        snprintf(name, size, "MIG %s", inside->name);
    else
        snprintf(name, size, "MIG %uc.%s", slices, inside->name);
}

/* FNV-1a, its bits mixed once more so that neighbours look different. */
static unsigned long long hash(unsigned long long value, const char *text)
{
    for (; *text != '\0'; text++)
        value = (value ^ (unsigned char)*text) * 0x100000001b3ULL;
    value = (value ^ value >> 33) * 0xff51afd7ed558ccdULL;
    return value ^ value >> 33;
}

void mig_uuid(char uuid[UUID_SIZE], const struct gpu *gpu, struct place place)
{
    char source[MAX_TEXT + 32];
    snprintf(source, sizeof source, "%s/%u/%u", gpu->uuid, place.gpu_instance,
             place.compute_instance);
    const unsigned long long high = hash(0xcbf29ce484222325ULL, source), low = hash(high, source);
    /* Version 5 (made from a name), variant 1. */
    snprintf(uuid, UUID_SIZE, "MIG-%08llx-%04llx-5%03llx-%04llx-%012llx", high >> 32,
             high >> 16 & 0xffff, high & 0xfff, (low >> 48 & 0x3fff) | 0x8000,
             low & 0xffffffffffffULL);
}
