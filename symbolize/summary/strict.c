/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/summary/strict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/buf.h"
#include "formats/base/numbers.h"
#include "symbolize/summary/figures.h"
#include "symbolize/summary/summary_data.h"
#include "symbolize/summary/unnamed.h"

#define CLASS(name) (1u << LOSS_CLASS_##name)

/* A key: its share of the figures, and how to say what is missing. */
static const struct strict_row {
    const char *name;
    bool is_least;        /* the threshold is the least share; else the largest */
    size_t share;         /* offset in struct figures */
    const char *what;     /* "98.2 % of ..." */
    size_t ends;          /* offset in struct resolver_stats of the stacks' ends; 0: see `classes` */
    unsigned classes;     /* what is missing are losses of these classes */
} rows[] = {
#define SHARE(member) offsetof(struct figures, member)
#define ENDS(member) offsetof(struct resolver_stats, member)
    [STRICT_PYTHON] = {"python", true, SHARE(python), "Python stacks are whole", ENDS(python), 0},
    [STRICT_NATIVE] = {"native", true, SHARE(native), "native stacks are whole", ENDS(native), 0},
    [STRICT_KERNEL] = {"kernel", true, SHARE(kernel), "samples have their kernel stack", 0, CLASS(kernel)},
    [STRICT_JOIN] = {"join", true, SHARE(join), "stacks have their Python frames placed among the native ones", ENDS(join), 0},
    [STRICT_NAMES] = {"names", true, SHARE(named_samples), "samples have a name for every native frame", 0, 0},
    [STRICT_LOST] = {"lost", false, SHARE(lost_samples), "samples were lost", 0, CLASS(sample) | CLASS(tick)},
    [STRICT_NO_PYTHON] = {"no_python", false, SHARE(no_python), "samples are of threads without a Python state", 0, 0},
    [STRICT_PART] = {"part", false, SHARE(parts), "samples lack a fact, such as a name", 0, CLASS(part) | CLASS(unknown)},
};

static_assert(offsetof(struct resolver_stats, sample_count) == 0, "0 is no offset of ends");

/* ---- the argument ---- */

static struct error *refuse(const char *item, size_t len)
{
    struct buf keys = {0};

    for (size_t i = 0; i < STRICT_KEYS; i++)
        buf_printf(&keys, "%s%s", i ? " " : "", rows[i].name);
    struct error *err = error_create(ERROR_USAGE, "--strict wants CLASS:PERCENT or CLASS:off, such as python:99.9, not '%.*s'; "
                                     "classes are: %s", (int)len, item, buf_cstr(&keys));
    buf_deinit(&keys);
    return err;
}

/* "99.9", "0.5%" or "off", `len` bytes. */
static bool parse_threshold(const char *text, size_t len, bool *checked, double *percent)
{
    char number[24], *end;

    *checked = len != 3 || memcmp(text, "off", 3);
    if (!*checked)
        return true;
    len -= len && text[len - 1] == '%';
    if (!len || len >= sizeof number || strspn(text, "0123456789.") < len)
        return false;
    memcpy(number, text, len);
    number[len] = 0;
    *percent = strtod(number, &end);
    return !*end && *percent <= 100;
}

static bool parse_item(const char *item, size_t len, struct strict *out)
{
    const char *colon = memchr(item, ':', len);
    size_t name_len = colon ? (size_t)(colon - item) : 0;

    for (size_t i = 0; i < STRICT_KEYS; i++) {
        if (strlen(rows[i].name) == name_len && !memcmp(rows[i].name, item, name_len))
            return parse_threshold(colon + 1, len - name_len - 1, &out->checked[i], &out->percent[i]);
    }
    return false;
}

static void check_all(struct strict *out)
{
    for (size_t i = 0; i < STRICT_KEYS; i++) {
        out->checked[i] = true;
        out->percent[i] = rows[i].is_least ? 100 : 0;
    }
}

static struct error *parse_list(const char *text, struct strict *out)
{
    for (;;) {
        size_t len = strcspn(text, ",");
        if (len == 3 && !memcmp(text, "all", 3))
            check_all(out);
        else if (!parse_item(text, len, out))
            return refuse(text, len);
        if (!text[len])
            return NULL;
        text += len + 1;
    }
}

struct error *strict_parse(const char *text, struct strict *out)
{
    *out = (struct strict){.is_on = true};
    TRY(parse_list(STRICT_DEFAULT, out));
    return text && *text ? parse_list(text, out) : NULL;
}

/* ---- the check ---- */

/* What may be missing is rounded up to a whole sample, so that a single one does not fail a short recording. */
static bool meets(const struct strict_row *row, double threshold, struct share share)
{
    uint64_t missing = row->is_least ? share.whole - share.part : share.part;
    double allowed = (row->is_least ? 100 - threshold : threshold) / 100 * (double)share.whole;

    return (double)missing <= ceil(allowed - 1e-9);
}

/* Rounded towards what fails, so that the share never looks as if it met the threshold. */
static double rounded(const struct strict_row *row, struct share share)
{
    double percent = share.whole ? 100.0 * (double)share.part / (double)share.whole : 0;

    if (!share.whole && share.part)
        return 100;
    return (row->is_least ? floor(percent * 100) : ceil(percent * 100)) / 100;
}

static void put_reason(struct buf *line, uint64_t count, const char *name)
{
    struct number n;

    if (count)
        buf_printf(line, "%s %s %s", line->len_bytes ? "," : ":", grouped(count, &n), name ? name : "of an unknown kind");
}

/* Appends ": 12 python_torn, 1 python_fault". */
static void put_reasons(struct buf *line, const struct strict_row *row, const struct summary *s, const struct resolver *r)
{
    if (row->ends) {
        const struct resolver_ends *ends = (const struct resolver_ends *)((const char *)resolver_stats(r) + row->ends);
        for (uint32_t i = LOSS_complete + 1; i <= LOSS_LIMIT; i++) {
            enum loss_class class = i < LOSS_LIMIT ? trace_loss_class(i) : LOSS_CLASS_unknown;
            if (class != LOSS_CLASS_expected && class != LOSS_CLASS_no_python)
                put_reason(line, ends->count[i], i < LOSS_LIMIT ? trace_loss_name(i) : NULL);
        }
    }
    for (size_t i = 0; i < s->losses.count; i++) {
        if (row->classes >> trace_loss_class(s->losses.data[i].reason) & 1)
            put_reason(line, figures_loss_of_recorded(s, &s->losses.data[i]), s->losses.data[i].name);
    }
}

static bool check_row(const struct strict_row *row, double threshold, const struct figures *f, const struct summary *s,
                      const struct resolver *r, FILE *out)
{
    const struct share share = *(const struct share *)((const char *)f + row->share);
    struct buf reasons = {0};
    struct number n, of;

    if (meets(row, threshold, share))
        return true;
    if (row == &rows[STRICT_NAMES])
        unnamed_put_modules(r, &reasons);
    else
        put_reasons(&reasons, row, s, r);
    fprintf(out, "pysym: incomplete: %s: %s of %s %s (%.2f %%, %s %g %%)%s\n", row->name, grouped(share.part, &n),
            grouped(share.whole, &of), row->what, rounded(row, share), row->is_least ? "wanted:" : "allowed:", threshold,
            buf_cstr(&reasons));
    buf_deinit(&reasons);
    return false;
}

bool strict_check(const struct strict *strict, const struct summary *s, const struct resolver *r, FILE *out)
{
    struct figures f;
    bool good = true;

    figures_of(s, r, &f);
    if (f.is_damaged)
        fputs("pysym: incomplete: a trace is damaged, or its recorder did not end it\n", out);
    if (f.is_newer)
        fputs("pysym: incomplete: a trace has records of a newer format, which this pysym cannot read\n", out);
    for (size_t i = 0; i < STRICT_KEYS; i++) {
        if (strict->checked[i])
            good &= check_row(&rows[i], strict->percent[i], &f, s, r, out);
    }
    return good && !f.is_damaged && !f.is_newer;
}
