/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A perf.data file, for `perf report`, `perf script`, `perf annotate`, `perf diff` and what else reads one.
 *
 * Samples are written as they come: their call chains are addresses (addresses.h) in binaries, in the kernel, and in a
 * small ELF file that has a symbol for each Python function and an address for each line (code_image.h). That file and the
 * kernel's symbols are written beside the output, in the layout of perf's build-id cache (name_files.h), and the header
 * (header.h), when the last sample is there.
 *
 *  - A sample's period is its value: CPU time of clocks, counts of what is counted. So the readers' sums are right
 *    whatever the rate was, and however often it changed.
 *  - perf reads the innermost 127 frames of a stack, or what --max-stack says.
 *  - A record's length has 16 bits: of a stack of more than 8,000 frames the outermost are left out, and a mark says so.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/base/printable.h"
#include "formats/base/shell_word.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"
#include "formats/emit/perf_data/addresses.h"
#include "formats/emit/perf_data/code_images.h"
#include "formats/emit/perf_data/header.h"
#include "formats/emit/perf_data/kernel_names.h"
#include "formats/emit/perf_data/name_files.h"
#include "formats/emit/perf_data/records.h"
#include "formats/emit/perf_data/tasks.h"
#include "formats/emit/perf_data/timeline.h"

enum {
    ROUND_SAMPLES = 1000, /* readers hold two rounds in memory */
    MOST_ENTRIES = 2,     /* in a chain for one frame: a mark and an address */
    SHOWN_FRAMES = 127,   /* that perf reads: kernel.perf_event_max_stack, unless somebody changed it */
};

struct perf_data {
    const struct emit_model *model;
    struct emit_options options;
    FILE *out;
    struct code_images *images;
    struct kernel_names *kernel;
    struct records records;
    struct addresses addresses;
    struct tasks tasks;
    struct timeline timeline;
    VEC(uint64_t) chain; /* of the sample */
    uint64_t side;       /* the last RECORDS_IN_… mark in it */
    uint32_t depth;      /* frames in it */
    uint64_t round_samples; /* since the last round */
    uint32_t cpu_max, deepest;
    struct buf remark;
};

static struct error *start(struct perf_data *p)
{
    const struct record_stamp stamp = {.pid = UINT32_MAX, .time_ns = 1, .id = header_event_id(0)};

    TRY(code_images_create(p->model, &p->options, &p->images));
    TRY(kernel_names_create(p->model, p->options.limits, &p->kernel));
    p->records.out = p->out;
    addresses_init(&p->addresses, p->model, p->options.limits, p->images, p->kernel);
    tasks_init(&p->tasks, p->model, p->options.limits, &p->records, &p->addresses, p->options.files);
    TRY(header_reserve(p->out));
    return records_kernel(&p->records, &stamp, KERNEL_NAMES_START, KERNEL_NAMES_END, KERNEL_NAMES_PATH);
}

static struct error *perf_data_begin(const struct emit_model *model, const struct emit_options *options, FILE *out,
                                     void **state)
{
    struct perf_data *p = calloc(1, sizeof *p);

    if (!p)
        return error_no_memory();
    *p = (struct perf_data){.model = model, .options = *options, .out = out};
    *state = p;
    return start(p);
}

/* ---- samples ---- */

/* Appends an address to the chain, and writes the mapping that it lies in. */
static struct error *put_address(struct perf_data *p, uint32_t process, const struct record_stamp *stamp,
                                 const struct address *address)
{
    uint64_t side = address->kind == ADDRESS_KERNEL ? RECORDS_IN_KERNEL : RECORDS_IN_USER;

    if (address->kind == ADDRESS_NONE)
        return NULL;
    if ((!p->chain.count || p->side != side) && !VEC_PUSH(&p->chain, side))
        return error_no_memory();
    p->side = side;
    p->depth++;
    TRY(tasks_map(&p->tasks, process, stamp, address));
    return VEC_PUSH(&p->chain, address->ip) ? NULL : error_no_memory();
}

/* Fills the chain with the addresses of a stack, innermost first. */
static struct error *list_chain(struct perf_data *p, uint32_t stack, uint32_t process, const struct record_stamp *stamp)
{
    struct address address;

    p->chain.count = p->depth = 0;
    do {
        TRY(addresses_find(&p->addresses, stack, &address));
        TRY(put_address(p, process, stamp, &address));
        if (stack != EMIT_NO_STACK)
            stack = p->model->stacks[stack].parent;
    } while (stack != EMIT_NO_STACK && p->chain.count + MOST_ENTRIES <= RECORDS_CHAIN_MAX - MOST_ENTRIES);
    if (stack != EMIT_NO_STACK) {
        TRY(addresses_truncated(&p->addresses, &address));
        TRY(put_address(p, process, stamp, &address));
    }
    if (p->depth > p->deepest)
        p->deepest = p->depth;
    return NULL;
}

static struct error *perf_data_sample(void *state, const struct emit_sample *s)
{
    struct perf_data *p = state;
    struct record_sample record = {
        .stamp = {.time_ns = timeline_place(&p->timeline, p->model, s), .cpu = s->cpu, .id = header_event_id(s->event)},
        .period = s->faults ? s->faults : s->value};

    if (s->cpu > p->cpu_max)
        p->cpu_max = s->cpu;
    TRY(tasks_name(&p->tasks, s->thread, &record.stamp, &record.cgroup));
    TRY(list_chain(p, s->stack, p->model->threads[s->thread].process, &record.stamp));
    record.in_kernel = p->chain.data[0] == RECORDS_IN_KERNEL;
    record.chain = p->chain.data;
    record.chain_len = (uint32_t)p->chain.count;
    TRY(records_sample(&p->records, &record));
    if (++p->round_samples < ROUND_SAMPLES)
        return NULL;
    p->round_samples = 0;
    return records_end_round(&p->records);
}

/* ---- the end ---- */

/* The event of that name; of losses of no event in particular, or of one without samples, the first. */
static uint32_t event_of(const struct emit_model *m, const char *name)
{
    for (uint32_t i = 0; i < m->event_count; i++) {
        if (!strcmp(m->events[i].name, name))
            return i;
    }
    return 0;
}

static struct error *write_losses(struct perf_data *p)
{
    const struct emit_model *m = p->model;
    uint64_t *counts = calloc(m->event_count + 1, sizeof *counts);
    struct record_stamp stamp = {.time_ns = p->timeline.last_ns ? p->timeline.last_ns : 1};
    struct error *err = counts ? NULL : error_no_memory();

    for (uint32_t c = 0; c < m->capture_count && !err; c++) {
        for (uint32_t i = 0; i < m->captures[c].loss_count; i++) {
            const struct emit_loss *loss = &m->captures[c].losses[i];
            if (loss->is_sample)
                counts[event_of(m, loss->event)] += loss->count;
        }
    }
    for (uint32_t i = 0; i <= m->event_count && !err; i++) {
        stamp.id = header_event_id(i);
        if (counts[i])
            err = records_lost(&p->records, &stamp, counts[i]);
    }
    free(counts);
    return err;
}

/* Appends a file name, made safe to print, as a word of a shell's command. */
static void put_word(struct buf *out, const char *text)
{
    struct buf safe = {0};

    printable_put(&safe, text);
    shell_word_put(buf_cstr(&safe), out);
    out->bad |= safe.bad;
    buf_deinit(&safe);
}

/* Appends the folder of the output as seen from the current one; nothing if that is the same. */
static void put_folder(const struct emit_files *files, struct buf *out)
{
    char *here = getcwd(NULL, 0);
    size_t len = here ? strlen(here) : 0;

    if (len && !strncmp(files->folder, here, len) && files->folder[len] == '/')
        buf_put_str(out, files->folder + len + 1);
    else
        buf_put_str(out, files->folder);
    free(here);
}

/* What to type to see the profile. */
static void make_remark(struct perf_data *p)
{
    const struct emit_files *files = p->options.files;
    struct buf path = {0};

    buf_put_str(&p->remark, "to read it: perf ");
    if (code_images_are_used(p->images) || kernel_names_are_used(p->kernel)) {
        put_folder(files, &path);
        name_files_cache(files, &path);
        buf_put_str(&p->remark, "--buildid-dir ");
        put_word(&p->remark, buf_cstr(&path));
        buf_put_u8(&p->remark, ' ');
    }
    buf_clear(&path);
    put_folder(files, &path);
    buf_put_str(&path, files->name);
    buf_put_str(&p->remark, "report -i ");
    put_word(&p->remark, buf_cstr(&path));
    if (p->deepest > SHOWN_FRAMES)
        buf_printf(&p->remark, "\npysym: stacks have up to %u frames, of which perf reads %d: add --max-stack %u", p->deepest,
                   SHOWN_FRAMES, p->deepest);
    if (!p->deepest)
        buf_put_str(&p->remark, "\npysym: no samples were recorded: perf report will end with an error");
    if (p->timeline.moved)
        buf_put_str(&p->remark, "\npysym: inputs overlap in time: samples of each are moved behind those of the one before");
    buf_put_u8(&p->remark, 0);
    p->remark.bad |= path.bad;
    buf_deinit(&path);
}

static struct error *perf_data_end(void *state)
{
    struct perf_data *p = state;

    TRY(write_losses(p));
    TRY(records_end_round(&p->records));
    TRY(name_files_write(p->options.files, p->images, p->kernel));
    const struct header_facts facts = {.model = p->model,
                                       .addresses = &p->addresses,
                                       .kernel = p->kernel,
                                       .files = p->options.files,
                                       .records_len_bytes = p->records.len_bytes,
                                       .first_ns = p->timeline.first_ns,
                                       .last_ns = p->timeline.last_ns,
                                       .cpu_max = p->cpu_max};
    TRY(header_write(p->out, &facts));
    make_remark(p);
    return p->remark.bad ? error_no_memory() : NULL;
}

static const char *perf_data_remark(const void *state)
{
    const struct perf_data *p = state;

    return (const char *)p->remark.data;
}

static void perf_data_destroy(void *state)
{
    struct perf_data *p = state;

    if (!p)
        return;
    tasks_deinit(&p->tasks);
    addresses_deinit(&p->addresses);
    code_images_destroy(p->images);
    kernel_names_destroy(p->kernel);
    buf_deinit(&p->records.record);
    buf_deinit(&p->remark);
    VEC_DEINIT(&p->chain);
    free(p);
}

const struct emitter emitter_perf_data = {
    .name = "perf-data",
    .description = "perf.data, for perf report, perf script, perf annotate and perf diff, hotspot and samply",
    .extension = ".perf.data",
    .time_order = true,
    .writes_each_sample = true,
    .needs_files = true,
    .seeks = true,
    .takes_native_names = true,
    .binary = true,
    .begin = perf_data_begin,
    .sample = perf_data_sample,
    .end = perf_data_end,
    .remark = perf_data_remark,
    .destroy = perf_data_destroy,
};
