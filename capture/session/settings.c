/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the table of options: each row appends what the trace is to remember of it. */
#include "capture/session/settings.h"

#include "capture/session/record_options.h"
#include "formats/base/buf.h"

struct error *settings_of_options(const struct session_options *o, bool by_proc, struct settings *out)
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
    TRY(settings_add(out, "scope", o->command ? "command" : o->pid_count ? "pids" : "all"));
    for (const struct option_row *row = record_option_rows; !options_at_end(row); row++) {
        struct buf text = {0};
        if (row->remember)
            row->remember(row, &used, &text);
        struct error *err = text.bad ? error_no_memory() : NULL;
        if (!err && text.len_bytes)
            err = settings_add(out, row->setting, buf_cstr(&text));
        buf_deinit(&text);
        TRY(err);
    }
    return NULL;
}
