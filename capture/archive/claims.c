/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file of each kind is held open, and the others are compared with it, byte by byte: what they cost in memory does
 * not depend on how many there are. A file system in user space shows any owner that its maker likes, so root vouches for
 * nothing in one.
 */
#include "capture/archive/claims.h"

#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { PIECE = 1 << 16 };

void claims_init(struct claims *c, struct allowance *compared)
{
    *c = (struct claims){.vouched.fd = -1, .other.fd = -1, .compared = compared};
}

static void close_claim(struct claim *claim)
{
    if (claim->fd >= 0)
        close(claim->fd);
    claim->fd = -1;
}

void claims_deinit(struct claims *c)
{
    close_claim(&c->vouched);
    close_claim(&c->other);
}

static bool is_vouched(int fd, const struct stat *st)
{
    struct statfs fs;

    return !st->st_uid && !(st->st_mode & (S_IWGRP | S_IWOTH)) && !fstatfs(fd, &fs) && fs.f_type != FUSE_SUPER_MAGIC;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool claims_have(const struct claims *c, int fd)
{
    struct stat st;

    return !fstat(fd, &st) &&
           ((c->vouched.fd >= 0 && same_file(&c->vouched.st, &st)) || (c->other.fd >= 0 && same_file(&c->other.st, &st)));
}

static bool same_bytes(int a, int b, uint64_t len_bytes)
{
    uint8_t x[PIECE], y[PIECE];

    for (uint64_t at = 0; at < len_bytes;) {
        ssize_t n = pread(a, x, PIECE, (off_t)at);
        if (n <= 0)
            return false;
        for (ssize_t have = 0; have < n;) {
            ssize_t m = pread(b, y + have, (size_t)(n - have), (off_t)at + have);
            if (m <= 0)
                return false;
            have += m;
        }
        if (memcmp(x, y, (size_t)n) != 0)
            return false;
        at += (uint64_t)n;
    }
    return true;
}

/* Charged to the owner of `b`: whoever adds copies is the one whose copies are no longer compared. */
static bool same_contents(const struct claims *c, const struct claim *a, int b, const struct stat *st)
{
    return same_file(&a->st, st) ||
           (a->st.st_size == st->st_size && allowance_take(c->compared, st->st_uid, (uint64_t)st->st_size) &&
            same_bytes(a->fd, b, (uint64_t)st->st_size));
}

void claims_add(struct claims *c, int fd, uint32_t place)
{
    struct stat st;

    if (fstat(fd, &st)) {
        close(fd);
        return;
    }
    struct claim *first = is_vouched(fd, &st) ? &c->vouched : &c->other;
    if (first->fd < 0) {
        *first = (struct claim){.fd = fd, .place = place, .st = st};
        return;
    }
    if (!first->contested && !same_contents(c, first, fd, &st)) {
        first->contested = true;
        first->rival = place;
    }
    close(fd);
}

void claims_expect(struct claims *c, uint64_t size_bytes, uint32_t place)
{
    if (!size_bytes)
        return;
    if (!c->size_bytes) {
        c->size_bytes = size_bytes;
        c->size_place = place;
    } else if (c->size_bytes != size_bytes && !c->sizes_differ) {
        c->sizes_differ = true;
        c->size_rival = place;
    }
}

const struct claim *claims_choose(const struct claims *c, bool *contested, uint32_t *one, uint32_t *another)
{
    const struct claim *v = &c->vouched, *o = &c->other;
    const struct claim *first = v->fd >= 0 ? v : o;

    *contested = first->contested;
    *one = first->place;
    *another = first->rival;
    if (first->fd < 0 || first->contested)
        return NULL;
    if (first == o && c->sizes_differ) {
        *contested = true;
        *one = c->size_place;
        *another = c->size_rival;
        return NULL;
    }
    /* Root's file is taken. That somebody claims to be it is worth a message. */
    if (first == v && o->fd >= 0) {
        bool same = same_contents(c, v, o->fd, &o->st);
        *contested = !same || o->contested;
        *another = same ? o->rival : o->place;
    }
    return first;
}

bool claims_may_describe(const struct claim *binary, int fd)
{
    struct stat st;

    if (fstat(fd, &st))
        return false;
    return is_vouched(fd, &st) ||
           (st.st_uid == binary->st.st_uid && !(st.st_mode & S_IWOTH) && !is_vouched(binary->fd, &binary->st));
}
