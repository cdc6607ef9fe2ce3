/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a trace in one pass and without seeking, so a pipe works too.
 *
 * The file passes through a window in memory. A block is taken from the window once
 * its checksum is right, is unpacked, and its records are decoded one at a time.
 *
 * Damage is not an error. Whatever is wrong after the file header (a flipped bit, a
 * record that refers to an undefined id) makes the reader skip the rest of the epoch,
 * because later records may refer to what was lost. It notes the place and the reason
 * and looks for the next block that begins an epoch: a magic with a correct checksum
 * behind it. The search takes linear time: inside a bad block every byte is searched
 * for a good block, but a bad candidate in there is skipped whole, so no byte is
 * hashed more than a few times.
 *
 * Memory is bounded whatever the file says: the window and the unpacked block by
 * TRACE_BLOCK_LIMIT_BYTES, lists by TRACE_LIST_LIMIT. The reader keeps nothing else of
 * an epoch but the number of its ids.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <unistd.h>
#include <zstd.h>

#include "formats/trace/block.h"
#include "formats/trace/codec.h"

enum {
    READ_BYTES = 256 * 1024,
    DAMAGES_KEPT = 64,
    UNKNOWN_FREE = 1 << 22, /* records of unknown types that are passed over, and more for each byte of the file */
    UNKNOWN_PER_BYTE = 8,
};

struct trace_reader {
    int fd;
    bool owns_fd;
    int wake_fd; /* -1: none */
    char *path;

    uint8_t *window;
    size_t window_cap, window_start, window_end;
    uint64_t offset; /* in the file, of window_start */
    bool eof;

    bool seeking; /* after damage: look for a block that starts an epoch */
    uint64_t searched_to; /* candidates before this offset lie inside a bad block */
    struct trace_damage damage; /* the one being skipped over, while seeking */

    bool any_epoch;    /* an epoch was begun, and `epoch` is its number */
    bool in_epoch;     /* and it has not ended */
    uint64_t epoch, epoch_raw_bytes;
    uint32_t next_sequence;
    struct trace_ids ids;

    ZSTD_DCtx *zstd;
    uint8_t *raw; /* the block being read */
    size_t raw_cap;
    struct bytes records; /* what is left of the block */
    uint64_t block_offset;
    uint32_t block_samples_left; /* of the count in its header */
    bool epoch_record_due;
    struct trace_scratch scratch;

    struct trace_reader_stats stats;
    struct trace_damage damages[DAMAGES_KEPT];
};

/* ---- the window ---- */

static const uint8_t *window_at(const struct trace_reader *r)
{
    return r->window + r->window_start;
}

static size_t window_left(const struct trace_reader *r)
{
    return r->window_end - r->window_start;
}

static void consume(struct trace_reader *r, size_t len_bytes)
{
    r->window_start += len_bytes;
    r->offset += len_bytes;
}

static bool make_room(struct trace_reader *r)
{
    if (r->window_start) {
        memmove(r->window, window_at(r), window_left(r));
        r->window_end -= r->window_start;
        r->window_start = 0;
    }
    if (r->window_cap - r->window_end >= READ_BYTES)
        return true;
    size_t cap = r->window_cap ? r->window_cap * 2 : 2 * READ_BYTES;
    uint8_t *window = realloc(r->window, cap);
    if (!window)
        return false;
    r->window = window;
    r->window_cap = cap;
    return true;
}

/* Waits until there is something to read. False: the reader was woken, to read no more. */
static bool wait_for_input(const struct trace_reader *r)
{
    struct pollfd fds[] = {{.fd = r->fd, .events = POLLIN}, {.fd = r->wake_fd, .events = POLLIN}};

    while (r->wake_fd >= 0 && poll(fds, 2, -1) < 0 && errno == EINTR)
        ;
    return !fds[1].revents;
}

/*
 * Reads until `len_bytes` are in the window or the file ends. The window grows with the bytes that were
 * read, not with the length that a header claims.
 */
static struct error *fill(struct trace_reader *r, size_t len_bytes)
{
    while (window_left(r) < len_bytes && !r->eof) {
        if (r->window_cap - r->window_end < READ_BYTES && !make_room(r))
            return error_no_memory();
        if (!wait_for_input(r)) {
            r->eof = true;
            return NULL;
        }
        ssize_t n = read(r->fd, r->window + r->window_end, r->window_cap - r->window_end);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_file(errno, r->path, "cannot read");
        r->eof = n == 0;
        r->window_end += (size_t)n;
        r->stats.file_bytes += (uint64_t)n;
    }
    return NULL;
}

static bool window_begins_with(const struct trace_reader *r, const char *magic)
{
    size_t n = window_left(r) < TRACE_MAGIC_BYTES ? window_left(r) : TRACE_MAGIC_BYTES;

    return n && !memcmp(window_at(r), magic, n);
}

/* ---- damage ---- */

/* Begins to skip at `offset`, unless the reader is skipping already. */
__attribute__((format(printf, 3, 4)))
static void damage_begin(struct trace_reader *r, uint64_t offset, const char *fmt, ...)
{
    va_list ap;

    if (r->seeking)
        return;
    r->seeking = true;
    r->damage = (struct trace_damage){.file_offset = offset};
    va_start(ap, fmt);
    vsnprintf(r->damage.reason, sizeof r->damage.reason, fmt, ap);
    va_end(ap);
}

/*
 * Stops skipping at `offset`, where epoch `next` begins, or at the end of the file. The difference of the epoch
 * numbers says how many epochs were lost, but never more than the skipped bytes have room for: it may be forged.
 */
static void damage_end(struct trace_reader *r, uint64_t offset, const uint64_t *next)
{
    uint64_t epochs = r->in_epoch, between = 0;

    r->damage.len_bytes = offset - r->damage.file_offset;
    if (next)
        between = !r->any_epoch ? *next : *next > r->epoch ? *next - r->epoch - 1 : 0;
    else if (!r->in_epoch)
        between = 1;
    if (between > 1 + r->damage.len_bytes / TRACE_BLOCK_HEADER_BYTES)
        between = 1 + r->damage.len_bytes / TRACE_BLOCK_HEADER_BYTES;
    if (r->stats.damage_count < DAMAGES_KEPT)
        r->damages[r->stats.damage_count] = r->damage;
    r->stats.damage_count++;
    r->stats.damaged_bytes += r->damage.len_bytes;
    r->stats.epochs_damaged += epochs + between;
    r->seeking = false;
    r->in_epoch = false;
}

/* Drops the byte at the window's start and all bytes up to the next that may begin a magic. */
static void skip_to_candidate(struct trace_reader *r)
{
    const uint8_t *from = window_at(r) + 1;
    const uint8_t *found = memchr(from, (uint8_t)TRACE_BLOCK_MAGIC[0], window_left(r) - 1);

    consume(r, found ? (size_t)(found - from) + 1 : window_left(r));
}

/* ---- headers ---- */

static struct error *check_version(const struct trace_reader *r, const struct trace_file_header *h)
{
    if (h->least_reader > TRACE_VERSION)
        return error_path(ERROR_VERSION, r->path, "needs a pysym that reads format version %u; this one reads up to %d",
                          h->least_reader, TRACE_VERSION);
    if (h->reserved || !h->version || !h->least_reader || h->least_reader > h->version)
        return error_path(ERROR_FORMAT, r->path, "the file header breaks the rules of the format");
    return NULL;
}

/*
 * Takes the file header from the window. If the header is damaged, the blocks are read all the same, because
 * each has its own checksum. If it is intact, the version that it requires is enforced.
 */
static struct error *take_file_header(struct trace_reader *r)
{
    const uint64_t at = r->offset;

    TRY(fill(r, TRACE_FILE_HEADER_BYTES));
    struct trace_file_header h = {0};
    if (window_left(r) >= TRACE_FILE_HEADER_BYTES)
        h = trace_file_header_unpack(window_at(r));
    if (h.header_len_bytes >= TRACE_FILE_HEADER_BYTES && h.header_len_bytes <= TRACE_FILE_HEADER_LIMIT)
        TRY(fill(r, h.header_len_bytes));
    if (h.header_len_bytes < TRACE_FILE_HEADER_BYTES || h.header_len_bytes > TRACE_FILE_HEADER_LIMIT ||
        h.header_len_bytes > window_left(r) || !trace_checksum_good(window_at(r), h.header_len_bytes)) {
        damage_begin(r, at, "the file header is damaged");
        skip_to_candidate(r);
        return NULL;
    }
    TRY(check_version(r, &h));
    /* In the middle of a file: another trace was appended to it. Its epochs count from 0 again. */
    if (r->seeking)
        damage_end(r, at, NULL);
    r->any_epoch = r->in_epoch = false;
    r->stats.version = h.version;
    r->stats.least_reader = h.least_reader;
    consume(r, h.header_len_bytes);
    return NULL;
}

/* Why a block with a correct checksum still cannot be read, or NULL. */
static const char *block_fault(const struct trace_block_header *h)
{
    if (h->reserved_1 || h->reserved_2 || h->flags & ~TRACE_BLOCK_FLAGS)
        return "a block has reserved bits set";
    if (h->codec != TRACE_CODEC_RAW && h->codec != TRACE_CODEC_ZSTD)
        return "a block is packed in an unknown way";
    if (h->raw_len_bytes > TRACE_BLOCK_LIMIT_BYTES)
        return "a block is longer than blocks may be";
    if (h->codec == TRACE_CODEC_RAW && h->raw_len_bytes != h->stored_len_bytes)
        return "a block's lengths contradict each other";
    return NULL;
}

static struct error *unpack(struct trace_reader *r, const struct trace_block_header *h, const uint8_t *stored,
                            bool *good)
{
    *good = false;
    if (h->raw_len_bytes > r->raw_cap) {
        uint8_t *raw = realloc(r->raw, h->raw_len_bytes);
        if (!raw)
            return error_no_memory();
        r->raw = raw;
        r->raw_cap = h->raw_len_bytes;
    }
    if (h->codec == TRACE_CODEC_ZSTD)
        *good = ZSTD_decompressDCtx(r->zstd, r->raw, r->raw_cap, stored, h->stored_len_bytes) == h->raw_len_bytes;
    else if (h->raw_len_bytes)
        memcpy(r->raw, stored, h->raw_len_bytes);
    *good = *good || h->codec == TRACE_CODEC_RAW;
    r->records = bytes_of(r->raw, h->raw_len_bytes);
    return NULL;
}

/* ---- blocks ---- */

/* True if this is the block that comes next; otherwise notes the damage. */
static bool block_follows(struct trace_reader *r, const struct trace_block_header *h)
{
    if (h->flags & TRACE_BLOCK_STARTS_EPOCH) {
        if (r->in_epoch)
            damage_begin(r, r->offset, "the last blocks of epoch %llu are missing", (unsigned long long)r->epoch);
        else if (r->any_epoch && h->epoch > r->epoch + 1)
            damage_begin(r, r->offset, "epochs between %llu and %llu are missing", (unsigned long long)r->epoch,
                         (unsigned long long)h->epoch);
        return true;
    }
    if (!r->in_epoch)
        damage_begin(r, r->offset, "a block of epoch %llu stands outside of it", (unsigned long long)h->epoch);
    else if (h->epoch != r->epoch || h->sequence != r->next_sequence)
        damage_begin(r, r->offset, "block %u of epoch %llu is missing", r->next_sequence, (unsigned long long)r->epoch);
    else if (r->epoch_raw_bytes + h->raw_len_bytes > TRACE_EPOCH_LIMIT_BYTES)
        damage_begin(r, r->offset, "epoch %llu is longer than epochs may be", (unsigned long long)r->epoch);
    return !r->seeking;
}

/* The block at the window's start has been unpacked: continue with its records. */
static void enter_block(struct trace_reader *r, const struct trace_block_header *h)
{
    if (h->flags & TRACE_BLOCK_STARTS_EPOCH) {
        if (r->seeking)
            damage_end(r, r->offset, &h->epoch);
        r->any_epoch = r->in_epoch = true;
        r->epoch = h->epoch;
        r->epoch_raw_bytes = 0;
        r->ids = (struct trace_ids){0};
        r->epoch_record_due = true;
        r->stats.epoch_count++;
    }
    r->epoch_raw_bytes += h->raw_len_bytes;
    r->next_sequence = h->sequence + 1;
    if (h->flags & TRACE_BLOCK_ENDS_EPOCH)
        r->in_epoch = false;
    r->block_offset = r->offset;
    r->block_samples_left = h->sample_count;
    r->stats.block_count++;
    r->stats.raw_bytes += h->raw_len_bytes;
}

/* Consumes the window's start: a block to read (`*found`), a block to skip, or a byte that begins no block. */
static struct error *take_block(struct trace_reader *r, bool *found)
{
    struct trace_block_header h;

    if (!window_begins_with(r, TRACE_BLOCK_MAGIC)) {
        damage_begin(r, r->offset, "no block begins here");
        skip_to_candidate(r);
        return NULL;
    }
    if (window_left(r) < TRACE_BLOCK_HEADER_BYTES) {
        damage_begin(r, r->offset, "the file ends inside a block");
        skip_to_candidate(r);
        return NULL;
    }
    h = trace_block_header_unpack(window_at(r));
    if (h.stored_len_bytes > TRACE_BLOCK_LIMIT_BYTES) {
        damage_begin(r, r->offset, "a block is longer than blocks may be");
        skip_to_candidate(r);
        return NULL;
    }
    const size_t len = TRACE_BLOCK_HEADER_BYTES + (size_t)h.stored_len_bytes;
    TRY(fill(r, len));
    if (window_left(r) < len) {
        damage_begin(r, r->offset, "the file ends inside a block");
        skip_to_candidate(r);
        return NULL;
    }
    if (!trace_checksum_good(window_at(r), len)) {
        damage_begin(r, r->offset, "a block's checksum is wrong");
        if (r->offset < r->searched_to) {
            consume(r, len);
        } else {
            r->searched_to = r->offset + len;
            skip_to_candidate(r);
        }
        return NULL;
    }
    const char *fault = block_fault(&h);
    if (fault) {
        damage_begin(r, r->offset, "%s", fault);
    } else if (block_follows(r, &h)) {
        TRY(unpack(r, &h, window_at(r) + TRACE_BLOCK_HEADER_BYTES, found));
        if (*found)
            enter_block(r, &h);
        else
            damage_begin(r, r->offset, "a block cannot be decompressed");
    }
    if (!*found)
        r->stats.skipped_sample_count += h.sample_count;
    consume(r, len);
    return NULL;
}

/* Goes to the next block that can be read; `*found` is false at the end of the file. */
static struct error *next_block(struct trace_reader *r, bool *found)
{
    for (*found = false; !*found;) {
        TRY(fill(r, TRACE_BLOCK_HEADER_BYTES));
        if (!window_left(r)) {
            if (r->seeking)
                damage_end(r, r->offset, NULL);
            return NULL;
        }
        if (window_left(r) >= TRACE_MAGIC_BYTES && window_begins_with(r, TRACE_FILE_MAGIC))
            TRY(take_file_header(r));
        else
            TRY(take_block(r, found));
    }
    return NULL;
}

/* ---- records ---- */

/* Skips the rest of the current block and of its epoch. */
static void give_up_block(struct trace_reader *r, const struct trace_fault *fault)
{
    r->in_epoch = true; /* even where this was its last block */
    r->stats.skipped_sample_count += r->block_samples_left;
    damage_begin(r, r->block_offset, "%s", fault->text);
    r->records = (struct bytes){0};
}

/* Decodes the record at the cursor. False with an empty fault: the type of the record is unknown. */
static bool take_record(struct trace_reader *r, struct trace_record *rec, struct trace_fault *fault)
{
    uint64_t number = bytes_uleb(&r->records);
    uint64_t len = bytes_uleb(&r->records);
    const uint8_t *payload = bytes_take(&r->records, len);
    const struct trace_record_type *type = number <= UINT32_MAX ? trace_record_type((uint32_t)number) : NULL;

    fault->text[0] = 0;
    if (r->records.bad) {
        snprintf(fault->text, sizeof fault->text, "a record is cut off by the end of its block");
        return false;
    }
    if (r->epoch_record_due != (number == TRACE_epoch)) {
        snprintf(fault->text, sizeof fault->text, "%s",
                 r->epoch_record_due ? "an epoch does not begin with its record" : "an epoch begins inside another");
        return false;
    }
    r->epoch_record_due = false;
    if (!type) {
        /* A few bytes of the file may unpack to millions of them. */
        if (++r->stats.unknown_record_count > UNKNOWN_FREE + UNKNOWN_PER_BYTE * r->stats.file_bytes)
            snprintf(fault->text, sizeof fault->text, "there are more unknown records than a file of this size may have");
        return false;
    }
    rec->type = type->number;
    rec->epoch_number = r->epoch;
    rec->file_offset = r->block_offset;
    rec->epoch_ends = !r->in_epoch;
    if (!trace_decode(bytes_of(payload, len), type, &r->ids, &r->scratch, &rec->epoch, fault) ||
        !trace_define(&r->ids, type, &rec->epoch, fault))
        return false;
    rec->checked_samples = r->scratch.samples.count ? r->scratch.samples.data : NULL;
    if (rec->type == TRACE_epoch && rec->epoch.number != r->epoch) {
        snprintf(fault->text, sizeof fault->text, "an epoch's record and its block disagree about its number");
        return false;
    }
    return true;
}

static void count_samples(struct trace_reader *r, uint32_t count)
{
    r->block_samples_left -= count < r->block_samples_left ? count : r->block_samples_left;
}

struct error *trace_reader_next(struct trace_reader *r, struct trace_record *rec, bool *more)
{
    struct trace_fault fault;

    for (;;) {
        while (!bytes_left(&r->records)) {
            TRY(next_block(r, more));
            if (!*more)
                return NULL;
        }
        if (take_record(r, rec, &fault)) {
            r->stats.record_count++;
            r->stats.ended |= rec->type == TRACE_end;
            if (rec->type == TRACE_samples)
                count_samples(r, rec->samples.count);
            r->stats.newer_sample_count += r->scratch.newer_samples;
            *more = true;
            return NULL;
        }
        if (fault.text[0])
            give_up_block(r, &fault);
    }
}

/* ---- life ---- */

/* Says what a file that is no trace seems to be, by how it begins, and what to do with it. */
static struct error *not_a_trace(const struct trace_reader *r)
{
    static const struct {
        const char *magic, *text;
    } kinds[] = {
        {"\x1f\x8b", "is compressed: unpack it with gunzip first"},
        {"\xfd" "7zXZ", "is compressed: unpack it with unxz first"},
        {"BZh", "is compressed: unpack it with bunzip2 first"},
        {"\x28\xb5\x2f\xfd", "is compressed: unpack it with unzstd first; "
                             "or name an archive of binaries with --archive, after the trace"},
        {"PERFILE2", "is a file of perf, not of pycap: perf script reads it"},
    };

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t n = strlen(kinds[i].magic);
        if (window_left(r) >= n && !memcmp(window_at(r), kinds[i].magic, n))
            return error_path(ERROR_FORMAT, r->path, "%s", kinds[i].text);
    }
    return error_path(ERROR_FORMAT, r->path, "is not a pycap trace");
}

static struct error *open_fd(struct trace_reader *r)
{
    TRY(fill(r, TRACE_FILE_HEADER_BYTES));
    if (!window_left(r))
        return error_path(ERROR_TRUNCATED, r->path, "is empty");
    if (!window_begins_with(r, TRACE_FILE_MAGIC))
        return not_a_trace(r);
    if (window_left(r) < TRACE_FILE_HEADER_BYTES)
        return error_path(ERROR_TRUNCATED, r->path, "ends inside the file header");
    return take_file_header(r);
}

static struct error *create(int fd, bool owns_fd, int wake_fd, const char *path, struct trace_reader **out)
{
    struct trace_reader *r = calloc(1, sizeof *r);

    *out = NULL;
    if (!r) {
        if (owns_fd)
            close(fd);
        return error_no_memory();
    }
    r->fd = fd;
    r->owns_fd = owns_fd;
    r->wake_fd = wake_fd;
    r->path = strdup(path);
    r->zstd = ZSTD_createDCtx();
    struct error *err = r->path && r->zstd ? open_fd(r) : error_no_memory();
    if (err)
        trace_reader_close(r);
    else
        *out = r;
    return err;
}

struct error *trace_reader_open_fd(int fd, const char *path, struct trace_reader **out)
{
    return create(fd, false, -1, path, out);
}

static struct error *open_until(const char *path, const char *name, int wake_fd, struct trace_reader **out)
{
    *out = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_file(errno, name, "cannot open");
    return create(fd, true, wake_fd, name, out);
}

struct error *trace_reader_open_as(const char *path, const char *name, struct trace_reader **out)
{
    return open_until(path, name, -1, out);
}

struct error *trace_reader_open_until(const char *path, int wake_fd, struct trace_reader **out)
{
    return !strcmp(path, "-") ? create(STDIN_FILENO, false, wake_fd, "standard input", out) : open_until(path, path, wake_fd, out);
}

struct error *trace_reader_open(const char *path, struct trace_reader **out)
{
    return trace_reader_open_until(path, -1, out);
}

void trace_reader_close(struct trace_reader *r)
{
    if (!r)
        return;
    if (r->owns_fd)
        close(r->fd);
    ZSTD_freeDCtx(r->zstd);
    VEC_DEINIT(&r->scratch.values);
    VEC_DEINIT(&r->scratch.samples);
    free(r->window);
    free(r->raw);
    free(r->path);
    free(r);
}

const struct trace_reader_stats *trace_reader_stats(const struct trace_reader *r)
{
    return &r->stats;
}

const struct trace_damage *trace_reader_damage(const struct trace_reader *r, uint32_t *count)
{
    *count = (uint32_t)(r->stats.damage_count < DAMAGES_KEPT ? r->stats.damage_count : DAMAGES_KEPT);
    return r->damages;
}
