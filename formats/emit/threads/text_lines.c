/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/threads/text_lines.h"

#include <inttypes.h>
#include <string.h>

#include "formats/base/columns.h"
#include "formats/emit/layer_colours.h"

enum { ROOM_LEAST = 32 };

void threads_put_duration(uint64_t ns, struct buf *out)
{
    uint64_t s = ns / NS_PER_S;

    if (ns < NS_PER_MS)
        buf_put_str(out, "under 1 ms");
    else if (ns < NS_PER_S)
        buf_printf(out, "%" PRIu64 " ms", ns / NS_PER_MS);
    else if (s < 60)
        buf_printf(out, "%.1f s", (double)(ns / (NS_PER_S / 10)) / 10);
    else if (s < 3600)
        buf_printf(out, "%" PRIu64 " min %" PRIu64 " s", s / 60, s % 60);
    else
        buf_printf(out, "%" PRIu64 " h %" PRIu64 " min", s / 3600, s / 60 % 60);
}

void threads_put_between(uint64_t least_ns, uint64_t most_ns, struct buf *out)
{
    struct buf least = {0}, most = {0};

    threads_put_duration(least_ns, &least);
    threads_put_duration(most_ns, &most);
    if (strcmp(buf_cstr(&least), buf_cstr(&most)))
        buf_printf(out, "%s to ", buf_cstr(&least));
    buf_put_str(out, buf_cstr(&most));
    buf_deinit(&least);
    buf_deinit(&most);
}

void threads_put_frame(const struct threads *t, uint32_t frame, uint32_t count, unsigned indent, struct buf *out)
{
    const struct emit_terminal *terminal = &t->options.terminal;
    const struct intern_entry *text = intern_get(&t->texts, t->ids[frame]);
    enum emit_frame_kind kind = frame < t->model->frame_count ? t->model->frames[frame].kind : EMIT_MARK;
    size_t room = terminal->columns > indent + ROOM_LEAST ? terminal->columns - indent : terminal->columns ? ROOM_LEAST : SIZE_MAX;
    char times[32] = "";

    if (count > 1)
        snprintf(times, sizeof times, "  (%u times)", count);
    buf_printf(out, "%*s%s", (int)indent, "", layer_colour(terminal, kind));
    columns_cut(out, text->data, text->len_bytes, room > strlen(times) ? room - strlen(times) : 1);
    buf_printf(out, "%s%s\n", layer_colour_end(terminal), times);
}
