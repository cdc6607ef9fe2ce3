/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/session/settings.h"

#include <stdio.h>
#include <string.h>

#include "capture/session/record_options.h"
#include "formats/base/buf.h"

void settings_add(struct settings *s, const char *key, const char *value)
{
    static const char ellipsis[] = "...";

    if (s->count == SETTINGS_MAX)
        return;
    struct setting *setting = &s->list[s->count++];
    setting->key = key;
    if (snprintf(setting->value, sizeof setting->value, "%s", value) >= (int)sizeof setting->value)
        memcpy(setting->value + sizeof setting->value - sizeof ellipsis, ellipsis, sizeof ellipsis);
}

void settings_of_options(const struct session_options *o, bool by_proc, struct settings *out)
{
    struct session_options used = *o;

    if (by_proc) {
        used.backend = BACKEND_PROC;
        used.unwind = UNWIND_NO;
        used.kernel = false;
    } else {
        used.backend = BACKEND_BPF;
    }
    *out = (struct settings){0};
    settings_add(out, "scope", o->command ? "command" : o->pid_count ? "pids" : "all");
    for (const struct option_row *row = record_option_rows; row->name || row->letter; row++) {
        struct buf text = {0};
        if (row->tell)
            row->tell(row, &used, &text);
        if (text.len_bytes && !text.bad)
            settings_add(out, row->setting, buf_cstr(&text));
        buf_deinit(&text);
    }
}
