/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State files of a push: any bytes, and any lines behind a good head. What is read must come out of the file that is written of
 * it, and a file without its last byte must be read as well.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/base/buf.h"
#include "symbolize/push/state_file.h"

#define HEAD "pysym push state 1\ndestination a=b\n"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

static struct error *apply(void *ctx, const struct ledger_event *event)
{
    return ledger_apply(ctx, event);
}

static struct error *tell(void *ctx, const struct ledger_event *event)
{
    buf_put(ctx, event, sizeof *event);
    return NULL;
}

/* What the ledger tells, or nothing if the bytes are refused. */
static bool read_bytes(const void *data, size_t len_bytes, struct buf *out)
{
    int fd = memfd_create("state", MFD_CLOEXEC);
    struct state_file f = {.path = "fuzz", .destination = "a=b", .fd = fd};
    struct ledger l;

    if (fd < 0 || write(fd, data, len_bytes) != (ssize_t)len_bytes || lseek(fd, 0, SEEK_SET) != 0)
        abort();
    ledger_init(&l, 16, 64);
    struct error *err = state_file_read(&f, apply, &l);
    bool good = !err;
    error_destroy(err);
    if (good && ledger_tell(&l, tell, out))
        abort();
    if (l.profile_count > 64 || l.traces.count > 16)
        abort();
    ledger_deinit(&l);
    close(fd);
    return good;
}

/* The ledger of what a ledger tells is the same. */
static void check_told(const struct buf *told)
{
    struct buf again = {0};
    struct ledger l;

    ledger_init(&l, 16, 64);
    for (size_t at = 0; at < told->len_bytes; at += sizeof(struct ledger_event)) {
        struct ledger_event event;
        memcpy(&event, told->data + at, sizeof event);
        if (ledger_apply(&l, &event))
            abort();
    }
    if (ledger_tell(&l, tell, &again))
        abort();
    /* Entries of a trace come in the order of a hash table, which depends on how it grew: only their number is compared. */
    if (again.len_bytes != told->len_bytes)
        abort();
    ledger_deinit(&l);
    buf_deinit(&again);
}

static void check(const void *data, size_t len_bytes)
{
    struct buf told = {0}, cut = {0};

    if (read_bytes(data, len_bytes, &told)) {
        check_told(&told);
        if (len_bytes && !read_bytes(data, len_bytes - 1, &cut))
            abort();
    }
    buf_deinit(&told);
    buf_deinit(&cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct buf headed = {0};

    check(data, len_bytes);
    buf_put_str(&headed, HEAD);
    buf_put(&headed, data, len_bytes);
    check(headed.data, headed.len_bytes);
    buf_deinit(&headed);
    return 0;
}
