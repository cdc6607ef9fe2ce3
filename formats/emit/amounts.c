/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/amounts.h"

#include "formats/base/numbers.h"
#include "formats/base/size_text.h"

void amount_put(const struct emit_event *event, uint64_t weight, uint64_t all, struct buf *out)
{
    struct size_text size;
    struct number digits;

    if (event_is_bytes(event->kind))
        buf_put_str(out, size_text(weight, &size));
    else if (!event_is_time(event->kind))
        buf_put_str(out, grouped(weight, &digits));
    else if (all >= 1000000000)
        buf_printf(out, "%.2f s", (double)weight / 1e9);
    else
        buf_printf(out, "%.1f ms", (double)weight / 1e6);
}

void amount_put_share(const struct emit_event *event, uint64_t weight, uint64_t all, int columns, struct buf *out)
{
    double share = all ? 100.0 * (double)weight / (double)all : 0;
    struct buf text = {0};

    amount_put(event, weight, all, &text);
    buf_printf(out, "%6.1f%% %*s", share, columns, buf_cstr(&text));
    buf_deinit(&text);
}

void amount_put_bar(const struct emit_terminal *terminal, uint64_t weight, uint64_t longest, struct buf *out)
{
    static const char *const parts[] = {"", "\xe2\x96\x8f", "\xe2\x96\x8e", "\xe2\x96\x8d", "\xe2\x96\x8c",
                                        "\xe2\x96\x8b", "\xe2\x96\x8a", "\xe2\x96\x89", "\xe2\x96\x88"};
    double length = longest ? AMOUNT_BAR_COLUMNS * (double)weight / (double)longest : 0;
    bool blocks = terminal->blocks;
    unsigned eighths = blocks ? (unsigned)(8 * length + 0.5) : (unsigned)(length + 0.5) * 8;

    buf_put_u8(out, ' ');
    for (unsigned i = 0; i < AMOUNT_BAR_COLUMNS; i++) {
        unsigned part = eighths > 8 * i ? eighths - 8 * i : 0;
        buf_put_str(out, !part ? " " : blocks ? parts[part < 8 ? part : 8] : "#");
    }
}
