/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gathers binaries and what belongs to them into an archive (capture/archive/pack.h): each once, by build ID, with its
 * separate debug file and dwz supplement where the host has them. A file whose identity is not the one asked for is
 * never taken. What cannot be found is reported by name, build ID and reason.
 */
#ifndef CAPTURE_ARCHIVE_BUNDLE_H
#define CAPTURE_ARCHIVE_BUNDLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "formats/base/err.h"

struct bundle_options {
    const char *output; /* "-": standard output */
    bool strip_code;
    bool quiet;         /* no line at the end; what is missing is reported all the same */
    FILE *messages;
};

/* What a module is, as in MODULE of the trace. */
struct bundle_key {
    uint32_t id_kind; /* enum elf_id_kind */
    const uint8_t *id;
    uint32_t id_len;
};
/* Where it may be. */
struct bundle_place {
    const char *path;    /* as its process saw it */
    pid_t pid;           /* 0: no process that could show it is left */
    uint64_t start, end; /* its mapping there; equal: not known */
};

struct bundle;
struct error *bundle_create(const struct bundle_options *options, struct bundle **out);
/*
 * Adds a module. `places`: at least one, the first names it in the archive. `fd`: the file, held open since it was
 * mapped, or -1. One that was added before is not added again.
 */
struct error *bundle_add(struct bundle *b, const struct bundle_key *key, const struct bundle_place *places,
                         uint32_t place_count, int fd);
/* The vdso, from the trace. Nobody but perf needs it there. */
struct error *bundle_add_vdso(struct bundle *b, const struct bundle_key *key, const void *image, uint64_t len_bytes);
/* Closes the archive and reports what is in it. `*missing`: modules that could not be found. */
struct error *bundle_finish(struct bundle *b, uint32_t *missing);
void bundle_destroy(struct bundle *b);

#endif
