/* SPDX-License-Identifier: Apache-2.0 */
/* The command line as a table: rows for getopt_long(), the help text, the checks, the setters. See options.h. */
#include "formats/base/options.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/nearest.h"

/* The column in which the help of an option begins. */
#define HELP_COLUMN 24
/* getopt_long() names a row by this number and its index, or by its letter. */
#define FIRST_ROW 256

struct error *option_refuse(const struct option_row *row, const char *argument)
{
    return error_create(ERROR_USAGE, "--%s wants %s, not '%s'", row->name, row->wants, argument);
}

/* ---- reading ---- */

struct parser {
    const struct option_row *rows;
    size_t count;
    struct option longs[OPTIONS_MAX + 1];
    char letters[3 * OPTIONS_MAX + 3];
    bool given[OPTIONS_MAX];
};

bool options_at_end(const struct option_row *row)
{
    return !row->name && !row->letter && !row->help;
}

/* For getopt_long(), which also wants that many colons behind a letter. */
static int argument_kind(const struct option_row *row)
{
    static_assert(no_argument == 0 && required_argument == 1 && optional_argument == 2, "numbers of colons");
    return !row->argument ? no_argument : row->may_be_bare ? optional_argument : required_argument;
}

static void parser_init(struct parser *p, const struct option_row *rows, bool stop_early)
{
    size_t long_count = 0, at = 0;

    *p = (struct parser){.rows = rows};
    if (stop_early)
        p->letters[at++] = '+';
    p->letters[at++] = ':'; /* a missing argument is told apart from an unknown option */
    for (; !options_at_end(&rows[p->count]); p->count++) {
        const struct option_row *row = &rows[p->count];
        assert(p->count < OPTIONS_MAX);
        if (row->name)
            p->longs[long_count++] = (struct option){row->name, argument_kind(row), NULL, FIRST_ROW + (int)p->count};
        if (row->letter) {
            p->letters[at++] = row->letter;
            for (int colons = argument_kind(row); colons; colons--)
                p->letters[at++] = ':';
        }
    }
}

/* The row of what getopt_long() found, or NULL. */
static const struct option_row *parser_row(const struct parser *p, int found)
{
    if (found >= FIRST_ROW)
        return (size_t)(found - FIRST_ROW) < p->count ? &p->rows[found - FIRST_ROW] : NULL;
    for (size_t i = 0; found && i < p->count; i++) {
        if (p->rows[i].letter == found)
            return &p->rows[i];
    }
    return NULL;
}

/* Whether getopt_long() stopped at a letter. That may be one of several behind a dash, and these not yet be done with. */
static bool is_letter(void)
{
    return optopt && optopt < FIRST_ROW;
}

static struct error *refuse_unknown(const struct parser *p, const char *word)
{
    if (is_letter())
        return error_create(ERROR_USAGE, "unknown option -%c", optopt);
    int len = (int)strcspn(word, "=");
    struct nearest nearest = nearest_to(word + 2, (size_t)len - 2);
    if (parser_row(p, optopt)) /* a long option that takes no argument was given one */
        return error_create(ERROR_USAGE, "%.*s takes no argument", len, word);
    for (size_t i = 0; i < p->count; i++) {
        if (p->rows[i].name)
            nearest_consider(&nearest, p->rows[i].name);
    }
    if (nearest.name)
        return error_create(ERROR_USAGE, "unknown option %.*s: did you mean --%s?", len, word, nearest.name);
    return error_create(ERROR_USAGE, "unknown option %.*s", len, word);
}

bool options_list_has(const char *list, const char *name)
{
    for (size_t len; *list; list += len + strspn(list + len, " ")) {
        len = strcspn(list, " ");
        if (len == strlen(name) && !memcmp(list, name, len))
            return true;
    }
    return false;
}

/* The first option of the list that was given, or NULL. */
static const char *given_of(const struct parser *p, const char *list)
{
    for (size_t i = 0; i < p->count; i++) {
        if (p->given[i] && p->rows[i].name && options_list_has(list, p->rows[i].name))
            return p->rows[i].name;
    }
    return NULL;
}

/* "--rotate or --rotate-size" of "rotate rotate-size". */
static void put_list(struct buf *out, const char *list)
{
    buf_put_str(out, "--");
    for (const char *c = list; *c; c++) {
        if (*c == ' ')
            buf_put_str(out, " or --");
        else
            buf_put(out, c, 1);
    }
}

static struct error *check_together(const struct parser *p)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct option_row *row = &p->rows[i];
        if (!p->given[i])
            continue;
        const char *other = row->without ? given_of(p, row->without) : NULL;
        if (other)
            return error_create(ERROR_USAGE, "--%s and --%s exclude each other", row->name, other);
        if (row->with && !given_of(p, row->with)) {
            struct buf list = {0};
            put_list(&list, row->with);
            struct error *err = error_create(ERROR_USAGE, "--%s needs %s", row->name, buf_cstr(&list));
            buf_deinit(&list);
            return err;
        }
    }
    return NULL;
}

struct error *options_read(const struct option_row *rows, int argc, char **argv, bool stop_early, void *target, int *rest)
{
    struct parser p;
    int found;

    parser_init(&p, rows, stop_early);
    opterr = 0;
    optind = 0; /* getopt_long() starts afresh: it may have read another command line before */
    while ((found = getopt_long(argc, argv, p.letters, p.longs, NULL)) != -1) {
        const char *word = optind > 0 && optind <= argc ? argv[optind - 1] : "";
        if (found == ':' && is_letter())
            return error_create(ERROR_USAGE, "-%c wants an argument", optopt);
        if (found == ':')
            return error_create(ERROR_USAGE, "%s wants an argument", word);
        const struct option_row *row = found == '?' ? NULL : parser_row(&p, found);
        if (!row)
            return refuse_unknown(&p, word);
        p.given[row - rows] = true;
        TRY(row->set(row, optarg, target));
    }
    *rest = optind;
    return check_together(&p);
}

/* ---- --help ---- */

static void print_row(const struct option_row *row, FILE *out)
{
    const char letter[] = {row->letter ? '-' : ' ', row->letter ? row->letter : ' ', 0};
    int width = fprintf(out, "  %s%s%s%s", letter, !row->name ? "" : row->letter ? ", " : "  ", row->name ? "--" : "",
                        row->name ? row->name : "");

    if (row->argument)
        width += fprintf(out, row->may_be_bare ? "[=%s]" : " %s", row->argument);
    fprintf(out, "%*s", width < HELP_COLUMN ? HELP_COLUMN - width : 2, "");
    for (const char *c = row->help; *c; c++) {
        if (*c == '\n')
            fprintf(out, "\n%*s", HELP_COLUMN, "");
        else
            fputc(*c, out);
    }
    fputc('\n', out);
}

void options_print(const struct option_row *rows, FILE *out)
{
    for (; !options_at_end(rows); rows++) {
        if (!rows->name && !rows->letter)
            fprintf(out, "\n%s:\n", rows->help);
        else if (rows->help)
            print_row(rows, out);
    }
}

/* ---- setters ---- */

static void *member(const struct option_row *row, void *target)
{
    return (char *)target + row->offset;
}

struct error *option_set_true(const struct option_row *row, const char *argument, void *target)
{
    (void)argument;
    *(bool *)member(row, target) = true;
    return NULL;
}

struct error *option_set_false(const struct option_row *row, const char *argument, void *target)
{
    (void)argument;
    *(bool *)member(row, target) = false;
    return NULL;
}

struct error *option_set_text(const struct option_row *row, const char *argument, void *target)
{
    *(const char **)member(row, target) = argument;
    return *argument ? NULL : error_create(ERROR_USAGE, "--%s wants an argument that is not empty", row->name);
}

/* Decimal digits and nothing else, up to `*rest`. */
static bool read_number(const char *text, char **rest, uint64_t *out)
{
    errno = 0;
    *out = strtoull(text, rest, 10);
    return *rest != text && *text >= '0' && *text <= '9' && !errno;
}

struct error *option_set_u64(const struct option_row *row, const char *argument, void *target)
{
    uint64_t v;
    char *rest;

    if (!read_number(argument, &rest, &v) || *rest || v < row->min || v > row->max)
        return option_refuse(row, argument);
    *(uint64_t *)member(row, target) = v;
    return NULL;
}

struct error *option_set_u32(const struct option_row *row, const char *argument, void *target)
{
    uint64_t v;
    char *rest;

    if (!read_number(argument, &rest, &v) || *rest || v < row->min || v > row->max || v > UINT32_MAX)
        return option_refuse(row, argument);
    *(uint32_t *)member(row, target) = (uint32_t)v;
    return NULL;
}

struct error *option_set_choice(const struct option_row *row, const char *argument, void *target)
{
    unsigned i = 0;

    while (row->names[i] && strcmp(argument, row->names[i]))
        i++;
    if (!row->names[i])
        return option_refuse(row, argument);
    *(unsigned *)member(row, target) = i;
    return NULL;
}

static bool read_size(const struct option_row *row, const char *text, uint64_t *out)
{
    static const char units[] = "kmg";
    unsigned shift = 0;
    char *rest;

    if (!read_number(text, &rest, out))
        return false;
    if (*rest) {
        const char *unit = strchr(units, *rest | 0x20);
        if (!unit || rest[1])
            return false;
        shift = 10 * (unsigned)(unit - units + 1);
    }
    if (*out > row->max >> shift)
        return false;
    *out <<= shift;
    return *out >= row->min;
}

struct error *option_set_size(const struct option_row *row, const char *argument, void *target)
{
    return read_size(row, argument, member(row, target)) ? NULL : option_refuse(row, argument);
}

struct error *option_set_size_u32(const struct option_row *row, const char *argument, void *target)
{
    uint64_t v;

    if (!read_size(row, argument, &v) || v > UINT32_MAX)
        return option_refuse(row, argument);
    *(uint32_t *)member(row, target) = (uint32_t)v;
    return NULL;
}

bool option_duration_of(const char *text, uint64_t *time_ns)
{
    static const struct { const char *unit; double seconds; } units[] = {{"", 1},   {"ms", 1e-3}, {"s", 1},
                                                                         {"m", 60}, {"h", 3600},  {"d", 86400}};
    double seconds = 0;
    char *rest;
    double v = strtod(text, &rest);

    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (!strcmp(rest, units[i].unit))
            seconds = units[i].seconds;
    }
    v *= seconds;
    /* The upper bound keeps nanoseconds within 64 bits; 0 is refused, since it would mean no limit. */
    if (rest == text || !(v >= 1e-9 && v <= 1e9))
        return false;
    *time_ns = (uint64_t)(v * 1e9 + 0.5);
    return *time_ns;
}

struct error *option_set_duration(const struct option_row *row, const char *argument, void *target)
{
    uint64_t *ns = member(row, target);

    return option_duration_of(argument, ns) ? NULL : option_refuse(row, argument);
}

struct error *option_add_text(const struct option_row *row, const char *argument, void *target)
{
    struct option_texts *list = member(row, target);

    return VEC_PUSH(list, argument) ? NULL : error_no_memory();
}

struct error *option_add_numbers(const struct option_row *row, const char *argument, void *target)
{
    struct option_numbers *list = member(row, target);

    for (const char *at = argument;;) {
        char *rest;
        uint64_t v;
        bool known = false;
        if (!read_number(at, &rest, &v) || (*rest && *rest != ',') || v < row->min || v > row->max || v > UINT32_MAX)
            return option_refuse(row, argument);
        for (size_t i = 0; i < list->count; i++)
            known |= list->data[i] == v;
        if (!known && !VEC_PUSH(list, (uint32_t)v))
            return error_no_memory();
        if (!*rest)
            return NULL;
        at = rest + 1;
    }
}

/* ---- what is remembered ---- */

void option_remember_choice(const struct option_row *row, const void *target, struct buf *out)
{
    buf_put_str(out, row->names[*(const unsigned *)((const char *)target + row->offset)]);
}

void option_remember_u64(const struct option_row *row, const void *target, struct buf *out)
{
    uint64_t v = *(const uint64_t *)((const char *)target + row->offset);

    if (v)
        buf_printf(out, "%" PRIu64, v);
}
