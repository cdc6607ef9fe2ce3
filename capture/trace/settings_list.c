/* SPDX-License-Identifier: Apache-2.0 */
/* Copies values, because some of them are formatted into local buffers. */
#include "capture/trace/settings_list.h"

#include <stdlib.h>
#include <string.h>

struct error *settings_add(struct settings *s, const char *key, const char *value)
{
    struct setting setting = {.key = key, .value = strdup(value)};

    if (!setting.value || !VEC_PUSH(&s->list, setting)) {
        free(setting.value);
        return error_no_memory();
    }
    return NULL;
}

void settings_deinit(struct settings *s)
{
    for (size_t i = 0; i < s->list.count; i++)
        free(s->list.data[i].value);
    VEC_DEINIT(&s->list);
}
