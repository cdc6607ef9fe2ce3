/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/perf_data/records.h"

#include <assert.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

enum {
    RECORD_FINISHED_ROUND = 68, /* of perf, not of the kernel */
    HEADER_BYTES = 8,
    BUILD_ID_MAX = 20, /* bytes in a mapping's record */
    PROTECTION_READ_EXEC = 5,
    MAP_PRIVATELY = 2,
};
static_assert(RECORDS_SAMPLE_TYPE == (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN |
                                      PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_CGROUP),
              "the fields that put_sample() writes");
static_assert(RECORDS_IN_KERNEL == PERF_CONTEXT_KERNEL && RECORDS_IN_USER == PERF_CONTEXT_USER, "marks of chains");

static void begin(struct records *r, uint32_t type, uint16_t misc)
{
    buf_clear(&r->record);
    buf_put_u32(&r->record, type);
    buf_put_u16(&r->record, misc);
    buf_put_u16(&r->record, 0); /* the length, see finish() */
}

/* Up to 7 bytes of zeros, as all lengths are multiples of 8. */
static void pad(struct buf *out)
{
    while (!out->bad && out->len_bytes % 8)
        buf_put_u8(out, 0);
}

static void put_name(struct buf *out, const char *name)
{
    buf_put(out, name, strnlen(name, RECORDS_NAME_MAX));
    buf_put_u8(out, 0);
    pad(out);
}

static void put_stamp(struct buf *out, const struct record_stamp *stamp)
{
    buf_put_u32(out, stamp->pid);
    buf_put_u32(out, stamp->tid);
    buf_put_u64(out, stamp->time_ns);
    buf_put_u32(out, stamp->cpu);
    buf_put_u32(out, 0);
    buf_put_u64(out, stamp->id);
}

static struct error *finish(struct records *r)
{
    if (r->record.bad)
        return error_no_memory();
    assert(r->record.len_bytes % 8 == 0 && r->record.len_bytes <= UINT16_MAX);
    r->record.data[HEADER_BYTES - 2] = (uint8_t)r->record.len_bytes;
    r->record.data[HEADER_BYTES - 1] = (uint8_t)(r->record.len_bytes >> 8);
    r->len_bytes += r->record.len_bytes;
    if (fwrite(r->record.data, r->record.len_bytes, 1, r->out) != 1)
        return error_os(errno, "cannot write the samples");
    return NULL;
}

struct error *records_sample(struct records *r, const struct record_sample *s)
{
    uint64_t ip = 0;

    for (uint32_t i = 0; i < s->chain_len && !ip; i++)
        ip = s->chain[i] == RECORDS_IN_KERNEL || s->chain[i] == RECORDS_IN_USER ? 0 : s->chain[i];
    begin(r, PERF_RECORD_SAMPLE, s->in_kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER);
    buf_put_u64(&r->record, s->stamp.id);
    buf_put_u64(&r->record, ip);
    buf_put_u32(&r->record, s->stamp.pid);
    buf_put_u32(&r->record, s->stamp.tid);
    buf_put_u64(&r->record, s->stamp.time_ns);
    buf_put_u32(&r->record, s->stamp.cpu);
    buf_put_u32(&r->record, 0);
    buf_put_u64(&r->record, s->period);
    buf_put_u64(&r->record, s->chain_len);
    for (uint32_t i = 0; i < s->chain_len; i++)
        buf_put_u64(&r->record, s->chain[i]);
    buf_put_u64(&r->record, s->cgroup);
    return finish(r);
}

struct error *records_mapping(struct records *r, const struct record_stamp *stamp, const struct record_mapping *mapping)
{
    bool has_id = mapping->build_id_len && mapping->build_id_len <= BUILD_ID_MAX;

    begin(r, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER | (has_id ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0));
    buf_put_u32(&r->record, stamp->pid);
    buf_put_u32(&r->record, stamp->tid);
    buf_put_u64(&r->record, mapping->start);
    buf_put_u64(&r->record, mapping->len_bytes);
    buf_put_u64(&r->record, mapping->file_offset);
    /* Either the build ID or the device and inode, which are unknown. */
    buf_put_u32(&r->record, has_id ? mapping->build_id_len : 0);
    for (uint32_t i = 0; i < BUILD_ID_MAX; i++)
        buf_put_u8(&r->record, has_id && i < mapping->build_id_len ? mapping->build_id[i] : 0);
    buf_put_u32(&r->record, PROTECTION_READ_EXEC);
    buf_put_u32(&r->record, MAP_PRIVATELY);
    put_name(&r->record, mapping->path);
    put_stamp(&r->record, stamp);
    return finish(r);
}

struct error *records_kernel(struct records *r, const struct record_stamp *stamp, uint64_t start, uint64_t end,
                             const char *path)
{
    char name[64];

    snprintf(name, sizeof name, "%s_text", path);
    begin(r, PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL);
    buf_put_u32(&r->record, UINT32_MAX);
    buf_put_u32(&r->record, 0);
    buf_put_u64(&r->record, start);
    buf_put_u64(&r->record, end - start);
    buf_put_u64(&r->record, start); /* the address of the symbol in the name; with 0 perf says that it is hidden */
    put_name(&r->record, name);
    put_stamp(&r->record, stamp);
    return finish(r);
}

struct error *records_comm(struct records *r, const struct record_stamp *stamp, const char *name, bool is_exec)
{
    begin(r, PERF_RECORD_COMM, is_exec ? PERF_RECORD_MISC_COMM_EXEC : 0);
    buf_put_u32(&r->record, stamp->pid);
    buf_put_u32(&r->record, stamp->tid);
    put_name(&r->record, name);
    put_stamp(&r->record, stamp);
    return finish(r);
}

struct error *records_cgroup(struct records *r, const struct record_stamp *stamp, uint64_t number, const char *path)
{
    begin(r, PERF_RECORD_CGROUP, 0);
    buf_put_u64(&r->record, number);
    put_name(&r->record, path);
    put_stamp(&r->record, stamp);
    return finish(r);
}

struct error *records_lost(struct records *r, const struct record_stamp *stamp, uint64_t count)
{
    begin(r, PERF_RECORD_LOST_SAMPLES, 0);
    buf_put_u64(&r->record, count);
    put_stamp(&r->record, stamp);
    return finish(r);
}

struct error *records_end_round(struct records *r)
{
    begin(r, RECORD_FINISHED_ROUND, 0);
    return finish(r);
}
