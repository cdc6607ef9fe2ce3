/* SPDX-License-Identifier: Apache-2.0 */
/* Looks in archives, where the link says, in .build-id folders, and asks the servers last. */
#include "symbolize/binary/supplement.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbolize/binary/candidate.h"

static struct error *use_supplement(struct search *s, int fd, const char *path, const char *source)
{
    TRY(search_assign(&s->files->supplement, strdup(path)));
    TRY(search_assign(&s->files->supplement_source, strdup(source)));
    return search_keep(fd, &s->files->supplement_fd);
}

/* Uses the file if it has the build ID that the link names. `named` as in try_at(); frees the path. */
static struct error *try_supplement(struct search *s, const struct elf_links *links, char *path, size_t named,
                                    const char *source)
{
    struct elf_identity id = {0};
    struct error *err = NULL;

    if (!path)
        return error_no_memory();
    int fd = s->files->supplement ? -1 : candidate_open(path, named, s->b->no_host && named);
    if (fd >= 0) {
        err = search_skip_unreadable(search_identify(s, fd, path, &id));
        if (!err && elf_identity_is(&id, ELF_ID_BUILD_ID, links->supplement_id, links->supplement_id_len))
            err = use_supplement(s, fd, path, source);
        elf_identity_deinit(&id);
        close(fd);
    }
    free(path);
    return err;
}

/*
 * Where the link says, or in a .build-id folder; both also below every directory that the debug file itself lies in,
 * which serves sysroots and --symfs without knowing of them.
 */
static struct error *supplement_near(struct search *s, const struct elf_links *links, const char *hex)
{
    static const char source[] = "dwz link";
    char *dir = strdup(s->files->debug);
    struct error *err = NULL;

    if (!dir)
        return error_no_memory();
    for (char *slash; !err && !s->files->supplement && (slash = strrchr(dir, '/'));) {
        *slash = 0;
        size_t len = (size_t)(slash - dir), named = s->debug_named < len ? s->debug_named : len;
        if (s->b->no_host && len < s->debug_named)
            break;
        const char *below = links->supplement + (*links->supplement == '/');
        err = try_supplement(s, links, search_format("%s/%s", dir, below), named, source);
        if (!err)
            err = try_supplement(s, links, search_format("%s/.build-id/%.2s/%s.debug", dir, hex, hex + 2), named,
                                 source);
    }
    free(dir);
    return err;
}

static struct error *supplement_from_debuginfod(struct search *s, const struct elf_links *links)
{
    struct debuginfod *d = &s->b->debuginfod;
    char *path = NULL;

    if (!d->client || s->files->supplement)
        return NULL;
    int fd = d->find_debuginfo(d->client, links->supplement_id, (int)links->supplement_id_len, &path);
    if (fd >= 0)
        close(fd);
    return fd >= 0 && path ? try_supplement(s, links, path, 0, "debuginfod") : NULL;
}

/* Of the debug file whose links these are. */
static struct error *search_supplement(struct search *s, const struct elf_links *links)
{
    struct hex id = hex_of(links->supplement_id, links->supplement_id_len);
    struct binary_files *f = s->files;
    struct error *err = NULL;

    for (size_t i = 0; !err && i < s->b->archives.count; i++) {
        const struct archive_files *a = s->b->archives.data[i];
        for (uint32_t k = 0; !err && !f->supplement && k < archive_files_count(a); k++) {
            const struct archive_member *m = archive_files_get(a, k);
            if (!elf_identity_is(&m->identity, ELF_ID_BUILD_ID, links->supplement_id, links->supplement_id_len))
                continue;
            err = use_supplement(s, m->fd, m->name, "archive");
        }
    }
    if (!err && s->debug_named != SEARCH_IN_ARCHIVE)
        err = supplement_near(s, links, id.text);
    if (!err && !f->supplement && !s->b->no_host)
        err = try_supplement(s, links,
                             search_format(BINARY_DEBUG_FOLDER "/.build-id/%.2s/%s.debug", id.text, id.text + 2),
                             sizeof BINARY_DEBUG_FOLDER - 1, "build-id folder");
    if (!err)
        err = supplement_from_debuginfod(s, links);
    if (!err && !f->supplement)
        err = search_assign(&f->supplement_source, strdup("missing"));
    return err;
}

struct error *supplement_find(struct search *s)
{
    struct elf_links links;
    int fd = binary_open(s->files->debug, s->files->debug_fd);

    if (fd < 0)
        return NULL;
    struct error *err = elf_links_read(fd, &links);
    close(fd);
    if (!err && links.supplement)
        err = search_supplement(s, &links);
    elf_links_deinit(&links);
    return err;
}
