/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes the records of linux/perf_event.h, field by field, from a ring on each CPU. A record of a mapping holds device and
 * inode, or the build ID if that is asked for. We do not: Linux 5.12 to 6.18 then mark the records of others' events, too,
 * as if they held one, and perf reads them wrong. The file itself is read for it.
 */
#include "capture/sampler/sideband.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "formats/base/bytes.h"

struct ring {
    int fd;
    struct perf_event_mmap_page *page;
    uint64_t seen_until; /* the records before it were looked at, or drained */
    uint64_t busy_until; /* … when sideband_is_busy() was asked last */
};

struct sideband {
    struct ring *rings;
    int *fds;
    uint32_t count;
    size_t data_bytes, map_bytes;
    uint8_t *bounce; /* a record that wraps around the ring's end */
    struct sideband_event event; /* decoded */
};

static int open_event(int cpu)
{
    struct perf_event_attr attr = {
        .size = sizeof attr,
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_DUMMY,
        .sample_period = 1,
        .sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_TID,
        .disabled = 1,
        .mmap = 1,
        .mmap2 = 1,
        .comm = 1,
        .comm_exec = 1,
        .task = 1,
        .sample_id_all = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .watermark = 1,
        .wakeup_watermark = 1,
        .exclude_kernel = 1,
    };

    return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static struct error *open_ring(struct sideband *s, struct ring *r, int cpu)
{
    r->fd = open_event(cpu);
    if (r->fd < 0)
        return error_os(errno, "process events on CPU %d cannot be opened", cpu);
    void *page = mmap(NULL, s->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
    if (page == MAP_FAILED)
        return error_os(errno, "the buffer for process events of CPU %d cannot be mapped", cpu);
    r->page = page;
    return NULL;
}

struct error *sideband_open(const int *cpus, uint32_t cpu_count, uint32_t ring_pages, struct sideband **out)
{
    struct sideband *s = calloc(1, sizeof *s);
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);

    if (!s)
        return error_no_memory();
    s->data_bytes = ring_pages * page_bytes;
    s->map_bytes = s->data_bytes + page_bytes;
    s->rings = calloc(cpu_count, sizeof *s->rings);
    s->fds = calloc(cpu_count, sizeof *s->fds);
    s->bounce = malloc(65536);
    if (!s->rings || !s->fds || !s->bounce) {
        sideband_close(s);
        return error_no_memory();
    }
    for (uint32_t i = 0; i < cpu_count; i++) {
        s->rings[i].fd = -1;
        s->count = i + 1;
        struct error *err = open_ring(s, &s->rings[i], cpus[i]);
        if (err) {
            sideband_close(s);
            return err;
        }
        s->fds[i] = s->rings[i].fd;
    }
    *out = s;
    return NULL;
}

void sideband_close(struct sideband *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->rings[i].page)
            munmap(s->rings[i].page, s->map_bytes);
        if (s->rings[i].fd >= 0)
            close(s->rings[i].fd);
    }
    free(s->rings);
    free(s->fds);
    free(s->bounce);
    free(s);
}

struct error *sideband_enable(struct sideband *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        if (ioctl(s->rings[i].fd, PERF_EVENT_IOC_ENABLE, 0))
            return error_os(errno, "process events cannot be enabled");
    }
    return NULL;
}

uint32_t sideband_fds(const struct sideband *s, const int **fds)
{
    *fds = s->fds;
    return s->count;
}

static void copy_text(struct sideband_event *e, const char *text)
{
    /* The kernel's limit is PATH_MAX: it reports longer paths as "//toolong". */
    size_t n = text ? strnlen(text, sizeof e->text - 1) : 0;

    if (n)
        memcpy(e->text, text, n);
    e->text[n] = 0;
}

/*
 * Decodes an MMAP2 record, after its header. That may be marked as if it held a build ID, because of another's event (see above):
 * ours never does.
 */
static void decode_mmap(struct bytes *b, struct sideband_event *e)
{
    e->kind = SIDEBAND_MMAP;
    e->tgid = bytes_u32(b);
    e->tid = bytes_u32(b);
    e->address = bytes_u64(b);
    e->length = bytes_u64(b);
    e->file_offset = bytes_u64(b);
    e->device_major = bytes_u32(b);
    e->device_minor = bytes_u32(b);
    e->inode = bytes_u64(b);
    e->inode_generation = bytes_u64(b);
    e->protection = bytes_u32(b);
    e->map_flags = bytes_u32(b);
    copy_text(e, bytes_cstr(b));
}

/* Decodes one record; false for types that are not used. The layout is that of linux/perf_event.h. */
static bool decode(const uint8_t *data, uint32_t len, struct sideband_event *e)
{
    struct bytes b = bytes_of(data, len);
    uint32_t type = bytes_u32(&b);
    uint16_t misc = bytes_u16(&b);

    bytes_skip(&b, 2);
    memset(e, 0, offsetof(struct sideband_event, text) + 1);
    if (len < 8 + 16)
        return false;
    /* sample_id_all puts {tid pair, time} at the end. */
    struct bytes id = bytes_of(data + len - 16, 16);
    bytes_skip(&id, 8);
    e->time_ns = bytes_u64(&id);
    switch (type) {
    case PERF_RECORD_MMAP2:
        decode_mmap(&b, e);
        break;
    case PERF_RECORD_COMM:
        e->kind = misc & PERF_RECORD_MISC_COMM_EXEC ? SIDEBAND_EXEC : SIDEBAND_COMM;
        e->tgid = bytes_u32(&b);
        e->tid = bytes_u32(&b);
        copy_text(e, bytes_cstr(&b));
        break;
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        e->kind = type == PERF_RECORD_FORK ? SIDEBAND_FORK : SIDEBAND_EXIT;
        e->tgid = bytes_u32(&b);
        e->parent_tgid = bytes_u32(&b);
        e->tid = bytes_u32(&b);
        e->parent_tid = bytes_u32(&b);
        break;
    case PERF_RECORD_LOST:
        e->kind = SIDEBAND_LOST;
        bytes_skip(&b, 8);
        e->lost = bytes_u64(&b);
        break;
    default:
        return false;
    }
    return !b.bad;
}

/* Returns the record at `at`, which borrows from the ring or from s->bounce, or NULL when there is none before `head`. */
static const uint8_t *record_at(struct sideband *s, const struct ring *r, uint64_t at, uint64_t head, uint16_t *len_bytes)
{
    const uint8_t *data = (const uint8_t *)r->page + (s->map_bytes - s->data_bytes);
    struct perf_event_header header;
    size_t offset = at & (s->data_bytes - 1);

    if (at + sizeof header > head)
        return NULL;
    /* Records are aligned to 8 bytes, so their header never wraps. */
    memcpy(&header, data + offset, sizeof header);
    if (header.size < sizeof header || at + header.size > head)
        return NULL;
    *len_bytes = header.size;
    if (offset + header.size <= s->data_bytes)
        return data + offset;
    size_t first = s->data_bytes - offset;
    memcpy(s->bounce, data + offset, first);
    memcpy(s->bounce + first, data, header.size - first);
    return s->bounce;
}

static struct error *drain_ring(struct sideband *s, struct ring *r, sideband_fn fn, void *ctx)
{
    uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
    uint64_t tail = r->page->data_tail;
    struct error *err = NULL;
    const uint8_t *record;
    uint16_t len;

    while (!err && (record = record_at(s, r, tail, head, &len))) {
        tail += len;
        if (decode(record, len, &s->event))
            err = fn(ctx, &s->event);
    }
    __atomic_store_n(&r->page->data_tail, tail, __ATOMIC_RELEASE);
    if (r->seen_until < tail)
        r->seen_until = tail;
    return err;
}

struct error *sideband_drain(struct sideband *s, sideband_fn fn, void *ctx)
{
    for (uint32_t i = 0; i < s->count; i++)
        TRY(drain_ring(s, &s->rings[i], fn, ctx));
    return NULL;
}

/* A ring that is fuller than this is to be drained: what it has no room for is lost. */
static bool is_filling(const struct sideband *s, uint64_t held_bytes)
{
    return held_bytes > s->data_bytes / 4;
}

static enum sideband_news look_at_ring(struct sideband *s, struct ring *r, sideband_matters_fn fn, void *ctx)
{
    uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
    enum sideband_news news = SIDEBAND_NOTHING;
    const uint8_t *record;
    uint16_t len;

    while (news != SIDEBAND_NEWS && (record = record_at(s, r, r->seen_until, head, &len))) {
        r->seen_until += len;
        news = decode(record, len, &s->event) && fn(ctx, &s->event) ? SIDEBAND_NEWS : SIDEBAND_OTHERS;
    }
    return news != SIDEBAND_NOTHING && is_filling(s, head - r->page->data_tail) ? SIDEBAND_NEWS : news;
}

bool sideband_is_busy(struct sideband *s)
{
    bool busy = false;

    for (uint32_t i = 0; i < s->count; i++) {
        struct ring *r = &s->rings[i];
        busy |= is_filling(s, r->seen_until - r->busy_until);
        r->busy_until = r->seen_until;
    }
    return busy;
}

enum sideband_news sideband_look(struct sideband *s, sideband_matters_fn fn, void *ctx)
{
    enum sideband_news most = SIDEBAND_NOTHING;

    for (uint32_t i = 0; i < s->count && most != SIDEBAND_NEWS; i++) {
        enum sideband_news news = look_at_ring(s, &s->rings[i], fn, ctx);
        most = news > most ? news : most;
    }
    return most;
}
