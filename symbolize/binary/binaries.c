/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks for the files of a module in the places where tools keep them, first
 * in those that the user named, and accepts a file only if its build ID matches.
 *
 * One module may need two files: the binary (code and .eh_frame) and a debug file
 * (DWARF, symbols) that was split off it. Every place is therefore only a source
 * of candidates; what a candidate contains is read from the file itself. The
 * search stops when both needs are met, or the places run out.
 *
 * Paths come from traces and files that nobody vouches for: candidate.h opens them.
 */
#include "symbolize/binary/binaries.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbolize/binary/candidate.h"
#include "symbolize/binary/contents.h"
#include "symbolize/binary/search.h"
#include "symbolize/binary/supplement.h"

/* What may be read in all to compare files without a build ID by their contents: whole files, of any size. */
#define COMPARED_MAX (UINT64_C(8) << 30)

/* Each binary that was found, and each file of an archive, stays open. */
static void allow_many_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

struct error *binaries_create(const struct binaries_options *options, struct binaries **out)
{
    struct binaries *b = calloc(1, sizeof *b);
    struct error *err = NULL;

    if (!b)
        return error_no_memory();
    allow_many_files();
    b->no_host = options->no_host;
    b->compared_left = COMPARED_MAX;
    b->sysroot = strdup(options->sysroot && strcmp(options->sysroot, "/") ? options->sysroot : "");
    if (!b->sysroot)
        goto no_memory;
    for (const char *const *dir = options->symfs; dir && *dir; dir++) {
        char *copy = strdup(*dir);
        if (!copy || !VEC_PUSH(&b->symfs, copy)) {
            free(copy);
            goto no_memory;
        }
    }
    for (const char *const *path = options->archives; !err && path && *path; path++) {
        struct archive_files *archive;
        err = archive_files_open(*path, options->named, &archive);
        if (!err && !VEC_PUSH(&b->archives, archive)) {
            archive_files_close(archive);
            goto no_memory;
        }
    }
    const char *home = getenv("HOME");
    if (home && *home && !(b->home = strdup(home)))
        goto no_memory;
    if (err)
        ;
    else if (options->debuginfod)
        err = debuginfod_open(&b->debuginfod);
    else
        unsetenv("DEBUGINFOD_URLS"); /* libdw would use the network by itself */
    if (!err) {
        *out = b;
        return NULL;
    }
    binaries_destroy(b);
    return err;
no_memory:
    binaries_destroy(b);
    return error_no_memory();
}

void binaries_destroy(struct binaries *b)
{
    if (!b)
        return;
    debuginfod_close(&b->debuginfod);
    for (size_t i = 0; i < b->archives.count; i++)
        archive_files_close(b->archives.data[i]);
    VEC_DEINIT(&b->archives);
    for (size_t i = 0; i < b->symfs.count; i++)
        free(b->symfs.data[i]);
    VEC_DEINIT(&b->symfs);
    free(b->sysroot);
    free(b->home);
    free(b);
}

static bool done(const struct search *s)
{
    return s->files->binary && (s->debug_holds & HAS_DWARF);
}

static struct error *note_mismatch(struct search *s, const char *path, const struct elf_identity *id)
{
    struct hex found = hex_of(id->build_id, id->build_id_len);
    char *text;
    int n;

    if (s->files->problem)
        return NULL; /* keep the problem of the first place: it is the most likely one */
    s->files->is_other = true;
    if (id->id_kind == ELF_ID_BUILD_ID && s->key->id_kind == ELF_ID_BUILD_ID)
        n = asprintf(&text, "build ID differs: %s has %s, the trace has %s", path, found.text, s->id.text);
    else if (id->id_kind == ELF_ID_BUILD_ID)
        n = asprintf(&text, "build ID differs: %s has %s, the trace has none but %s %s", path, found.text,
                     elf_id_kind_text(s->key->id_kind), s->id.text);
    else if (s->key->id_kind == ELF_ID_BUILD_ID)
        n = asprintf(&text, "build ID differs: %s has none, the trace has %s", path, s->id.text);
    else /* a hash of its contents would tell readers of the summary what it holds */
        n = asprintf(&text, "content differs: %s is another file than that of the trace, %s", path, s->id.text);
    return search_assign(&s->files->problem, n < 0 ? NULL : text);
}

enum how { BY_ID, BY_LINK };

/* Uses a file of the module for what is still missing. `named`: how much of its path the user named, or SEARCH_IN_ARCHIVE. */
static struct error *use(struct search *s, int fd, size_t named, const char *path, const char *source, enum how how)
{
    struct binary_files *f = s->files;
    int holds = binary_contents(fd);

    if ((holds & HAS_CODE) && !f->binary && how == BY_ID) {
        TRY(search_assign(&f->binary, strdup(path)));
        TRY(search_assign(&f->source, strdup(source)));
        TRY(search_keep(fd, &f->binary_fd));
        s->binary_named = named;
        elf_links_deinit(&s->links);
        TRY(elf_links_read(fd, &s->links));
    }
    int symbols = holds & (HAS_DWARF | HAS_SYMTAB);
    bool better = (symbols & HAS_DWARF) > (s->debug_holds & HAS_DWARF) || (symbols && !s->debug_holds);
    if (better) {
        TRY(search_assign(&f->debug, strdup(path)));
        TRY(search_assign(&f->debug_source, strdup(source)));
        TRY(search_keep(fd, &f->debug_fd));
        s->debug_named = named;
        s->debug_holds = symbols;
    }
    return NULL;
}

static bool is_ours(const struct search *s, const struct elf_identity *id)
{
    return elf_identity_is(id, s->key->id_kind, s->key->build_id, s->key->build_id_len);
}

/* A debug file without a build ID must match the CRC in the link. */
static bool crc_matches(struct search *s, int fd, const struct elf_identity *id)
{
    return id->is_elf && id->id_kind != ELF_ID_BUILD_ID && search_may_compare(s, fd) && elf_crc_matches(fd, s->links.debug_crc);
}

/* Checks one file and uses it for what is still missing. */
static struct error *consider(struct search *s, const char *path, size_t named, const char *source, enum how how)
{
    struct elf_identity id = {0};

    int fd = candidate_open(path, named, s->b->no_host && named);
    if (fd < 0)
        return NULL;
    struct error *err = search_identify(s, fd, path, &id);
    if (err)
        err = search_skip_unreadable(err);
    else if (is_ours(s, &id) || (how == BY_LINK && crc_matches(s, fd, &id)))
        err = id.is_elf ? use(s, fd, named, path, source, how) : NULL;
    else
        err = note_mismatch(s, path, &id);
    elf_identity_deinit(&id);
    close(fd);
    return err;
}

/* `pycap archive` names the folder of a debug file after the binary's identity. */
static bool is_debug_of(const struct archive_member *m, const char *id_hex)
{
    size_t len = strlen(m->name), tail = strlen(id_hex) + sizeof "//debug" - 1;

    return len > tail && m->name[len - tail] == '/' && !strncmp(m->name + len - tail + 1, id_hex, strlen(id_hex)) &&
           !strcmp(m->name + len - (sizeof "/debug" - 1), "/debug");
}

static struct error *try_archives(struct search *s)
{
    /* The binaries first: the CRC of a debug file stands in its binary. */
    for (int links = 0; links < 2; links++) {
        for (size_t i = 0; i < s->b->archives.count && !done(s); i++) {
            const struct archive_files *a = s->b->archives.data[i];
            for (uint32_t k = 0; k < archive_files_count(a) && !done(s); k++) {
                const struct archive_member *m = archive_files_get(a, k);
                if (!links && is_ours(s, &m->identity))
                    TRY(use(s, m->fd, SEARCH_IN_ARCHIVE, m->name, "archive", BY_ID));
                else if (links && s->links.debug && m->identity.id_kind != ELF_ID_BUILD_ID &&
                         is_debug_of(m, s->id.text) && elf_crc_matches(m->fd, s->links.debug_crc))
                    TRY(use(s, m->fd, SEARCH_IN_ARCHIVE, m->name, "archive", BY_LINK));
            }
        }
    }
    return NULL;
}

/* `named`: how many bytes of the path are a folder that the user named, or one of the system. */
static struct error *try_at(struct search *s, const char *source, enum how how, size_t named, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
static struct error *try_at(struct search *s, const char *source, enum how how, size_t named, const char *fmt, ...)
{
    char *path;
    va_list ap;

    if (done(s))
        return NULL;
    va_start(ap, fmt);
    int n = vasprintf(&path, fmt, ap);
    va_end(ap);
    if (n < 0)
        return error_no_memory();
    struct error *err = consider(s, path, named, source, how);
    free(path);
    return err;
}

/* `.build-id` folders: GNU's xx/yyyy and xx/yyyy.debug, perf's xx/yyyy/{elf,debug}. */
static struct error *try_build_id_folder(struct search *s, const char *source, const char *dir)
{
    const char *hex = s->id.text, *rest = s->id.text + 2;
    size_t named = strlen(dir);

    TRY(try_at(s, source, BY_ID, named, "%s/.build-id/%.2s/%s", dir, hex, rest));
    TRY(try_at(s, source, BY_ID, named, "%s/.build-id/%.2s/%s/elf", dir, hex, rest));
    TRY(try_at(s, source, BY_ID, named, "%s/.build-id/%.2s/%s.debug", dir, hex, rest));
    return try_at(s, source, BY_ID, named, "%s/.build-id/%.2s/%s/debug", dir, hex, rest);
}

/* Where the debug link of the binary may lead: beside it, and in the tree of debug files under `root`. */
static struct error *try_debuglink(struct search *s)
{
    static const char source[] = "debug link";
    const char *binary = s->files->binary;
    size_t named = s->binary_named;

    if (!s->links.debug || !binary || named == SEARCH_IN_ARCHIVE || done(s))
        return NULL;
    const char *slash = strrchr(binary, '/');
    int dir = slash ? (int)(slash - binary) : 1;
    if (!slash)
        binary = ".";
    const char *link = s->links.debug;
    TRY(try_at(s, source, BY_LINK, named, "%.*s/%s", dir, binary, link));
    TRY(try_at(s, source, BY_LINK, named, "%.*s/.debug/%s", dir, binary, link));
    if (!s->path)
        return NULL;
    int recorded = (int)(strrchr(s->path, '/') - s->path);
    for (size_t i = 0; i < s->b->symfs.count; i++) {
        const char *symfs = s->b->symfs.data[i];
        TRY(try_at(s, source, BY_LINK, strlen(symfs), "%s/usr/lib/debug%.*s/%s", symfs, recorded, s->path, link));
    }
    if (*s->b->sysroot)
        TRY(try_at(s, source, BY_LINK, strlen(s->b->sysroot), "%s/usr/lib/debug%.*s/%s", s->b->sysroot, recorded,
                   s->path, link));
    if (!s->b->no_host)
        TRY(try_at(s, source, BY_LINK, sizeof BINARY_DEBUG_FOLDER - 1, "%s%.*s/%s", BINARY_DEBUG_FOLDER, recorded, s->path, link));
    return NULL;
}

static struct error *try_debuginfod(struct search *s)
{
    struct debuginfod *d = &s->b->debuginfod;
    char *path = NULL;
    struct error *err = NULL;

    if (!d->client || s->key->no_servers || s->key->id_kind != ELF_ID_BUILD_ID)
        return NULL;
    for (int i = 0; i < 2 && !err; i++) {
        bool wanted = i == 0 ? !s->files->binary : !(s->debug_holds & HAS_DWARF);
        int fd = !wanted ? -1
                 : i == 0
                     ? d->find_executable(d->client, s->key->build_id, (int)s->key->build_id_len, &path)
                     : d->find_debuginfo(d->client, s->key->build_id, (int)s->key->build_id_len, &path);
        if (fd >= 0) {
            close(fd);
            if (path)
                err = consider(s, path, 0, "debuginfod", BY_ID);
        } else if (wanted && fd != -ENOENT) {
            s->server_errno = -fd;
        }
        free(path);
        path = NULL;
    }
    return err;
}

static struct error *search_places(struct search *s)
{
    struct binaries *b = s->b;
    bool in_folders = s->key->build_id_len >= 2; /* a hash, too: `pycap archive` puts it there */

    TRY(try_archives(s));
    for (size_t i = 0; i < b->symfs.count; i++) {
        const char *dir = b->symfs.data[i];
        if (s->path) {
            TRY(try_at(s, "symfs", BY_ID, strlen(dir), "%s%s", dir, s->path));
            TRY(try_at(s, "symfs", BY_ID, strlen(dir), "%s%s", dir, strrchr(s->path, '/')));
            TRY(try_at(s, "symfs", BY_ID, strlen(dir), "%s%s.debug", dir, strrchr(s->path, '/')));
        }
        if (in_folders) {
            TRY(try_build_id_folder(s, "symfs build-id folder", dir));
            char *tree;
            if (asprintf(&tree, "%s/usr/lib/debug", dir) < 0)
                return error_no_memory();
            struct error *err = try_build_id_folder(s, "symfs build-id folder", tree);
            free(tree);
            TRY(err);
        }
    }
    if (s->path && *b->sysroot)
        TRY(try_at(s, "sysroot", BY_ID, strlen(b->sysroot), "%s%s", b->sysroot, s->path));
    if (s->path && !b->no_host)
        TRY(try_at(s, "recorded path", BY_ID, 0, "%s", s->path));
    if (in_folders && *b->sysroot) {
        char *tree;
        if (asprintf(&tree, "%s/usr/lib/debug", b->sysroot) < 0)
            return error_no_memory();
        struct error *err = try_build_id_folder(s, "build-id folder", tree);
        free(tree);
        TRY(err);
    }
    if (in_folders && !b->no_host)
        TRY(try_build_id_folder(s, "build-id folder", BINARY_DEBUG_FOLDER));
    TRY(try_debuglink(s));
    if (in_folders && b->home && !b->no_host) {
        char *cache;
        if (asprintf(&cache, "%s/.debug", b->home) < 0)
            return error_no_memory();
        struct error *err = try_build_id_folder(s, "perf's build-id cache", cache);
        free(cache);
        TRY(err);
        TRY(try_debuglink(s)); /* the debug link of a binary that only this place had */
    }
    return done(s) ? NULL : try_debuginfod(s);
}

/* The recorded path as a path of a file, or NULL: "[vdso]", "//anon" and "memfd:" name no file. */
static char *file_path_of(const char *recorded)
{
    static const char deleted[] = " (deleted)";

    if (!recorded || recorded[0] != '/' || recorded[1] == '/' || !recorded[1])
        return NULL;
    size_t len = strlen(recorded), cut = sizeof deleted - 1;
    if (len > cut && !strcmp(recorded + len - cut, deleted))
        len -= cut;
    return strndup(recorded, len);
}

struct error *binaries_find(struct binaries *b, const struct binary_key *key, struct binary_files *files)
{
    struct search s = {.b = b, .key = key, .files = files};
    struct error *err = NULL;

    *files = (struct binary_files){0};
    if (key->id_kind == ELF_ID_NONE || !key->build_id_len || key->build_id_len > ELF_BUILD_ID_MAX)
        return search_assign(&files->problem, strdup("the trace has no build ID for it"));
    s.id = hex_of(key->build_id, key->build_id_len);
    s.path = file_path_of(key->path);
    err = search_places(&s);
    if (!err && files->binary) {
        free(files->problem); /* noted at a place before the right one */
        files->problem = NULL;
        files->is_other = false;
        if (!files->debug) {
            err = search_assign(&files->debug, strdup(files->binary));
            if (!err)
                err = search_keep(files->binary_fd, &files->debug_fd);
            s.debug_named = s.binary_named;
        }
        if (files->debug && !strcmp(files->debug, files->binary)) {
            free(files->debug_source);
            files->debug_source = NULL;
        }
    } else if (!err && files->debug) {
        err = search_assign(&files->problem, strdup("only the debug file was found, not the binary"));
    } else if (!err && !files->problem) {
        err = search_assign(&files->problem,
                     search_format("not found, neither by its path nor by its build ID%s%s", s.server_errno ? "; debuginfod: " : "",
                            s.server_errno ? strerror(s.server_errno) : ""));
    }
    if (!err && files->debug)
        err = supplement_find(&s);
    free(s.path);
    elf_links_deinit(&s.links);
    if (err)
        binary_files_deinit(files);
    return err;
}
