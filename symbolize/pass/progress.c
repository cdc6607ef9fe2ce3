/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/pass/progress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/buf.h"
#include "formats/base/clock.h"
#include "formats/base/columns.h"
#include "formats/base/numbers.h"
#include "formats/base/printable.h"
#include "symbolize/trace/input.h"

enum { COLUMNS_USUAL = 80 };
static const uint64_t first_ns = NS_PER_S, every_ns = 200 * NS_PER_MS;
static const char clear[] = "\r\033[K";

static bool says(const char *name)
{
    const char *value = getenv(name);

    return value && *value;
}

/* Coarse is exact to some milliseconds, and read without a system call. */
static uint64_t coarse_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC_COARSE);
}

void progress_init(struct progress *p)
{
    const char *term = getenv("TERM");

    *p = (struct progress){.on = isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb") != 0 && !says("CI")};
    p->next_ns = coarse_ns() + first_ns;
}

void progress_begin(struct progress *p, const struct input *inputs, size_t count)
{
    struct stat st;

    if (!p || !p->on)
        return;
    p->inputs = inputs;
    p->input_count = count;
    p->all_bytes = p->done_bytes = p->samples = 0;
    for (size_t i = 0; i < count; i++) {
        const char *path = input_again(&inputs[i]);
        if (!path || stat(path, &st)) {
            p->all_bytes = 0;
            return;
        }
        p->all_bytes += (uint64_t)st.st_size;
    }
}

void progress_begin_file(struct progress *p, size_t number)
{
    if (p)
        p->number = number;
}

void progress_end_file(struct progress *p, uint64_t file_bytes)
{
    if (p)
        p->done_bytes += file_bytes;
}

static unsigned terminal_columns(void)
{
    struct winsize size = {0};

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : COLUMNS_USUAL;
}

/* What there is to say, before it is cut to the terminal's width. */
static void put_line(const struct progress *p, uint64_t file_bytes, struct buf *out)
{
    uint64_t bytes = p->done_bytes + file_bytes;
    struct number n;

    buf_put_str(out, "pysym: ");
    if (bytes <= p->all_bytes && p->all_bytes)
        buf_printf(out, "%d %%, ", (int)(100 * (double)bytes / (double)p->all_bytes));
    if (p->samples < 1000000)
        buf_put_str(out, counted(p->samples, "sample", "samples", &n));
    else
        buf_printf(out, "%.1f million samples", (double)p->samples / 1e6);
    buf_put_str(out, ": ");
    printable_put(out, input_title(p->inputs[p->number].path));
    if (p->input_count > 1)
        buf_printf(out, " (%zu of %zu)", p->number + 1, p->input_count);
}

void progress_look(struct progress *p, uint64_t file_bytes)
{
    uint64_t now = coarse_ns();
    struct buf line = {0}, cut = {0};

    if (now < p->next_ns)
        return;
    p->next_ns = now + every_ns;
    put_line(p, file_bytes, &line);
    buf_put_str(&cut, clear);
    columns_cut(&cut, line.data, line.len_bytes, terminal_columns() - 1);
    /* A terminal that takes nothing is no reason to stop. */
    if (!line.bad && !cut.bad && write(STDERR_FILENO, cut.data, cut.len_bytes) > 0)
        p->shown = true;
    buf_deinit(&line);
    buf_deinit(&cut);
}

void progress_clear(struct progress *p)
{
    if (p && p->shown && write(STDERR_FILENO, clear, sizeof clear - 1) > 0)
        p->shown = false;
}
