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

struct wanted_place {
    const char *path;
    uint64_t file_size;         /* bytes; 0: not known */
    uint32_t tgid;              /* 0: this host, for those of processes that have ended */
    uint64_t start_boottime_ns;
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
    VEC(struct wanted_place) places;
    uint32_t order;
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
    struct intern keys;      /* kind, id; or kind, path */
    struct intern places;    /* struct place_key, path */
    struct intern asked;     /* struct process_key: of processes, whether they live */
    VEC(bool) lives;         /* the answers */
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
    for (size_t i = 0; i < s->wanted.count; i++)
        VEC_DEINIT(&s->wanted.data[i].places);
    VEC_DEINIT(&s->wanted);
    VEC_DEINIT(&s->lives);
    VEC_DEINIT(&s->strings);
    VEC_DEINIT(&s->modules);
    VEC_DEINIT(&s->processes);
    VEC_DEINIT(&s->mappings);
    intern_deinit(&s->keys);
    intern_deinit(&s->places);
    intern_deinit(&s->asked);
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

/*
 * Adds a place that was not known. All are kept: were there a limit, a process could fill it with files of its own that
 * claim a build ID, and nobody would see that another file has it.
 */
static bool add_place(struct survey *s, uint32_t wanted, const struct wanted_place *p)
{
    const struct place_key {
        uint64_t file_size, start, wanted, tgid;
    } fixed = {p->file_size, p->start, wanted, p->tgid};
    size_t len = strlen(p->path);
    uint8_t *key = malloc(sizeof fixed + len);
    bool added;

    if (!key)
        return false;
    memcpy(key, &fixed, sizeof fixed);
    memcpy(key + sizeof fixed, p->path, len);
    uint32_t id = intern_id(&s->places, key, (uint32_t)(sizeof fixed + len), &added);
    free(key);
    return id != INTERN_NONE && (!added || VEC_PUSH(&s->wanted.data[wanted].places, *p));
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
    return add_place(s, index, &(struct wanted_place){.path = path, .file_size = m->file_size}) &&
           VEC_PUSH(&s->modules, index + 1);
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
    if (*place.path && !add_place(s, index, &(struct wanted_place){.path = place.path}))
        return false;
    if (*place.path && place.tgid && place.start_boottime_ns && !add_place(s, index, &place))
        return false;
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
static bool is_running(const struct wanted_place *p)
{
    struct procfs_status status;
    uint64_t ticks_per_s = (uint64_t)sysconf(_SC_CLK_TCK);
    struct error *err = procfs_status((pid_t)p->tgid, &status);

    if (err) {
        error_destroy(err);
        return false;
    }
    uint64_t ticks = p->start_boottime_ns / (NS_PER_S / ticks_per_s);
    return status.start_ticks >= ticks - (ticks > 0) && status.start_ticks <= ticks + 1;
}

/* Asks once for each process, since one has many places. False, too, when there is no memory to remember the answer. */
static bool still_lives(struct survey *s, const struct wanted_place *p)
{
    const struct process_key {
        uint64_t tgid, start_boottime_ns;
    } key = {p->tgid, p->start_boottime_ns};
    bool added;
    uint32_t id = intern_id(&s->asked, &key, sizeof key, &added);

    if (id == INTERN_NONE || (added && !VEC_PUSH(&s->lives, is_running(p))))
        return false;
    return s->lives.data[id];
}

static int by_need(const void *a, const void *b)
{
    const struct wanted *x = a, *y = b;

    if (x->frame_count != y->frame_count)
        return x->frame_count > y->frame_count ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static struct error *gather_module(struct survey *s, struct bundle *b, const struct wanted *w)
{
    const struct bundle_key key = {w->id_kind, w->id, w->id_len, w->file_size};
    VEC(struct bundle_place) places = {0};
    bool ok = true;

    if (w->kind == TRACE_MODULE_VDSO)
        return w->image_len ? bundle_add_vdso(b, &key, w->image, w->image_len) : NULL;
    if (w->kind != TRACE_MODULE_ELF)
        return NULL; /* no binary */
    /* Of a process that has ended, only the path is of use, which is also there alone. */
    for (size_t i = 0; ok && i < w->places.count; i++) {
        const struct wanted_place *p = &w->places.data[i];
        if (p->tgid && !still_lives(s, p))
            continue;
        ok = VEC_PUSH(&places, ((struct bundle_place){.path = p->path, .pid = (pid_t)p->tgid, .start = p->start,
                                                      .end = p->end, .fd = -1, .file_size = p->file_size}));
    }
    struct error *err = !ok ? error_no_memory() : places.count ? bundle_add(b, &key, places.data, (uint32_t)places.count) : NULL;
    VEC_DEINIT(&places);
    return err;
}

static struct error *gather(struct survey *s, struct bundle *b)
{
    if (s->wanted.count)
        qsort(s->wanted.data, s->wanted.count, sizeof *s->wanted.data, by_need);
    for (size_t i = 0; i < s->wanted.count; i++) {
        const struct wanted *w = &s->wanted.data[i];
        if (w->frame_count || w->mapped)
            TRY(gather_module(s, b, w));
    }
    return NULL;
}

/* The temporary file, for the handler of signals, which has no other way to know it. Empty: there is none. */
static char unfinished[NAME_MAX + 1];
static int unfinished_folder;

static void remove_unfinished(int number)
{
    unlinkat(unfinished_folder, unfinished, 0);
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
    unfinished_folder = file->output.folder;
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
    TRY(archive_file_open(o->output, NULL, file));
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

/* The modules of a recording that have one identity: each may be another file. */
struct held_group {
    uint32_t first, last; /* in `order` */
};
struct held {
    VEC(const struct module *) order; /* those that frames are in come first */
    VEC(uint32_t) next;               /* the following one with this identity; HELD_NONE: there is none */
    VEC(struct held_group) groups;
    struct intern identities;         /* kind and id; numbers of groups */
};
#define HELD_NONE UINT32_MAX

static void held_deinit(struct held *h)
{
    VEC_DEINIT(&h->order);
    VEC_DEINIT(&h->next);
    VEC_DEINIT(&h->groups);
    intern_deinit(&h->identities);
}

/* A module without identity is alone. */
static bool held_add(struct held *h, const struct module *m)
{
    uint32_t index = (uint32_t)h->order.count, len = m->identity.build_id_len;
    uint8_t key[8 + ELF_BUILD_ID_MAX];
    bool added;

    len = len < ELF_BUILD_ID_MAX ? len : ELF_BUILD_ID_MAX;
    memcpy(key, (uint32_t[]){m->identity.id_kind, len ? 0 : index}, 8);
    memcpy(key + 8, m->identity.build_id, len);
    uint32_t group = intern_id(&h->identities, key, 8 + len, &added);
    if (group == INTERN_NONE || !VEC_PUSH(&h->order, m) || !VEC_PUSH(&h->next, HELD_NONE))
        return false;
    if (added)
        return VEC_PUSH(&h->groups, ((struct held_group){index, index}));
    h->next.data[h->groups.data[group].last] = index;
    h->groups.data[group].last = index;
    return true;
}

static struct error *add_held(struct bundle *b, const struct held *h, const struct held_group *group)
{
    const struct module *m = h->order.data[group->first];
    const struct elf_identity *id = &m->identity;
    const struct bundle_key key = {id->id_kind, id->build_id, id->build_id_len, id->file_size};
    VEC(struct bundle_place) places = {0};
    bool ok = true;

    if (m->kind == TRACE_MODULE_VDSO && m->image)
        return bundle_add_vdso(b, &key, m->image, m->image_len_bytes);
    for (uint32_t i = group->first; ok && i != HELD_NONE; i = h->next.data[i]) {
        const struct module *x = h->order.data[i];
        /* The build ID of a file that could not be opened is what the process wrote into its memory. */
        if (x->kind == TRACE_MODULE_ELF)
            ok = VEC_PUSH(&places, ((struct bundle_place){.path = x->path, .pid = x->pid, .fd = x->held_fd,
                                                          .file_size = x->identity.file_size,
                                                          .public_only = x->unreadable && procfs_reads_everything()}));
    }
    struct error *err = !ok ? error_no_memory() : places.count ? bundle_add(b, &key, places.data, (uint32_t)places.count) : NULL;
    VEC_DEINIT(&places);
    return err;
}

struct error *archive_modules(struct bundle *b, const struct modules *modules, bool snapshots, module_use_fn use, void *ctx)
{
    struct error *err = NULL;
    struct held h = {0};
    uint32_t missing;
    bool ok = true;

    for (enum module_use wanted = MODULE_FRAMED; wanted >= (snapshots ? MODULE_NAMED : MODULE_FRAMED); wanted--) {
        for (uint32_t i = 0; ok && i < modules_count(modules); i++) {
            const struct module *m = modules_get(modules, i);
            ok = use(ctx, m) != wanted || held_add(&h, m);
        }
    }
    for (size_t i = 0; ok && !err && i < h.groups.count; i++)
        err = add_held(b, &h, &h.groups.data[i]);
    held_deinit(&h);
    if (!ok)
        return error_no_memory();
    return err ? err : bundle_finish(b, &missing);
}
