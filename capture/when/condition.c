/* SPDX-License-Identifier: Apache-2.0 */
/* Words behind commas are names with values; blanks may stand around the sign. */
#include "capture/when/condition.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/clock.h"
#include "formats/base/options.h"

#define EXAMPLE "write it like cpu>80%% or cpu>2.5,for=2s"
#define LIMIT_MAX 100000
#define NUMBER_MAX 15
#define DURATION_MAX 15

#define FOR_NS (2 * NS_PER_S)
#define FOR_LEAST_NS (100 * NS_PER_MS)
#define FOR_MOST_NS (3600 * NS_PER_S)
#define EVERY_NS (300 * NS_PER_S)
#define EVERY_LEAST_NS NS_PER_S

static const char *const fact_names[WHEN_FACTS] = {
    [WHEN_CPU] = "cpu",
    [WHEN_RUNQ] = "runq",
    [WHEN_GIL] = "gil",
};

static const char *skip_blanks(const char *p)
{
    return p + strspn(p, " ");
}

static struct error *read_fact(const char **text, enum when_fact *fact)
{
    size_t len = strspn(*text, "abcdefghijklmnopqrstuvwxyz");

    for (size_t i = 0; i < WHEN_FACTS; i++) {
        if (strlen(fact_names[i]) == len && !memcmp(*text, fact_names[i], len)) {
            *fact = (enum when_fact)i;
            *text = skip_blanks(*text + len);
            return NULL;
        }
    }
    struct buf known = {0};
    for (size_t i = 0; i < WHEN_FACTS; i++)
        buf_printf(&known, "%s%s", i ? ", " : "", fact_names[i]);
    buf_put_u8(&known, 0);
    struct error *err = known.bad ? error_no_memory()
                                  : error_create(ERROR_USAGE, "--when '%s': it begins with what is measured (%s): " EXAMPLE, *text,
                                                 (const char *)known.data);
    buf_deinit(&known);
    return err;
}

/* A decimal number without sign and exponent, and whether a percent sign follows. */
static struct error *read_limit(const char **text, struct when_condition *c)
{
    size_t len = strspn(*text, "0123456789."), behind = len;
    char number[NUMBER_MAX + 1] = "";
    char *rest = number;

    if (len <= NUMBER_MAX) {
        memcpy(number, *text, len);
        c->limit = strtod(number, &rest);
    }
    c->percent = (*text)[len] == '%';
    behind += c->percent;
    behind += strspn(*text + behind, " ");
    if (!len || len > NUMBER_MAX || *rest || !strchr(",", (*text)[behind]))
        return error_create(ERROR_USAGE, "--when: '%s' does not begin with a number of threads, or a percentage of one: " EXAMPLE, *text);
    if (c->percent)
        c->limit /= 100;
    if (!(c->limit > 0) || c->limit > LIMIT_MAX)
        return error_create(ERROR_USAGE, "--when: the limit is more than 0 and at most %u, not %s", LIMIT_MAX, number);
    *text += behind;
    return NULL;
}

static struct error *read_duration(const char *text, size_t len, const char *name, uint64_t least_ns, uint64_t most_ns, uint64_t *time_ns)
{
    char value[DURATION_MAX + 1] = "";
    uint64_t ns;

    if (len <= DURATION_MAX)
        memcpy(value, text, len);
    if (!option_duration_of(value, &ns) || ns < least_ns || ns > most_ns)
        return error_create(ERROR_USAGE, "--when: %s wants a duration from %" PRIu64 "ms to %" PRIu64 "h, like 500ms, 2s or 10m, not '%.*s'", name,
                            least_ns / NS_PER_MS, most_ns / (3600 * NS_PER_S), (int)len, text);
    *time_ns = ns;
    return NULL;
}

/* One of the words behind the limit. */
static struct error *read_word(const char *word, size_t len, struct when_condition *c)
{
    if (!strncmp(word, "for=", 4))
        return read_duration(word + 4, len - 4, "for=", FOR_LEAST_NS, FOR_MOST_NS, &c->for_ns);
    if (!strncmp(word, "every=", 6))
        return read_duration(word + 6, len - 6, "every=", EVERY_LEAST_NS, 24 * 3600 * NS_PER_S, &c->every_ns);
    return error_create(ERROR_USAGE, "--when: '%.*s' is neither for=TIME nor every=TIME", (int)len, word);
}

struct error *when_read(const char *text, struct when_condition *out)
{
    struct when_condition c = {.for_ns = FOR_NS, .every_ns = EVERY_NS};
    const char *p = skip_blanks(text);

    TRY(read_fact(&p, &c.fact));
    if (*p != '>')
        return error_create(ERROR_USAGE, "--when '%s': behind %s comes > and a limit: " EXAMPLE, text, fact_names[c.fact]);
    p = skip_blanks(p + 1);
    TRY(read_limit(&p, &c));
    while (*p == ',') {
        p = skip_blanks(p + 1);
        size_t len = strcspn(p, ",");
        TRY(read_word(p, len, &c));
        p += len;
    }
    *out = c;
    return NULL;
}

struct error *when_list_add(struct when_list *l, const char *text)
{
    if (l->count == WHEN_CONDITIONS_MAX)
        return error_create(ERROR_USAGE, "--when is given more than %u times", WHEN_CONDITIONS_MAX);
    TRY(when_read(text, &l->list[l->count]));
    l->texts[l->count++] = text;
    return NULL;
}

bool when_list_has(const struct when_list *l, enum when_fact fact)
{
    for (uint32_t i = 0; l && i < l->count; i++) {
        if (l->list[i].fact == fact)
            return true;
    }
    return false;
}

void when_put_reason(const struct when_condition *c, double level, struct buf *out)
{
    double unit = c->percent ? 100 : 1;
    const char *sign = c->percent ? "%" : "";

    buf_printf(out, "%s %.*f%s > %g%s for %gs", fact_names[c->fact], c->percent ? 0 : 2, level * unit, sign, c->limit * unit, sign,
               (double)c->for_ns / NS_PER_S);
}
