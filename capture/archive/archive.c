/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which modules a trace needs: those with native frames, and where stacks were copied
 * rather than unwound, all that were mapped executable by the processes concerned, for
 * nobody knows yet which of them the stacks lead through.
 */
#include "capture/archive/archive.h"

#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/archive/bundle.h"
#include "capture/host/host.h"
#include "capture/binary/modules.h"
#include "capture/host/messages.h"
#include "capture/host/procfs.h"
#include "formats/base/arena.h"
#include "formats/base/clock.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "formats/trace/trace.h"

enum { PLACES_MAX = 8 };

struct wanted_place {
    const char *path;
    uint32_t tgid;              /* 0: none known */
    uint64_t start_boottime_ns; /* 0: not known */
    uint64_t start, end;
};

/* A module, over all epochs and traces. */
struct wanted {
    uint32_t kind, id_kind, id_len;
    const uint8_t *id;
    const uint8_t *image; /* the vdso's */
    uint64_t image_len;
    uint64_t file_size;   /* bytes; 0: not known */
    uint64_t frame_count;
    bool mapped; /* by a process whose stacks were copied */
    struct wanted_place places[PLACES_MAX];
    uint32_t place_count, order;
};

/* Of an epoch, by its ids; index 0 is none. */
struct seen_process {
    uint32_t tgid;
    uint64_t start_boottime_ns;
    bool snapshots;
};
struct seen_mapping {
    uint32_t process, wanted;
};

struct survey {
    struct arena arena;
    struct intern keys; /* kind, id; or kind, path */
    VEC(struct wanted) wanted;
    bool same_boot; /* of the file at hand: its process ids still mean something */
    uint8_t boot_id[16];
    bool has_boot_id, damaged;
    /* Of the epoch. */
    VEC(const char *) strings;
    VEC(uint32_t) modules; /* index in `wanted` + 1 */
    VEC(struct seen_process) processes;
    VEC(struct seen_mapping) mappings;
};

static void survey_deinit(struct survey *s)
{
    VEC_DEINIT(&s->wanted);
    VEC_DEINIT(&s->strings);
    VEC_DEINIT(&s->modules);
    VEC_DEINIT(&s->processes);
    VEC_DEINIT(&s->mappings);
    intern_deinit(&s->keys);
    arena_deinit(&s->arena);
}

static bool begin_epoch(struct survey *s)
{
    for (size_t i = 0; i < s->mappings.count; i++) {
        const struct seen_mapping *m = &s->mappings.data[i];
        s->wanted.data[m->wanted].mapped |= s->processes.data[m->process].snapshots;
    }
    s->strings.count = s->modules.count = s->processes.count = s->mappings.count = 0;
    return VEC_PUSH(&s->strings, "") && VEC_PUSH(&s->modules, 0) && VEC_PUSH(&s->processes, (struct seen_process){0});
}

/* A place that was not known; of those without a process one is enough for each path. */
static void add_place(struct wanted *w, const struct wanted_place *p)
{
    for (uint32_t i = 0; i < w->place_count; i++) {
        const struct wanted_place *known = &w->places[i];
        if (!strcmp(known->path, p->path) && (!p->tgid || (known->tgid == p->tgid && known->start == p->start)))
            return;
    }
    if (w->place_count < PLACES_MAX)
        w->places[w->place_count++] = *p;
}

static bool load_module(struct survey *s, const struct trace_module *m)
{
    const char *path = s->strings.data[m->path];
    bool has_id = m->id_kind && m->build_id.len_bytes && m->build_id.len_bytes <= ELF_BUILD_ID_MAX;
    const void *name = has_id ? (const void *)m->build_id.data : path;
    uint32_t name_len = (uint32_t)(has_id ? m->build_id.len_bytes : strlen(path));
    uint8_t *key = arena_alloc(&s->arena, 8 + name_len);
    bool added;

    if (!key)
        return false;
    memcpy(key, (uint32_t[]){m->kind, has_id ? m->id_kind : 0}, 8);
    memcpy(key + 8, name, name_len);
    uint32_t index = intern_id(&s->keys, key, 8 + name_len, &added);
    if (index == INTERN_NONE)
        return false;
    if (added) {
        struct wanted w = {
            .kind = m->kind, .id_kind = has_id ? m->id_kind : 0, .file_size = m->file_size, .order = index};
        if (has_id) {
            w.id = key + 8;
            w.id_len = name_len;
        }
        if (!VEC_PUSH(&s->wanted, w))
            return false;
    }
    add_place(&s->wanted.data[index], &(struct wanted_place){.path = path});
    return VEC_PUSH(&s->modules, index + 1);
}

static bool load_image(struct survey *s, const struct trace_image *image)
{
    struct wanted *w = &s->wanted.data[s->modules.data[image->module] - 1];

    if (w->image_len || !image->data.len_bytes)
        return true;
    w->image = arena_dup(&s->arena, image->data.data, image->data.len_bytes);
    w->image_len = image->data.len_bytes;
    return w->image != NULL;
}

static bool load_mapping(struct survey *s, const struct trace_mapping *m)
{
    if (!m->module || m->change != TRACE_MAPPING_MAPPED || (m->protection && !(m->protection & TRACE_PROTECTION_EXECUTE)))
        return true;
    uint32_t index = s->modules.data[m->module] - 1;
    const struct seen_process *p = &s->processes.data[m->process];
    struct seen_mapping seen = {m->process, index};
    struct wanted_place place = {.path = s->strings.data[m->path],
                          .tgid = s->same_boot ? p->tgid : 0,
                          .start_boottime_ns = p->start_boottime_ns,
                          .start = m->address,
                          .end = m->address + m->length};
    if (*place.path && place.tgid && place.start_boottime_ns)
        add_place(&s->wanted.data[index], &place);
    return VEC_PUSH(&s->mappings, seen);
}

static bool load(struct survey *s, const struct trace_record *rec)
{
    switch (rec->type) {
    case TRACE_epoch:
        return begin_epoch(s);
    case TRACE_host:
        s->same_boot = s->has_boot_id && rec->host.boot_id.len_bytes == sizeof s->boot_id &&
                       !memcmp(rec->host.boot_id.data, s->boot_id, sizeof s->boot_id);
        return true;
    case TRACE_string: {
        const char *text = arena_strndup(&s->arena, (const char *)rec->string.data.data, rec->string.data.len_bytes);
        return text && VEC_PUSH(&s->strings, text);
    }
    case TRACE_process: {
        struct seen_process p = {rec->process.tgid, rec->process.start_boottime_ns, false};
        return VEC_PUSH(&s->processes, p);
    }
    case TRACE_module:
        return load_module(s, &rec->module);
    case TRACE_image:
        return load_image(s, &rec->image);
    case TRACE_mapping:
        return load_mapping(s, &rec->mapping);
    case TRACE_native_frame:
        if (rec->native_frame.module)
            s->wanted.data[s->modules.data[rec->native_frame.module] - 1].frame_count++;
        return true;
    case TRACE_snapshot:
        s->processes.data[rec->snapshot.process].snapshots = true;
        return true;
    default:
        return true;
    }
}

static struct error *survey_trace(struct survey *s, const char *path, FILE *messages)
{
    struct trace_reader *reader;
    struct trace_record rec;
    bool more = true, ok = begin_epoch(s);

    s->same_boot = false;
    TRY(trace_reader_open(path, &reader));
    struct error *err = NULL;
    while (ok && !err) {
        err = trace_reader_next(reader, &rec, &more);
        if (err || !more)
            break;
        ok = load(s, &rec);
    }
    const struct trace_reader_stats *stats = trace_reader_stats(reader);
    if (!err && stats->damage_count)
        messages_line(messages, "%s: %" PRIu64 " bytes damaged and skipped; modules named there only are not archived",
                path, stats->damaged_bytes);
    s->damaged |= stats->damage_count != 0;
    trace_reader_close(reader);
    ok = ok && begin_epoch(s);
    return err ? err : ok ? NULL : error_no_memory();
}

/* Whether the process is the one of the trace, and not a later one with its number. */
static bool still_lives(const struct wanted_place *p)
{
    struct procfs_status status;
    uint64_t ticks_per_s = (uint64_t)sysconf(_SC_CLK_TCK);

    if (!p->tgid)
        return false;
    struct error *err = procfs_status((pid_t)p->tgid, &status);
    if (err) {
        error_destroy(err);
        return false;
    }
    uint64_t ticks = p->start_boottime_ns / (NS_PER_S / ticks_per_s);
    return status.start_ticks >= ticks - (ticks > 0) && status.start_ticks <= ticks + 1;
}

static int by_need(const void *a, const void *b)
{
    const struct wanted *x = a, *y = b;

    if (x->frame_count != y->frame_count)
        return x->frame_count > y->frame_count ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static struct error *gather(struct survey *s, struct bundle *b)
{
    if (s->wanted.count)
        qsort(s->wanted.data, s->wanted.count, sizeof *s->wanted.data, by_need);
    for (size_t i = 0; i < s->wanted.count; i++) {
        const struct wanted *w = &s->wanted.data[i];
        const struct bundle_key key = {w->id_kind, w->id, w->id_len, w->file_size};
        struct bundle_place places[PLACES_MAX];
        if (!w->frame_count && !w->mapped)
            continue;
        if (w->kind == TRACE_MODULE_VDSO) {
            if (w->image_len)
                TRY(bundle_add_vdso(b, &key, w->image, w->image_len));
            continue;
        }
        if (w->kind != TRACE_MODULE_ELF || !w->place_count)
            continue; /* no binary */
        for (uint32_t k = 0; k < w->place_count; k++) {
            const struct wanted_place *p = &w->places[k];
            bool lives = still_lives(p);
            places[k] = (struct bundle_place){
                .path = p->path, .pid = lives ? (pid_t)p->tgid : 0, .start = p->start, .end = p->end};
        }
        TRY(bundle_add(b, &key, places, w->place_count, -1));
    }
    return NULL;
}

/* The temporary file, for the handler of signals, which has no other way to know it. Empty: there is none. */
static char unfinished[PATH_MAX];

static void remove_unfinished(int number)
{
    unlink(unfinished);
    signal(number, SIG_DFL);
    raise(number);
}

/* A signal that ends pycap leaves no temporary file. */
static void guard(const struct archive_file *file)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    const struct sigaction action = {.sa_handler = remove_unfinished};
    struct sigaction now;

    if (!file->output.temporary || strlen(file->output.temporary) >= sizeof unfinished)
        return;
    strcpy(unfinished, file->output.temporary);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (!sigaction(numbers[i], NULL, &now) && now.sa_handler == SIG_DFL)
            sigaction(numbers[i], &action, NULL);
    }
}

static struct error *run(const struct archive_options *o, struct survey *s, struct archive_file *file, struct bundle **b,
                         bool *complete)
{
    const struct bundle_options options = {
        .output = o->output, .strip_code = o->strip_code, .quiet = o->quiet, .messages = o->messages};
    struct host host;
    uint32_t missing = 0;

    TRY(host_read(&host));
    memcpy(s->boot_id, host.boot_id, sizeof s->boot_id);
    s->has_boot_id = host.has_boot_id;
    host_deinit(&host);
    for (uint32_t i = 0; i < o->input_count; i++)
        TRY(survey_trace(s, o->inputs[i], o->messages));
    TRY(archive_file_open(o->output, file));
    guard(file);
    const struct archive_sink sink = archive_file_sink(file);
    TRY(bundle_create(&options, &sink, b));
    TRY(gather(s, *b));
    TRY(bundle_finish(*b, &missing));
    *complete = !missing && !s->damaged;
    return NULL;
}

struct error *archive_run(const struct archive_options *options, bool *complete)
{
    struct survey s = {0};
    struct archive_file file = {0};
    struct bundle *b = NULL;

    *complete = false;
    struct error *err = run(options, &s, &file, &b, complete);
    bundle_destroy(b);
    archive_file_deinit(&file);
    survey_deinit(&s);
    return err;
}

static struct error *add_held(struct bundle *b, const struct module *m)
{
    const struct elf_identity *id = &m->identity;
    const struct bundle_key key = {id->id_kind, id->build_id, id->build_id_len, id->file_size};
    /* The build ID of a file that could not be opened is what the process wrote into its memory. */
    const struct bundle_place place = {
        .path = m->path, .pid = m->pid, .public_only = m->unreadable && procfs_reads_everything()};

    if (m->kind == TRACE_MODULE_VDSO && m->image)
        return bundle_add_vdso(b, &key, m->image, m->image_len_bytes);
    return m->kind == TRACE_MODULE_ELF ? bundle_add(b, &key, &place, 1, m->held_fd) : NULL;
}

struct error *archive_modules(struct bundle *b, const struct modules *modules, bool snapshots, module_use_fn use, void *ctx)
{
    uint32_t missing;

    /* Those that frames are in come first. */
    for (enum module_use wanted = MODULE_FRAMED; wanted >= (snapshots ? MODULE_NAMED : MODULE_FRAMED); wanted--) {
        for (uint32_t i = 0; i < modules_count(modules); i++) {
            const struct module *m = modules_get(modules, i);
            if (use(ctx, m) == wanted)
                TRY(add_held(b, m));
        }
    }
    return bundle_finish(b, &missing);
}
