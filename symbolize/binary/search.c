/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/binary/search.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/elf/bounds.h"

struct error *search_assign(char **slot, char *value)
{
    if (!value)
        return error_no_memory();
    free(*slot);
    *slot = value;
    return NULL;
}

char *search_format(const char *fmt, ...)
{
    va_list ap;
    char *text;

    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    return n < 0 ? NULL : text;
}

struct error *search_keep(int fd, int *slot)
{
    int kept = fcntl(fd, F_DUPFD_CLOEXEC, 3);

    if (kept < 0)
        return error_create(ERROR_LIMIT, "too many binaries are open: raise ulimit -n");
    if (*slot)
        close(*slot);
    *slot = kept;
    return NULL;
}

bool search_may_compare(struct search *s, int fd)
{
    struct stat st;

    return !fstat(fd, &st) && elf_take_budget(&s->b->compared_left, (uint64_t)st.st_size);
}

struct error *search_identify(struct search *s, int fd, const char *path, struct elf_identity *out)
{
    struct elf_file f;

    struct error *err = elf_file_open(fd, path, NULL, &f);
    if (!err)
        err = elf_identity_of_headers(&f, out);
    uint64_t hashed = elf_identity_hashed_bytes(s->key->id_kind, f.len_bytes);
    if (!err && !out->build_id_len && hashed && f.len_bytes == s->key->file_size && f.is_elf &&
        elf_take_budget(&s->b->compared_left, hashed)) {
        elf_identity_deinit(out);
        err = elf_identity_of(&f, out);
    }
    elf_file_close(&f);
    return err;
}

struct error *search_skip_unreadable(struct error *err)
{
    if (!err || err->code == ERROR_NO_MEMORY)
        return err;
    error_destroy(err);
    return NULL;
}
