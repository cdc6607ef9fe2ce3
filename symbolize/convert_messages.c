/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/convert_messages.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/buf.h"
#include "formats/base/printable.h"
#include "formats/base/shell_word.h"
#include "formats/base/size_text.h"
#include "formats/emit/shown.h"
#include "symbolize/stack/stack_nothing.h"

static bool is_asked_for(const struct option_texts *events, const char *name)
{
    for (size_t i = 0; i < events->count; i++) {
        if (!strcmp(events->data[i], name))
            return true;
    }
    return !events->count;
}

void convert_tell_filters(const struct options *o, const struct resolver *r, bool shown, FILE *trouble)
{
    const struct emit_model *m = resolver_model(r);
    struct buf text = {0};

    for (uint32_t event = 0; shown && *m->filters && event < m->event_count; event++) {
        if (!is_asked_for(&o->filters.events, m->events[event].name))
            continue;
        buf_put_str(&text, text.len_bytes ? "; " : "pysym: ");
        if (m->event_count > 1)
            buf_printf(&text, "%s: ", m->events[event].name);
        shown_put(m, event, &text);
    }
    if (text.len_bytes)
        buf_printf(&text, " (%s)\n", m->filters);
    size_t before = text.len_bytes;
    buf_put_str(&text, "pysym: ");
    if (stack_nothing_matched(resolver_stack_map(r), &text))
        buf_put_str(&text, "\n");
    else
        text.len_bytes = before;
    struct buf clean = {0};
    printable_put_lines(&clean, buf_cstr(&text));
    fputs(buf_cstr(&clean), trouble);
    buf_deinit(&clean);
    buf_deinit(&text);
}

void convert_tell_baseline(const struct options *o, const struct run_set *set, const struct baseline_written *what, FILE *trouble)
{
    struct buf word = {0};
    struct size_text size;

    shell_word_put(o->output ? o->output : "FILE", &word);
    fprintf(trouble, "pysym: %zu run%s, %s: pysym diff --baseline %s -- NEW...\n", set->runs.count, set->runs.count == 1 ? "" : "s",
            size_text(what->len_bytes, &size), buf_cstr(&word));
    if (what->left_out)
        fprintf(trouble, "pysym: %" PRIu64 " calls, lines and functions with less than %.3g samples in each run are left out, so that it is not larger\n",
                what->left_out, what->least_samples);
    buf_deinit(&word);
}
