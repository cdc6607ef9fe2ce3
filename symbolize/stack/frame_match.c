/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/stack/frame_match.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct error *frame_matches_init(struct frame_matches *list, const struct patterns *patterns)
{
    for (size_t i = 0; i < patterns->count; i++) {
        if (!VEC_PUSH(list, ((struct frame_match){.pattern = patterns->data[i]})))
            return error_no_memory();
    }
    return NULL;
}

void frame_matches_deinit(struct frame_matches *list)
{
    for (size_t i = 0; i < list->count; i++) {
        VEC_DEINIT(&list->data[i].texts);
        VEC_DEINIT(&list->data[i].frames);
    }
    VEC_DEINIT(list);
}

static struct error *find_in_text(struct frame_match *f, struct model *m, uint32_t text, bool *matches)
{
    if (!text) /* "" */
        return NULL;
    if (!VEC_EXTEND_ZERO(&f->texts, (size_t)text + 1))
        return error_no_memory();
    if (!f->texts.data[text]) {
        const char *name = model_text_get(m, text);
        if (!limits_work(m->limits, 200 + 10 * (uint64_t)strnlen(name, PATTERN_NAME_LIMIT_BYTES)))
            return error_no_memory();
        f->texts.data[text] = 1 + pattern_finds(f->pattern, name);
    }
    *matches |= f->texts.data[text] == 2;
    return NULL;
}

bool frame_match_line(const struct pattern *p, enum emit_frame_kind kind, uint32_t line)
{
    char text[16];

    snprintf(text, sizeof text, "%" PRIu32, line);
    return line ? pattern_finds(p, text) : kind == EMIT_PYTHON && pattern_finds(p, "unknown");
}

struct error *frame_match_find(struct frame_match *f, struct model *m, uint32_t frame, bool *matches)
{
    if (!VEC_EXTEND_ZERO(&f->frames, (size_t)frame + 1))
        return error_no_memory();
    if (!f->frames.data[frame]) {
        const struct model_frame shown = model_frame_get(m, frame);
        enum pattern_part part = pattern_part(f->pattern);
        bool found = false;
        if (part == PATTERN_ANY_PART || part == PATTERN_FUNCTION)
            TRY(find_in_text(f, m, shown.function, &found));
        if (part == PATTERN_ANY_PART || part == PATTERN_FILE)
            TRY(find_in_text(f, m, shown.file, &found));
        if ((part == PATTERN_ANY_PART || part == PATTERN_MODULE) && shown.kind != EMIT_PYTHON)
            TRY(find_in_text(f, m, shown.module, &found));
        if (part == PATTERN_LINE)
            found = frame_match_line(f->pattern, shown.kind, shown.line);
        f->frames.data[frame] = 1 + found;
        f->found |= found;
    }
    *matches = f->frames.data[frame] == 2;
    return NULL;
}

struct error *frame_matches_find(struct frame_matches *list, struct model *m, uint32_t frame, bool *matches)
{
    *matches = false;
    /* All are asked, since each notes whether it ever matched. */
    for (size_t i = 0; i < list->count; i++) {
        bool one;
        TRY(frame_match_find(&list->data[i], m, frame, &one));
        *matches |= one;
    }
    return NULL;
}
