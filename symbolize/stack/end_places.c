/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/stack/end_places.h"

#include <stddef.h>

#include "formats/base/columns.h"
#include "formats/base/numbers.h"
#include "formats/base/printable.h"
#include "formats/emit/names.h"
#include "formats/trace/trace.h"

/* A reason's number among those of which places are kept, or -1. */
static int number_of(uint32_t reason)
{
    static const uint32_t reasons[END_PLACE_REASONS] = {LOSS_no_unwind_info, LOSS_native_loop,   LOSS_native_fault,   LOSS_no_module,
                                                        LOSS_register_unsupported, LOSS_table_missing, LOSS_no_frame_pointer};

    for (int i = 0; i < END_PLACE_REASONS; i++) {
        if (reasons[i] == reason)
            return i;
    }
    return -1;
}

void end_places_add(struct end_places *p, uint32_t reason, const char *module, const char *function, uint64_t samples)
{
    static const char generated[] = NAME_GENERATED; /* in whichever process */
    int number = number_of(reason);

    if (number < 0 || !samples || (!*module && !*function))
        return;
    if (name_is_generated(module))
        module = generated;
    struct end_place *rows = p->rows[number], *least = rows;
    uint32_t *count = &p->row_counts[number];
    for (uint32_t i = 0; i < *count; i++) {
        if (rows[i].module == module && rows[i].function == function) {
            rows[i].count += samples;
            return;
        }
        if (rows[i].count < least->count)
            least = &rows[i];
    }
    if (*count < END_PLACES_KEPT)
        rows[(*count)++] = (struct end_place){module, function, samples, 0};
    else
        *least = (struct end_place){module, function, least->count + samples, least->count};
}

const struct end_place *end_places_most(const struct end_places *p, uint32_t reason, uint64_t *samples)
{
    const struct end_place *most = NULL;
    int number = number_of(reason);

    *samples = 0;
    for (uint32_t i = 0; number >= 0 && i < p->row_counts[number]; i++) {
        const struct end_place *row = &p->rows[number][i];
        if (row->count - row->others > *samples) {
            most = row;
            *samples = row->count - row->others;
        }
    }
    return most;
}

/* Names of templates may be of any length. */
static void put_name(struct buf *line, const char *name)
{
    enum { COLUMNS_MAX = 80 };
    struct buf text = {0};

    printable_put(&text, name);
    columns_cut(line, text.data, text.len_bytes, COLUMNS_MAX);
    line->bad |= text.bad;
    buf_deinit(&text);
}

void end_places_put(const struct end_places *p, uint32_t reason, uint64_t total, struct buf *line)
{
    uint64_t samples;
    const struct end_place *most = end_places_most(p, reason, &samples);
    struct number n;

    if (!most)
        return;
    if (samples >= total)
        buf_put_str(line, ", all in ");
    else if (samples > total / 2)
        buf_put_str(line, ", most in ");
    else
        buf_printf(line, ", %s of them in ", grouped(samples, &n));
    put_name(line, *most->function ? most->function : name_base(most->module));
    if (*most->function && *most->module) {
        buf_put_str(line, " of ");
        put_name(line, name_base(most->module));
    }
    if (samples < total && samples > total / 2)
        buf_printf(line, " (%s)", grouped(samples, &n));
}
