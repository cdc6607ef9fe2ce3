/* SPDX-License-Identifier: Apache-2.0 */
/* The table of machines; machine.h says how to add one. */
#include "formats/elf/machine.h"

#include <string.h>

extern const struct machine machine_x86_64;

static const struct machine *const machines[] = {
    &machine_x86_64,
};
enum { MACHINE_COUNT = sizeof machines / sizeof *machines };

const struct machine *machine_by_name(const char *name)
{
    for (size_t i = 0; i < MACHINE_COUNT; i++) {
        if (!strcmp(machines[i]->name, name))
            return machines[i];
    }
    return NULL;
}

const struct machine *machine_by_elf(uint16_t elf_machine)
{
    for (size_t i = 0; i < MACHINE_COUNT; i++) {
        if (machines[i]->elf_machine == elf_machine)
            return machines[i];
    }
    return NULL;
}
