/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/perf_data/header.h"

#include <assert.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <time.h>

#include "formats/base/buf.h"
#include "formats/emit/names.h"
#include "formats/emit/perf_data/event_attr.h"
#include "formats/emit/perf_data/records.h"

enum {
    HEADER_BYTES = 104,
    ATTRIBUTE_BYTES = EVENT_ATTR_BYTES + 16, /* and the place of its ids */
    FEATURES = 256,                          /* bits in the header */
    STRING_STEP = 64,                        /* lengths of strings are multiples of this, as perf writes them */
    BUILD_ID_MAX = 20,
    BUILD_ID_HAS_SIZE = 1 << 15,             /* in `misc`: the entry says how long the ID is */
    CPUS_MAX = 4096,                         /* believed of a recording that does not say how many there are */
};

/* Features by number, which is their bit (tools/perf/util/header.h). */
enum {
    FEATURE_BUILD_ID = 2,
    FEATURE_HOSTNAME = 3,
    FEATURE_OSRELEASE = 4,
    FEATURE_VERSION = 5,
    FEATURE_ARCH = 6,
    FEATURE_NRCPUS = 7,
    FEATURE_CPUDESC = 8,
    FEATURE_TOTAL_MEM = 10,
    FEATURE_CMDLINE = 11,
    FEATURE_EVENT_DESC = 12,
    FEATURE_SAMPLE_TIME = 21,
    FEATURE_CLOCKID = 23,
    FEATURE_CLOCK_DATA = 29,
};

static void pad_to(struct buf *out, size_t from, size_t step)
{
    while (!out->bad && (out->len_bytes - from) % step)
        buf_put_u8(out, 0);
}

static void put_string_bytes(struct buf *out, const void *data, size_t len_bytes)
{
    size_t padded = (len_bytes / STRING_STEP + 1) * STRING_STEP; /* with a zero at least */

    buf_put_u32(out, (uint32_t)padded);
    size_t from = out->len_bytes;
    buf_put(out, data, len_bytes);
    buf_put_u8(out, 0);
    pad_to(out, from, STRING_STEP);
}

/* A fact of the trace, made safe to print. */
static void put_string(struct buf *out, const char *text)
{
    struct buf safe = {0};

    name_plain(text, &safe);
    out->bad |= safe.bad;
    put_string_bytes(out, safe.data, safe.len_bytes < RECORDS_NAME_MAX ? safe.len_bytes : RECORDS_NAME_MAX);
    buf_deinit(&safe);
}

/* ---- the features: each function appends the content, and nothing if the fact is unknown ---- */

static const struct emit_capture *first_capture(const struct header_facts *f)
{
    return f->model->capture_count ? &f->model->captures[0] : NULL;
}

static void put_build_id(struct buf *out, uint16_t misc, const uint8_t *id, uint32_t id_len, const char *path, size_t path_len)
{
    size_t from = out->len_bytes;

    buf_put_u32(out, 0);
    buf_put_u16(out, misc | BUILD_ID_HAS_SIZE);
    buf_put_u16(out, 0); /* the entry's length, below */
    buf_put_u32(out, UINT32_MAX);
    for (uint32_t i = 0; i < BUILD_ID_MAX; i++)
        buf_put_u8(out, i < id_len ? id[i] : 0);
    buf_put_u32(out, id_len);
    buf_put(out, path, path_len);
    buf_put_u8(out, 0);
    pad_to(out, from, 8);
    if (out->bad)
        return;
    size_t len_bytes = out->len_bytes - from;
    out->data[from + 6] = (uint8_t)len_bytes;
    out->data[from + 7] = (uint8_t)(len_bytes >> 8);
}

static void put_build_ids(const struct header_facts *f, struct buf *out)
{
    const struct code_images *images = f->addresses->images;
    struct buf path = {0};

    if (kernel_names_are_used(f->kernel))
        put_build_id(out, PERF_RECORD_MISC_KERNEL, kernel_names_build_id(f->kernel), KERNEL_NAMES_ID_BYTES,
                     KERNEL_NAMES_PATH, strlen(KERNEL_NAMES_PATH));
    for (uint32_t i = 0; i < code_images_count(images); i++) {
        const struct code_image *image = code_images_get(images, i);
        buf_clear(&path);
        name_files_image_path(f->files, images, i, &path);
        if (code_image_is_used(image))
            put_build_id(out, PERF_RECORD_MISC_USER, code_image_build_id(image), CODE_IMAGE_ID_BYTES, buf_cstr(&path),
                         path.len_bytes);
    }
    out->bad |= path.bad;
    buf_deinit(&path);
    for (uint32_t i = 0; i < f->addresses->binaries.count; i++) {
        const struct address_binary *binary = addresses_binary(f->addresses, i);
        const struct emit_mapping *m = &f->model->mappings[i];
        if (binary->usable && m->build_id_len && m->build_id_len <= BUILD_ID_MAX)
            put_build_id(out, PERF_RECORD_MISC_USER, m->build_id, m->build_id_len, m->path, binary->path_len);
    }
}

#define PUT_FACT(name)                                                          \
    static void put_##name(const struct header_facts *f, struct buf *out)       \
    {                                                                           \
        const struct emit_capture *c = first_capture(f);                        \
                                                                                \
        if (c && *c->name)                                                      \
            put_string(out, c->name);                                           \
    }
PUT_FACT(hostname)
PUT_FACT(kernel_release)
PUT_FACT(recorder)
PUT_FACT(cpu_model)

/* Readers choose registers and disassemblers by it. */
static void put_machine(const struct header_facts *f, struct buf *out)
{
    const struct emit_capture *c = first_capture(f);

    put_string(out, c && *c->machine ? c->machine : "x86_64");
}

static void put_cpus(const struct header_facts *f, struct buf *out)
{
    const struct emit_capture *c = first_capture(f);
    uint32_t met = f->cpu_max < CPUS_MAX ? f->cpu_max + 1 : CPUS_MAX, count = c && c->cpu_count ? c->cpu_count : met;

    if (count > CPUS_MAX)
        count = CPUS_MAX;
    buf_put_u32(out, count); /* there are */
    buf_put_u32(out, count); /* online */
}

static void put_memory(const struct header_facts *f, struct buf *out)
{
    const struct emit_capture *c = first_capture(f);

    if (c && c->memory_bytes)
        buf_put_u64(out, c->memory_bytes / 1024);
}

/* The recorder's arguments are not in the trace. */
static void put_command(const struct header_facts *f, struct buf *out)
{
    (void)f;
    buf_put_u32(out, 2);
    put_string(out, "pycap");
    put_string(out, "record");
}

static void put_events(const struct header_facts *f, struct buf *out)
{
    struct buf name = {0};

    buf_put_u32(out, event_attr_count(f->model));
    buf_put_u32(out, EVENT_ATTR_BYTES);
    for (uint32_t i = 0; i < event_attr_count(f->model); i++) {
        event_attr_put(f->model, i, out);
        buf_put_u32(out, 1);
        buf_clear(&name);
        event_attr_put_name(f->model, i, &name);
        out->bad |= name.bad;
        put_string_bytes(out, name.data, name.len_bytes);
        buf_put_u64(out, header_event_id(i));
    }
    buf_deinit(&name);
}

static void put_sample_time(const struct header_facts *f, struct buf *out)
{
    if (!f->last_ns)
        return;
    buf_put_u64(out, f->first_ns);
    buf_put_u64(out, f->last_ns);
}

static void put_clock_resolution(const struct header_facts *f, struct buf *out)
{
    (void)f;
    buf_put_u64(out, 1); /* nanosecond */
}

/* The wall clock and the clock of the samples at one moment. */
static void put_clocks(const struct header_facts *f, struct buf *out)
{
    const struct emit_capture *c = first_capture(f);

    if (!c || !c->realtime_ns)
        return;
    buf_put_u32(out, 1); /* version */
    buf_put_u32(out, CLOCK_MONOTONIC);
    buf_put_u64(out, c->realtime_ns);
    buf_put_u64(out, c->monotonic_ns);
}

static const struct feature {
    unsigned number;
    void (*put)(const struct header_facts *f, struct buf *out);
} features[] = { /* by number */
    {FEATURE_BUILD_ID, put_build_ids},
    {FEATURE_HOSTNAME, put_hostname},
    {FEATURE_OSRELEASE, put_kernel_release},
    {FEATURE_VERSION, put_recorder},
    {FEATURE_ARCH, put_machine},
    {FEATURE_NRCPUS, put_cpus},
    {FEATURE_CPUDESC, put_cpu_model},
    {FEATURE_TOTAL_MEM, put_memory},
    {FEATURE_CMDLINE, put_command},
    {FEATURE_EVENT_DESC, put_events},
    {FEATURE_SAMPLE_TIME, put_sample_time},
    {FEATURE_CLOCKID, put_clock_resolution},
    {FEATURE_CLOCK_DATA, put_clocks},
};
enum { FEATURE_COUNT = sizeof features / sizeof *features };

/* ---- the file ---- */

static void put_section(struct buf *out, uint64_t offset, uint64_t len_bytes)
{
    buf_put_u64(out, offset);
    buf_put_u64(out, len_bytes);
}

/* Appends what stands at `offset` in the file: places of the features, and the features. Sets their bits. */
static void put_features(const struct header_facts *f, uint64_t offset, struct buf *out, uint8_t bits[FEATURES / 8])
{
    struct buf contents = {0};
    size_t starts[FEATURE_COUNT], lengths[FEATURE_COUNT], count = 0;

    for (size_t i = 0; i < FEATURE_COUNT; i++) {
        starts[i] = contents.len_bytes;
        features[i].put(f, &contents);
        lengths[i] = contents.len_bytes - starts[i];
        pad_to(&contents, 0, 8);
        if (!lengths[i])
            continue;
        bits[features[i].number / 8] |= (uint8_t)(1u << features[i].number % 8);
        count++;
    }
    for (size_t i = 0; i < FEATURE_COUNT; i++) {
        if (lengths[i])
            put_section(out, offset + 16 * count + starts[i], lengths[i]);
    }
    buf_put(out, contents.data, contents.len_bytes);
    out->bad |= contents.bad;
    buf_deinit(&contents);
}

/* Appends what stands at `offset`: the ids of all events, and their attributes. */
static void put_attributes(const struct emit_model *model, uint64_t offset, struct buf *out)
{
    uint32_t count = event_attr_count(model);

    for (uint32_t i = 0; i < count; i++)
        buf_put_u64(out, header_event_id(i));
    for (uint32_t i = 0; i < count; i++) {
        event_attr_put(model, i, out);
        put_section(out, offset + 8 * i, 8);
    }
}

static void put_header(const struct header_facts *f, uint64_t attributes, const uint8_t bits[FEATURES / 8], struct buf *out)
{
    buf_put_str(out, "PERFILE2");
    buf_put_u64(out, HEADER_BYTES);
    buf_put_u64(out, ATTRIBUTE_BYTES);
    put_section(out, attributes, ATTRIBUTE_BYTES * (uint64_t)event_attr_count(f->model));
    put_section(out, HEADER_BYTES, f->records_len_bytes);
    put_section(out, 0, 0); /* event types, which perf no longer has */
    buf_put(out, bits, FEATURES / 8);
    assert(out->bad || out->len_bytes == HEADER_BYTES);
}

static struct error *write_buf(FILE *out, const struct buf *data)
{
    if (data->bad)
        return error_no_memory();
    return fwrite(data->data, data->len_bytes, 1, out) == 1 ? NULL : error_os(errno, "cannot write the header");
}

struct error *header_reserve(FILE *out)
{
    static const uint8_t zeros[HEADER_BYTES];

    return fwrite(zeros, sizeof zeros, 1, out) == 1 ? NULL : error_os(errno, "cannot write the header");
}

struct error *header_write(FILE *out, const struct header_facts *f)
{
    uint64_t behind = HEADER_BYTES + f->records_len_bytes;
    uint8_t bits[FEATURES / 8] = {0};
    struct buf tail = {0}, head = {0};

    put_features(f, behind, &tail, bits);
    uint64_t ids = behind + tail.len_bytes, attributes = ids + 8 * (uint64_t)event_attr_count(f->model);
    put_attributes(f->model, ids, &tail);
    put_header(f, attributes, bits, &head);
    struct error *err = write_buf(out, &tail);
    if (!err && fseeko(out, 0, SEEK_SET))
        err = error_os(errno, "cannot go back to the start of the output");
    if (!err)
        err = write_buf(out, &head);
    buf_deinit(&tail);
    buf_deinit(&head);
    return err;
}
