/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies rules to samples. Labels are made once for each thread and event, and again when what they are made of has changed:
 * its texts are the model's, where equal ones have one address.
 */
#include "symbolize/push/series.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/buf.h"
#include "formats/base/intern.h"
#include "formats/base/map.h"
#include "formats/base/printable.h"
#include "formats/base/utf8.h"
#include "formats/base/vec.h"
#include "symbolize/push/label_map.h"
#include "symbolize/push/label_rule.h"
#include "symbolize/trace/cgroup_names.h"

#define SERVICE_NAME "service_name"
#define SERIES_NONE UINT32_MAX
#define MAKE_WORK 5000 /* steps for labels that are made, beside those for their bytes */

/* What the labels of a thread and an event were made of, and their series. */
struct made {
    const char *comm, *program, *cgroup, *container, *thread;
    uint32_t python_version, capture;
    uint32_t own, other; /* other: SERIES_NONE if it was not needed */
};

struct series_window {
    uint64_t begin_ns;
    uint32_t count;
    struct map members; /* by series: whether its own profiles are made; else it counts for "other" */
};

struct labels {
    const struct profile_label *data; /* sorted by name */
    uint32_t count;
};

struct series {
    struct limits *limits;
    uint32_t max_series;
    VEC(struct label_rule) rules;
    struct label_map *map;
    /* What is known of a sample, "" if it is not. */
    struct buf facts[FIELD_COUNT];
    uint32_t of_map[LABEL_MAP_KINDS]; /* entries of the map; LABEL_MAP_END: none */
    /* The labels that are being made: texts of values, and where each begins. */
    struct buf values, value, key;
    struct profile_label making[PROFILE_LABELS_MAX];
    size_t begins[PROFILE_LABELS_MAX];
    uint32_t making_count;
    /* All that were made. */
    struct intern keys;
    struct intern types; /* values of PROFILE_NAME_LABEL; ids are those of the events */
    struct arena arena;
    VEC(struct labels) all;
    struct map made_of; /* by thread and event: index in `made` */
    VEC(struct made) made;
    struct series_window windows[SERIES_WINDOWS_MAX];
    uint32_t window_count;
    uint64_t folded;
};

/* ---- rules ---- */

static const char *const default_rules[] = {SERVICE_NAME "={service_name|unit|program|comm}", "host={host}", "container_id={container}",
                                            "pod_uid={pod_uid}", "python_version={python}"};
/* Where the rule of a service's name gives nothing. */
static const char *const fallback_rule = SERVICE_NAME "={program|comm}";

static const struct label_rule *find_rule(const struct series *s, const char *name)
{
    for (size_t i = 0; i < s->rules.count; i++) {
        if (!strcmp(s->rules.data[i].name, name))
            return &s->rules.data[i];
    }
    return NULL;
}

static struct error *add_rule(struct series *s, const char *text, bool maps, bool is_default)
{
    struct label_rule rule;
    struct error *err = label_rule_parse(text, maps, &rule);
    bool known = !err && find_rule(s, rule.name);

    if (known && !is_default)
        err = error_create(ERROR_USAGE, "--label %s: a label of that name was given already", text);
    else if (!err && !rule.pieces.count && !strcmp(rule.name, SERVICE_NAME))
        err = error_create(ERROR_USAGE, "--label %s: stores take no profile without a " SERVICE_NAME, text);
    if (!err && !known) {
        if (VEC_PUSH(&s->rules, rule))
            return NULL;
        err = error_no_memory();
    }
    label_rule_deinit(&rule);
    return err;
}

/* A series has the labels of all rules, those of the map, and its __name__. */
static struct error *check_count(const struct series *s)
{
    uint32_t count = 1;

    for (size_t i = 0; i < s->rules.count; i++)
        count += s->rules.data[i].pieces.count > 0;
    for (uint32_t i = 0; s->map && i < label_map_name_count(s->map); i++)
        count += !find_rule(s, label_map_name(s->map, i));
    return count <= PROFILE_LABELS_MAX ? NULL
                                       : error_create(ERROR_USAGE, "series would have %u labels%s: stores take %d; --label NAME= leaves one out",
                                                      count, s->map ? ", with those of the label map" : "", PROFILE_LABELS_MAX);
}

static struct error *add_rules(struct series *s, const struct push_request *request)
{
    for (size_t i = 0; i < request->labels.count; i++)
        TRY(add_rule(s, request->labels.data[i], request->label_map, false));
    for (size_t i = 0; i < sizeof default_rules / sizeof *default_rules; i++)
        TRY(add_rule(s, default_rules[i], true, true));
    return NULL;
}

struct error *series_check_rules(const struct push_request *request)
{
    struct series s = {0};
    struct error *err = add_rules(&s, request);

    if (!err)
        err = check_count(&s);
    for (size_t i = 0; i < s.rules.count; i++)
        label_rule_deinit(&s.rules.data[i]);
    VEC_DEINIT(&s.rules);
    return err;
}

static struct error *begin(struct series *s, const struct push_request *request)
{
    TRY(add_rules(s, request));
    if (request->label_map) {
        TRY(label_map_create(s->limits, &s->map));
        TRY(label_map_read(s->map, request->label_map));
    }
    return check_count(s);
}

struct error *series_create(const struct push_request *request, struct limits *limits, struct series **out)
{
    struct series *s = calloc(1, sizeof *s);

    if (!s)
        return error_no_memory();
    s->limits = s->keys.arena.limits = s->types.arena.limits = s->arena.limits = s->made_of.limits = limits;
    for (size_t i = 0; i < SERIES_WINDOWS_MAX; i++)
        s->windows[i].members.limits = limits;
    s->max_series = request->max_series;
    struct error *err = begin(s, request);
    if (err)
        series_destroy(s);
    else
        *out = s;
    return err;
}

struct error *series_check_map(const struct push_request *request)
{
    struct limits limits = {.memory_max = UINT64_MAX, .work_max = UINT64_MAX}; /* the file's length has one */
    struct series *s = NULL;
    struct error *err = series_create(request, &limits, &s);

    series_destroy(s);
    return err;
}

void series_destroy(struct series *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->rules.count; i++)
        label_rule_deinit(&s->rules.data[i]);
    VEC_DEINIT(&s->rules);
    label_map_destroy(s->map);
    for (size_t i = 0; i < FIELD_COUNT; i++)
        buf_deinit(&s->facts[i]);
    buf_deinit(&s->values);
    buf_deinit(&s->value);
    buf_deinit(&s->key);
    intern_deinit(&s->keys);
    intern_deinit(&s->types);
    arena_deinit(&s->arena);
    limits_give(s->limits, s->all.count * sizeof *s->all.data + s->made.count * sizeof *s->made.data);
    VEC_DEINIT(&s->all);
    VEC_DEINIT(&s->made);
    map_deinit(&s->made_of);
    for (size_t i = 0; i < SERIES_WINDOWS_MAX; i++)
        map_deinit(&s->windows[i].members);
    free(s);
}

/* ---- what is known of a sample ---- */

/* The length of what a label takes of a text: whole characters. */
static size_t cut_length(const char *text)
{
    size_t len = 0, n;
    uint32_t code;

    for (; text[len]; len += n) {
        n = utf8_decode((const uint8_t *)text + len, strnlen(text + len, 4), &code);
        n = n ? n : 1;
        if (len + n > PROFILE_LABEL_VALUE_MAX)
            break;
    }
    return len;
}

/* More of it than a label holds is of no use. */
static void put_fact(struct buf *out, const char *text)
{
    buf_put(out, text, cut_length(text));
}

static void clear_facts(struct series *s)
{
    for (size_t i = 0; i < FIELD_COUNT; i++)
        buf_clear(&s->facts[i]);
    for (size_t i = 0; i < LABEL_MAP_KINDS; i++)
        s->of_map[i] = LABEL_MAP_END;
}

/* Looks up what the facts name in the label map. False: out of memory. */
static bool ask_map(struct series *s)
{
    static const enum label_field fields[LABEL_MAP_KINDS] = {[LABEL_MAP_CONTAINER] = FIELD_CONTAINER,
                                                             [LABEL_MAP_POD] = FIELD_POD_UID,
                                                             [LABEL_MAP_UNIT] = FIELD_UNIT,
                                                             [LABEL_MAP_HOST] = FIELD_HOST};
    bool bad = false;

    for (size_t i = 0; i < FIELD_COUNT; i++)
        bad |= s->facts[i].bad;
    for (size_t i = 0; s->map && !bad && i < LABEL_MAP_KINDS; i++) {
        struct buf *fact = &s->facts[fields[i]];
        s->of_map[i] = fact->len_bytes ? label_map_find(s->map, i, buf_cstr(fact)) : LABEL_MAP_END;
    }
    return !bad;
}

static void put_python(const struct emit_process *p, struct buf *out)
{
    if (p->python_version)
        buf_printf(out, "%u.%u%s", p->python_version >> 24, p->python_version >> 16 & 0xff, p->free_threaded ? "t" : "");
}

/* What a service may be called by: "-m http.server" is one of its module, "-c" says nothing. */
static const char *program_of(const struct emit_process *p)
{
    static const char module[] = "-m ";

    if (!strcmp(p->name, "-c"))
        return "";
    return strncmp(p->name, module, strlen(module)) != 0 ? p->name : p->name + strlen(module);
}

static bool set_host(struct series *s, const struct emit_model *m, uint32_t capture)
{
    put_fact(&s->facts[FIELD_HOST], m->captures[capture].hostname);
    return ask_map(s);
}

static bool set_facts(struct series *s, const struct emit_model *m, const struct emit_sample *sample)
{
    const struct emit_thread *t = &m->threads[sample->thread];
    const struct emit_process *p = &m->processes[t->process];
    struct buf *f = s->facts;

    clear_facts(s);
    put_fact(&f[FIELD_PROGRAM], program_of(p));
    put_fact(&f[FIELD_COMM], p->comm);
    put_fact(&f[FIELD_CONTAINER], p->container);
    put_fact(&f[FIELD_CGROUP], p->cgroup);
    cgroup_put_unit(p->cgroup, &f[FIELD_UNIT]);
    cgroup_put_pod_uid(p->cgroup, &f[FIELD_POD_UID]);
    put_python(p, &f[FIELD_PYTHON]);
    buf_printf(&f[FIELD_PID], "%u", p->pid);
    buf_printf(&f[FIELD_TID], "%u", t->tid);
    put_fact(&f[FIELD_THREAD], t->name);
    put_fact(&f[FIELD_EVENT], m->events[sample->event].name);
    return set_host(s, m, sample->capture);
}

/* ---- labels ---- */

/* Appends the field. False: it is not known. */
static bool put_field(const struct series *s, const struct label_piece *piece, struct buf *out)
{
    if (piece->field != FIELD_OF_MAP) {
        buf_put(out, s->facts[piece->field].data, s->facts[piece->field].len_bytes);
        return s->facts[piece->field].len_bytes;
    }
    for (size_t kind = 0; s->map && kind < LABEL_MAP_KINDS; kind++) {
        for (uint32_t i = s->of_map[kind]; i != LABEL_MAP_END; i = label_map_entry(s->map, i)->next) {
            const struct label_map_entry *entry = label_map_entry(s->map, i);
            if (strlen(entry->name) == piece->len && !memcmp(entry->name, piece->text, piece->len)) {
                buf_put_str(out, entry->value);
                return true;
            }
        }
    }
    return false;
}

/* Makes the value of a rule. False: a field in it is not known. */
static bool apply(const struct series *s, const struct label_rule *rule, struct buf *out)
{
    bool known = true;

    buf_clear(out);
    for (size_t i = 0; i < rule->pieces.count; i++) {
        const struct label_piece *piece = &rule->pieces.data[i];
        if (!piece->is_alternative && !known)
            return false;
        bool is_full = out->len_bytes > PROFILE_LABEL_VALUE_MAX + 4;
        if (is_full)
            out->len_bytes = PROFILE_LABEL_VALUE_MAX + 4; /* what is behind it will be cut off, but no character */
        if (!piece->is_field)
            buf_put(out, piece->text, piece->len);
        else if (!piece->is_alternative || !known)
            known = put_field(s, piece, out);
    }
    return known && out->len_bytes;
}

/* Adds a label to those that are being made, unless its value is empty. There is room: check_count(). */
static void add_label(struct series *s, const char *name, const char *value)
{
    if (!*value)
        return;
    s->begins[s->making_count] = s->values.len_bytes;
    s->making[s->making_count++].name = name;
    size_t begin = s->values.len_bytes;
    printable_put(&s->values, value);
    buf_put_u8(&s->values, 0);
    if (s->values.bad)
        return;
    s->values.len_bytes = begin + cut_length((const char *)s->values.data + begin);
    buf_put_u8(&s->values, 0);
}

static bool is_making(const struct series *s, const char *name)
{
    for (uint32_t i = 0; i < s->making_count; i++) {
        if (!strcmp(s->making[i].name, name))
            return true;
    }
    return false;
}

static struct error *put_service(struct series *s)
{
    struct label_rule fallback;
    struct error *err = label_rule_parse(fallback_rule, true, &fallback);

    if (!err)
        add_label(s, SERVICE_NAME, apply(s, &fallback, &s->value) ? buf_cstr(&s->value) : "unknown");
    label_rule_deinit(&fallback);
    return err;
}

/* Makes the labels of what is known. `service`: the service's name; NULL: by its rule. */
static struct error *make_labels(struct series *s, const char *type, const char *service)
{
    s->making_count = 0;
    buf_clear(&s->values);
    add_label(s, PROFILE_NAME_LABEL, type);
    if (service)
        add_label(s, SERVICE_NAME, service);
    for (size_t i = 0; i < s->rules.count; i++) {
        if (!is_making(s, s->rules.data[i].name) && apply(s, &s->rules.data[i], &s->value))
            add_label(s, s->rules.data[i].name, buf_cstr(&s->value));
    }
    if (!is_making(s, SERVICE_NAME))
        TRY(put_service(s));
    for (size_t kind = 0; kind < LABEL_MAP_KINDS; kind++) {
        for (uint32_t e = s->of_map[kind]; e != LABEL_MAP_END; e = label_map_entry(s->map, e)->next) {
            const struct label_map_entry *entry = label_map_entry(s->map, e);
            if (!find_rule(s, entry->name) && !is_making(s, entry->name))
                add_label(s, entry->name, entry->value);
        }
    }
    return s->values.bad || s->value.bad ? error_no_memory() : NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct profile_label *)a)->name, ((const struct profile_label *)b)->name);
}

/* Sorts what was made, and writes it as one key: names and values, each with a NUL. */
static struct error *sort_labels(struct series *s)
{
    for (uint32_t i = 0; i < s->making_count; i++)
        s->making[i].value = (const char *)s->values.data + s->begins[i];
    qsort(s->making, s->making_count, sizeof *s->making, by_name);
    buf_clear(&s->key);
    for (uint32_t i = 0; i < s->making_count; i++) {
        buf_put(&s->key, s->making[i].name, strlen(s->making[i].name) + 1);
        buf_put(&s->key, s->making[i].value, strlen(s->making[i].value) + 1);
    }
    return s->key.bad ? error_no_memory() : NULL;
}

/* The number of the labels that were made. */
static struct error *keep_labels(struct series *s, uint32_t *out)
{
    bool added;

    TRY(sort_labels(s));
    *out = intern_id(&s->keys, s->key.data, (uint32_t)s->key.len_bytes, &added);
    if (*out == INTERN_NONE || !limits_work(s->limits, MAKE_WORK + s->key.len_bytes))
        return error_no_memory();
    if (!added)
        return NULL;
    const char *at = (const char *)intern_get(&s->keys, *out)->data;
    struct profile_label *labels = arena_calloc(&s->arena, s->making_count, sizeof *labels);
    if (!labels || !VEC_EXTEND_COUNTED(s->limits, &s->all, (size_t)*out + 1))
        return error_no_memory();
    s->all.data[*out] = (struct labels){labels, s->making_count};
    for (uint32_t i = 0; i < s->making_count; i++) {
        labels[i].name = at;
        labels[i].value = at += strlen(at) + 1;
        at += strlen(at) + 1;
    }
    return NULL;
}

/* Names the profiles of the next event: after it, and where one before is spelled alike, with a number. */
static bool name_type(struct series *s, const struct emit_event *event)
{
    struct buf word = {0};

    profile_put_name(event, &word);
    size_t len = word.len_bytes < PROFILE_LABEL_VALUE_MAX - 16 ? word.len_bytes : PROFILE_LABEL_VALUE_MAX - 16;
    bool room = true, taken = true;
    word.len_bytes = len;
    for (uint32_t n = 2; room && taken && !word.bad; n++) {
        buf_put_u8(&word, 0); /* the labels' texts end so */
        taken = !word.bad && (intern_find(&s->types, word.data, (uint32_t)word.len_bytes) != INTERN_NONE ||
                              !strcmp((const char *)word.data, PROFILE_LOST_NAME));
        if (!taken)
            break;
        room = limits_work(s->limits, 1 + word.len_bytes);
        word.len_bytes = len;
        buf_printf(&word, "_%u", n);
    }
    room = room && !word.bad && intern_id(&s->types, word.data, (uint32_t)word.len_bytes, NULL) != INTERN_NONE;
    buf_deinit(&word);
    return room;
}

static struct error *make_series(struct series *s, const struct emit_model *m, uint32_t event, const char *service, uint32_t *out)
{
    while (s->types.count <= event) {
        if (!name_type(s, &m->events[s->types.count]))
            return error_no_memory();
    }
    TRY(make_labels(s, (const char *)intern_get(&s->types, event)->data, service));
    return keep_labels(s, out);
}

/* ---- samples ---- */

/* Are the labels made of what the sample has now? If not, notes that. */
static bool is_made_of(struct made *made, const struct emit_model *m, const struct emit_sample *sample)
{
    const struct emit_thread *t = &m->threads[sample->thread];
    const struct emit_process *p = &m->processes[t->process];

    if (made->comm == p->comm && made->program == p->name && made->cgroup == p->cgroup && made->container == p->container &&
        made->thread == t->name && made->python_version == p->python_version && made->capture == sample->capture)
        return true;
    *made = (struct made){p->comm, p->name, p->cgroup, p->container, t->name, p->python_version, sample->capture, SERIES_NONE, SERIES_NONE};
    return false;
}

/* The series of the sample's thread and event. */
static struct error *find_made(struct series *s, const struct emit_model *m, const struct emit_sample *sample, struct made **out)
{
    uint64_t key = (uint64_t)sample->thread << 32 | sample->event, *index = map_get(&s->made_of, key);

    if (!index) {
        size_t count = s->made.count;
        if (!VEC_EXTEND_COUNTED(s->limits, &s->made, count + 1) || !map_set(&s->made_of, key, count))
            return error_no_memory();
        index = map_get(&s->made_of, key);
    }
    struct made *made = &s->made.data[*index];
    *out = made;
    if (is_made_of(made, m, sample) && made->own != SERIES_NONE)
        return NULL;
    /* Names may change with every sample. */
    if (!set_facts(s, m, sample) || !limits_work(s->limits, strlen(m->processes[m->threads[sample->thread].process].cgroup)))
        return error_no_memory();
    return make_series(s, m, sample->event, NULL, &made->own);
}

/* The window, or a new one in place of the oldest. */
static struct series_window *window_of(struct series *s, uint64_t begin_ns)
{
    struct series_window *oldest = s->windows;

    for (uint32_t i = 0; i < s->window_count; i++) {
        if (s->windows[i].begin_ns == begin_ns)
            return &s->windows[i];
        if (s->windows[i].begin_ns < oldest->begin_ns)
            oldest = &s->windows[i];
    }
    if (s->window_count < SERIES_WINDOWS_MAX)
        oldest = &s->windows[s->window_count++];
    map_clear(&oldest->members);
    oldest->begin_ns = begin_ns;
    oldest->count = 0;
    return oldest;
}

/* Whether profiles of the series are made in the window. */
static struct error *admit(struct series *s, uint64_t window_begin_ns, uint32_t series, bool *out)
{
    struct series_window *w = window_of(s, window_begin_ns);
    const uint64_t *known = map_get(&w->members, series);

    *out = known ? *known : w->count < s->max_series;
    if (known)
        return NULL;
    w->count += *out;
    s->folded += !*out;
    return map_set(&w->members, series, *out) ? NULL : error_no_memory();
}

struct error *series_find(struct series *s, const struct emit_model *model, const struct emit_sample *sample,
                          uint64_t window_begin_ns, uint32_t *out)
{
    struct made *made = NULL;
    bool admitted;

    TRY(find_made(s, model, sample, &made));
    TRY(admit(s, window_begin_ns, made->own, &admitted));
    if (!admitted && made->other == SERIES_NONE) {
        clear_facts(s);
        put_fact(&s->facts[FIELD_EVENT], model->events[sample->event].name);
        if (!set_host(s, model, sample->capture))
            return error_no_memory();
        TRY(make_series(s, model, sample->event, "other", &made->other));
    }
    *out = admitted ? made->own : made->other;
    return NULL;
}

struct error *series_of_losses(struct series *s, const struct emit_model *model, uint32_t capture, uint32_t *out)
{
    clear_facts(s);
    if (!set_host(s, model, capture))
        return error_no_memory();
    TRY(make_labels(s, PROFILE_LOST_NAME, "pycap"));
    return keep_labels(s, out);
}

const struct profile_label *series_labels(const struct series *s, uint32_t number, uint32_t *count)
{
    *count = s->all.data[number].count;
    return s->all.data[number].data;
}

uint64_t series_folded_count(const struct series *s)
{
    return s->folded;
}
