/* SPDX-License-Identifier: Apache-2.0 */
/* The table of machines that libunwind is linked for; formats/elf/machine.h says how to add one. */
#include "symbolize/unwind/remote.h"

#include <string.h>

extern const struct remote remote_x86_64;

static const struct remote *const remotes[] = {
    &remote_x86_64,
};

const struct remote *remote_of(const struct machine *machine)
{
    for (size_t i = 0; machine && i < sizeof remotes / sizeof *remotes; i++) {
        if (!strcmp(remotes[i]->machine, machine->name))
            return remotes[i];
    }
    return NULL;
}
