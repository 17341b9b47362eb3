/* SIMULATION for the steadygpu lab: not NVIDIA's library. */
#include "pci.h"

#include <stdio.h>
#include <string.h>

/* Hexadecimal digits up to the next separator; leaves *text behind that separator. */
static unsigned int field(const char **text)
{
    unsigned int value = 0;
    for (; **text != '\0'; (*text)++) {
        const char c = **text;
        if (c >= '0' && c <= '9')
            value = value * 16 + (unsigned int)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value * 16 + (unsigned int)(c - 'a') + 10;
        else {
            (*text)++;
            break;
        }
    }
    return value;
}

void fill_pci_info(nvmlPciInfo_t *info, const char *address)
{
    memset(info, 0, sizeof *info);
    info->domain = field(&address);
    info->bus = field(&address);
    info->device = field(&address);
    const unsigned int function = field(&address);
    snprintf(info->busId, sizeof info->busId, "%08X:%02X:%02X.%u", info->domain, info->bus,
             info->device, function);
    snprintf(info->busIdLegacy, sizeof info->busIdLegacy, "%04X:%02X:%02X.%u", info->domain & 0xffffU,
             info->bus & 0xffU, info->device & 0xffU, function & 0x7U);
}
