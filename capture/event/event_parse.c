/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads -e: a list of NAME, NAME:MODIFIERS and NAME/TERM,TERM/MODIFIERS. What the name says:
 *
 *     cycles, L1-dcache-loads, r1a8     an event of the table, of a cache, or by its number
 *     cpu/event=0x3c,umask=1/           an event of a PMU, whose terms its files in sysfs explain
 *     sched:sched_switch                a tracepoint
 *
 * Terms of our own, for all of these: period=, freq=, name=; for tracepoints weight= and unit= beside them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/event/event_made.h"
#include "capture/event/event_table.h"
#include "formats/base/buf.h"
#include "formats/base/nearest.h"
#include "formats/trace/trace.h"

#define UNIT_MAX 24

/* An event while it is read. */
struct draft {
    struct event event;       /* rate and period */
    struct event_made *made;
    const char *text;         /* the whole, for errors */
    int len;
    bool is_row;              /* nothing was written but the name of a row */
    const struct event_source *row;
};

/* ---- words ---- */

static bool is_word(const char *text, size_t len, const char *word)
{
    return strlen(word) == len && !memcmp(text, word, len);
}

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Whether the text is a word of letters, digits and `others`. */
static bool is_plain(const char *text, size_t len, const char *others)
{
    for (size_t i = 0; i < len; i++) {
        if (!text[i] || (!is_letter_or_digit(text[i]) && !strchr(others, text[i])))
            return false;
    }
    return len > 0;
}

static void copy(char *out, const char *text, size_t len)
{
    memcpy(out, text, len);
    out[len] = 0;
}

/* Parses a number, from 1 to `most`, that consists of digits only. */
static bool read_number(const char *text, size_t len, uint64_t most, uint64_t *out)
{
    uint64_t n = 0;

    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || n > (most - (uint64_t)(text[i] - '0')) / 10)
            return false;
        n = n * 10 + (uint64_t)(text[i] - '0');
    }
    *out = n;
    return n > 0;
}

/* ---- names ---- */

static struct error *unknown_event(const char *name, size_t len)
{
    struct nearest near = nearest_to(name, len);
    struct buf known = {0};
    char caches[EVENT_CACHE_NAMES][40];

    for (size_t i = 0; i < EVENT_CACHE_NAMES && event_cache_name(i, caches[i]); i++)
        nearest_consider(&near, caches[i]);
    for (size_t i = 0; event_table_row(i); i++) {
        buf_printf(&known, "%s, ", event_table_row(i)->name);
        nearest_consider(&near, event_table_row(i)->name);
    }
    struct error *err =
        known.bad ? error_no_memory()
                  : error_create(ERROR_USAGE, "event '%.*s' is not known%s%s%s; known are %sthose of caches (LLC-loads), tracepoints "
                                 "(sched:sched_switch) and those of PMUs (cpu/event=0x3c/): pycap info --events lists them",
                                 (int)len, name, near.name ? " (is " : "", near.name ? near.name : "", near.name ? " meant?)" : "",
                                 buf_cstr(&known));
    buf_deinit(&known);
    return err;
}

/* What perf has and pycap refuses, by the name before a colon or a slash. */
static const struct {
    const char *name;
    bool begins; /* the name only begins so */
    const char *why;
} refused[] = {
#define PROBE "probes write into the code of processes or of the kernel, and pycap changes neither; use a tracepoint, or sample time"
    {"probe", true, PROBE},
    {"uprobe", true, PROBE},
    {"kprobe", true, PROBE},
    {"uretprobe", true, PROBE},
    {"kretprobe", true, PROBE},
    {"usdt", true, PROBE},
    {"sdt", false, PROBE},
    {"sdt_", true, PROBE},
#define BREAKPOINT "a breakpoint takes a debug register of the process, and pycap changes no process"
    {"mem", false, BREAKPOINT},
    {"breakpoint", false, BREAKPOINT},
    {"user_events", true, "the kernel writes into the process when somebody waits for such an event, and pycap changes no process"},
#define TRACER "such a PMU records all that a CPU does into a buffer of its own, and takes no samples; perf record takes it"
    {"intel_pt", true, TRACER},
    {"intel_bts", true, TRACER},
    {"arm_spe", true, "it takes its samples into a buffer of its own, without stacks; perf record takes it"},
    {"cs_etm", true, TRACER},
    {"hisi_ptt", true, TRACER},
    {"ftrace", false, "the kernel runs no program of ours at these; the other tracepoints are listed by pycap info --events '*:*'"},
    {"tracepoint", false, "a tracepoint is written CATEGORY:NAME"},
};

static struct error *check_refused(const struct draft *d, const char *name, size_t len)
{
    if (*d->text == '{')
        return error_create(ERROR_USAGE, "-e: groups of events in braces are not supported: list the events with commas");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        size_t word = strlen(refused[i].name);
        if (len >= word && (len == word || refused[i].begins) && !memcmp(name, refused[i].name, word))
            return error_create(ERROR_USAGE, "event '%.*s' is refused: %s", d->len, d->text, refused[i].why);
    }
    return NULL;
}

static struct error *name_tracepoint(struct draft *d, const char *name, size_t len)
{
    struct event_made *made = d->made;
    size_t category = strcspn(name, ":"), point = len - category - 1;

    if (memchr(name, '*', len) || memchr(name, '?', len))
        return error_create(ERROR_USAGE, "event '%.*s': a tracepoint is named alone, without a pattern; pycap info --events '%.*s' "
                            "lists those that fit", d->len, d->text, (int)len, name);
    if (memchr(name + category + 1, ':', point))
        return error_create(ERROR_USAGE, "event '%.*s': a tracepoint has no modifiers: its hits are counted in the process that "
                            "makes them, wherever that is", d->len, d->text);
    if (!is_plain(name, category, "_-.") || !is_plain(name + category + 1, point, "_-."))
        return error_create(ERROR_USAGE, "event '%.*s': a tracepoint is written CATEGORY:NAME", d->len, d->text);
    made->source.kind = EVENT_TRACEPOINT;
    copy(made->category, name, category);
    copy(made->point, name + category + 1, point);
    made->source.category = made->category;
    made->source.point = made->point;
    copy(made->unit, "hits", 4);
    made->source.unit = made->unit;
    copy(made->name, name, len);
    made->source.name = made->name; /* for messages about its terms */
    return NULL;
}

static struct error *name_pmu(struct draft *d, const char *name, size_t len)
{
    struct event_made *made = d->made;

    if (!is_plain(name, len, "_-."))
        return unknown_event(name, len);
    made->source.kind = EVENT_HARDWARE;
    copy(made->device, name, len);
    made->source.device = made->device;
    made->source.terms = made->terms;
    copy(made->unit, "events", 6);
    made->source.unit = made->unit;
    return NULL;
}

/* Reads "NAME" or "NAME:MODIFIERS". */
static struct error *read_name(struct draft *d, const char *name, size_t len, bool has_slash)
{
    const char *colon = memchr(name, ':', len);
    size_t head = colon ? (size_t)(colon - name) : len;
    struct event_made *made = d->made;

    if (!head)
        return error_create(ERROR_USAGE, "-e: an event has no name: a list is like cpu-clock,page-faults/period=1/");
    d->row = event_table_find(name, head);
    d->is_row = d->row != NULL && !colon;
    if (d->row) {
        made->source = *d->row;
        snprintf(made->name, sizeof made->name, "%s", d->row->name);
    } else if (event_cache_find(name, head, &made->source) || event_raw_find(name, head, &made->source)) {
        copy(made->name, name, head);
    } else {
        TRY(check_refused(d, name, head));
        return colon ? name_tracepoint(d, name, len) : has_slash ? name_pmu(d, name, len) : unknown_event(name, len);
    }
    if (!colon)
        return NULL;
    if (!event_has_counter(&made->source))
        return error_create(ERROR_USAGE, "event %.*s: %s has no modifiers", d->len, d->text, made->name);
    if (head + 1 == len)
        return error_create(ERROR_USAGE, "event %.*s: there is no modifier behind the colon", d->len, d->text);
    strncat(made->name, colon, len - head);
    return event_read_modifiers(colon + 1, len - head - 1, made->name, &made->source);
}

/* ---- terms ---- */

static const char *shown(const struct draft *d)
{
    return d->made->source.device ? d->made->device : d->made->name;
}

static struct error *unknown_term(const struct draft *d, const char *text, size_t len)
{
    const struct event_source *source = &d->made->source;

    return error_create(ERROR_USAGE, "unknown term '%.*s' of the event %s: write period=N%s%s", (int)len, text, shown(d),
                        event_has_rate(source) ? " or freq=HZ" : "",
                        source->kind == EVENT_TRACEPOINT ? ", weight=FIELD, unit=WORD" : "");
}

/* Parses "period=16" or "freq=99". */
static struct error *read_rate(struct draft *d, const char *text, size_t len, const char *value, size_t value_len)
{
    bool is_frequency = *text == 'f';
    struct event *event = &d->event;

    if (event->period || event->frequency_hz)
        return error_create(ERROR_USAGE, "event %s: give either a period or a rate, and only once", shown(d));
    if (is_frequency)
        TRY(event_check_frequency(&d->made->source));
    if (!value || !read_number(value, value_len, is_frequency ? EVENT_FREQUENCY_MAX : EVENT_PERIOD_MAX,
                               is_frequency ? &event->frequency_hz : &event->period))
        return error_create(ERROR_USAGE, "event %s: '%.*s' is no %s", shown(d), (int)len, text,
                            is_frequency ? "rate: samples a second, 1 to 1000000" : "period: a number of counts, 1 at least");
    return is_frequency ? NULL : event_check_period(&d->made->source, event->period);
}

/* Takes the value of a term that is given once, a word. */
static struct error *take_word(const struct draft *d, const char *text, size_t len, const char *others, char *out)
{
    size_t key = strcspn(text, "=");

    if (key >= len || !is_plain(text + key + 1, len - key - 1, others))
        return error_create(ERROR_USAGE, "event %s: '%.*s' lacks a word of letters and digits", shown(d), (int)len, text);
    copy(out, text + key + 1, len - key - 1);
    return NULL;
}

/* Parses one term of an event. `named` gets what name= says. */
static struct error *read_term(struct draft *d, const char *text, size_t len, char *named)
{
    const char *equals = memchr(text, '=', len);
    size_t key = equals ? (size_t)(equals - text) : len;
    struct event_made *made = d->made;
    struct event_source *source = &made->source;
    bool is_made_up = source->kind == EVENT_TRACEPOINT || source->device || (source->kind == EVENT_HARDWARE && !d->row);

    if (is_word(text, key, "period") || is_word(text, key, "freq"))
        return read_rate(d, text, len, equals ? equals + 1 : NULL, equals ? len - key - 1 : 0);
    if (is_word(text, key, "name"))
        return take_word(d, text, len, "_-.:+", named);
    if (is_word(text, key, "unit") && is_made_up) {
        TRY(take_word(d, text, len, "_-.", made->unit));
        source->unit = made->unit;
        if (!strcmp(made->unit, TRACE_UNIT_FAULTS))
            return error_create(ERROR_USAGE, "event %s: the unit '" TRACE_UNIT_FAULTS "' is that of page faults", shown(d));
        return strlen(made->unit) <= UNIT_MAX ? NULL
                                              : error_create(ERROR_USAGE, "event %s: the unit has more than %d letters", shown(d),
                                                             UNIT_MAX);
    }
    if (is_word(text, key, "weight") && source->kind == EVENT_TRACEPOINT) {
        TRY(take_word(d, text, len, "_", made->weight));
        source->weight = made->weight;
        return NULL;
    }
    if (!source->device)
        return unknown_term(d, text, len);
    if (!is_plain(text, len, "_-.=?"))
        return error_create(ERROR_USAGE, "event %.*s: '%.*s' is no term", d->len, d->text, (int)len, text);
    if (*made->terms)
        strcat(made->terms, ",");
    strncat(made->terms, text, len);
    return NULL;
}

/* Reads the terms between the slashes, and the modifiers behind the second one. */
static struct error *read_terms(struct draft *d, const char *terms, size_t len)
{
    struct event_made *made = d->made;
    const char *slash = memrchr(terms, '/', len), *behind = slash + 1, *end = terms + len;
    char named[EVENT_TEXT_MAX + 1] = "";

    for (const char *at = terms; slash > terms && at <= slash;) {
        size_t term = strcspn(at, ",/");
        TRY(read_term(d, at, term, named));
        at += term + 1;
    }
    if (made->source.device && !*made->terms)
        return error_create(ERROR_USAGE, "event %.*s: name an event of %s between the slashes, like cpu/event=0x3c/", d->len,
                            d->text, made->device);
    if (made->source.device)
        snprintf(made->name, sizeof made->name, "%s/%s/", made->device, made->terms);
    behind += behind < end && *behind == ':';
    if (behind < end) {
        if (!event_has_counter(&made->source))
            return error_create(ERROR_USAGE, "event %.*s: %s has no modifiers", d->len, d->text, made->name);
        if (!made->source.device)
            strcat(made->name, ":");
        strncat(made->name, behind, (size_t)(end - behind));
        TRY(event_read_modifiers(behind, (size_t)(end - behind), made->name, &made->source));
        d->is_row = false;
    }
    if (*named) {
        const struct event_source *other = event_source(named);
        if (other && other != d->row)
            return error_create(ERROR_USAGE, "event %.*s: name=%s is what another event is called", d->len, d->text, named);
        memcpy(made->name, named, strlen(named) + 1);
        d->is_row = false;
    }
    return NULL;
}

/* ---- lists ---- */

struct event_made *event_made_of(const struct event *event)
{
    for (size_t i = 0; event_table_row(i); i++) {
        if (event->source == event_table_row(i))
            return NULL;
    }
    return (struct event_made *)event->source;
}

void event_list_deinit(struct event_list *events)
{
    for (uint32_t i = 0; i < events->count; i++)
        free(event_made_of(&events->list[i]));
    events->count = 0;
}

static bool list_has(const struct event_list *events, const char *name)
{
    for (uint32_t i = 0; i < events->count; i++) {
        if (!strcmp(events->list[i].source->name, name))
            return true;
    }
    return false;
}

static struct error *read_draft(const struct event_list *events, struct draft *d, const char *text, size_t len)
{
    const char *slash = memchr(text, '/', len);
    size_t name = slash ? (size_t)(slash - text) : len;

    TRY(read_name(d, text, name, slash != NULL));
    if (slash)
        TRY(read_terms(d, slash + 1, len - name - 1));
    d->made->source.name = d->made->name;
    d->made->source.alias = NULL;
    if (list_has(events, d->made->name))
        return error_create(ERROR_USAGE, "-e: %s is named twice; the term name=WORD tells two of them apart", d->made->name);
    if (events->count == WIRE_EVENT_MAX)
        return error_create(ERROR_USAGE, "-e: at most %d events at once", WIRE_EVENT_MAX);
    return NULL;
}

/* Parses an event of length `len`. */
static struct error *read_event(struct event_list *events, const char *text, size_t len)
{
    struct draft d = {.text = text, .len = (int)len};

    if (len > EVENT_TEXT_MAX)
        return error_create(ERROR_USAGE, "-e: the text of an event has %d letters at most", EVENT_TEXT_MAX);
    d.made = calloc(1, sizeof *d.made);
    if (!d.made)
        return error_no_memory();
    struct error *err = read_draft(events, &d, text, len);
    d.event.source = &d.made->source;
    if (err || d.is_row) {
        free(d.made);
        d.event.source = d.row;
    }
    if (!err)
        events->list[events->count++] = d.event;
    return err;
}

struct error *event_list_add(struct event_list *events, const char *text)
{
    for (;;) {
        size_t len = strcspn(text, ",/");
        if (text[len] == '/') {
            size_t terms = strcspn(text + len + 1, "/");
            if (!text[len + 1 + terms])
                return error_create(ERROR_USAGE, "-e: '%s' lacks the second slash: NAME/period=N/", text);
            len += terms + 2;
            len += strcspn(text + len, ",/");
            if (text[len] == '/') {
                struct draft d = {.text = text, .len = (int)strlen(text)};
                TRY(check_refused(&d, text, strcspn(text, ":/")));
                return error_create(ERROR_USAGE, "-e: '%s': after the second slash there must be modifiers, a comma or the end",
                                    text);
            }
        }
        TRY(read_event(events, text, len));
        if (!text[len])
            return NULL;
        text += len + 1;
    }
}

struct error *event_list_add_missing(struct event_list *events, const char *text)
{
    for (size_t len; *text; text += len + (text[len] == ',')) {
        len = strcspn(text, ",");
        const struct event_source *row = event_table_find(text, len);
        if (!row)
            return unknown_event(text, len);
        if (!list_has(events, row->name))
            TRY(read_event(events, text, len));
    }
    return NULL;
}
