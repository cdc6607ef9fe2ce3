/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks for the files of a module in the places where tools keep them, first
 * in those that the user named, and accepts a file only if its build ID matches.
 *
 * One module may need two files: the binary (code and .eh_frame) and a debug file
 * (DWARF, symbols) that was split off it. Every place is therefore only a source
 * of candidates; what a candidate contains is read from the file itself. The
 * search stops when both needs are met, or the places run out.
 */
#include "symbolize/binary/binaries.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/hex.h"
#include "formats/base/vec.h"
#include "formats/elf/identity.h"
#include "formats/elf/links.h"
#include "symbolize/binary/archive.h"
#include "symbolize/binary/contents.h"
#include "symbolize/binary/debuginfod.h"

struct binaries {
    VEC(struct archive_files *) archives;
    VEC(char *) symfs;
    char *sysroot; /* "" for "/" */
    char *home;    /* whose ~/.debug is perf's cache; NULL when unknown */
    bool no_host;
    struct debuginfod debuginfod;
};

struct search {
    struct binaries *b;
    const struct binary_key *key;
    struct binary_files *files;
    char *path; /* the recorded one, without " (deleted)"; NULL when it names no file */
    struct hex id;
    int debug_holds;          /* HAS_* of files->debug */
    struct elf_links links;   /* of the binary */
    int server_errno;         /* why debuginfod could not answer, 0 when it did */
};

struct error *binaries_create(const struct binaries_options *options, struct binaries **out)
{
    struct binaries *b = calloc(1, sizeof *b);
    struct error *err = NULL;

    if (!b)
        return error_no_memory();
    b->no_host = options->no_host;
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
        err = archive_files_open(*path, &archive);
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

int binary_open(const char *path, int fd)
{
    return fd ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

void binary_files_deinit(struct binary_files *files)
{
    free(files->binary);
    free(files->debug);
    free(files->supplement);
    free(files->source);
    free(files->debug_source);
    free(files->supplement_source);
    free(files->problem);
    *files = (struct binary_files){0};
}

static bool done(const struct search *s)
{
    return s->files->binary && (s->debug_holds & HAS_DWARF);
}

/* Replaces *slot; NULL in `value` leaves it as it is. */
static struct error *assign(char **slot, char *value)
{
    if (!value)
        return error_no_memory();
    free(*slot);
    *slot = value;
    return NULL;
}

static struct error *note_mismatch(struct search *s, const char *path, const struct elf_identity *id)
{
    struct hex found = hex_of(id->build_id, id->build_id_len);
    char *text;
    int n;

    if (s->files->problem)
        return NULL; /* keep the problem of the first place: it is the most likely one */
    if (id->id_kind == s->key->id_kind)
        n = asprintf(&text, "%s differs: %s has %s, the trace has %s",
                     id->id_kind == ELF_ID_BUILD_ID ? "build ID" : "content", path, found.text, s->id.text);
    else if (id->id_kind == ELF_ID_BUILD_ID)
        n = asprintf(&text, "build ID differs: %s has %s, the trace has none but content hash %s", path, found.text,
                     s->id.text);
    else
        n = asprintf(&text, "build ID differs: %s has none, the trace has %s", path, s->id.text);
    return assign(&s->files->problem, n < 0 ? NULL : text);
}

enum how { BY_ID, BY_LINK };

/* Uses a file of the module for what is still missing. `keep`: its descriptor if it has no path, else 0. */
static struct error *use(struct search *s, int fd, int keep, const char *path, const char *source, enum how how)
{
    struct binary_files *f = s->files;
    int holds = binary_contents(fd);

    if ((holds & HAS_CODE) && !f->binary && how == BY_ID) {
        TRY(assign(&f->binary, strdup(path)));
        TRY(assign(&f->source, strdup(source)));
        f->binary_fd = keep;
        elf_links_deinit(&s->links);
        TRY(elf_links_read(fd, &s->links));
    }
    int symbols = holds & (HAS_DWARF | HAS_SYMTAB);
    bool better = (symbols & HAS_DWARF) > (s->debug_holds & HAS_DWARF) || (symbols && !s->debug_holds);
    if (better) {
        TRY(assign(&f->debug, strdup(path)));
        TRY(assign(&f->debug_source, strdup(source)));
        f->debug_fd = keep;
        s->debug_holds = symbols;
    }
    return NULL;
}

static bool is_ours(const struct search *s, const struct elf_identity *id)
{
    return elf_identity_is(id, s->key->id_kind, s->key->build_id, s->key->build_id_len);
}

/* Only regular files are candidates: paths come from traces and links, and reading a device or a pipe may never end. */
static int open_regular(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Checks one file and uses it for what is still missing. */
static struct error *consider(struct search *s, const char *path, const char *source, enum how how)
{
    struct elf_identity id = {0};
    struct error *err = NULL;

    int fd = open_regular(path);
    if (fd < 0)
        return NULL;
    err = elf_identity_read(fd, path, &id);
    if (err) { /* skip a candidate that cannot be read */
        bool fatal = err->code == ERROR_NO_MEMORY;
        if (!fatal) {
            error_destroy(err);
            err = NULL;
        }
        goto out;
    }
    /* A debug file without a build ID must match the CRC in the link. */
    if (is_ours(s, &id) || (how == BY_LINK && id.is_elf && id.id_kind == ELF_ID_CONTENT_HASH &&
                            elf_crc_matches(fd, s->links.debug_crc)))
        err = id.is_elf ? use(s, fd, 0, path, source, how) : NULL;
    else
        err = note_mismatch(s, path, &id);
out:
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
                    TRY(use(s, m->fd, m->fd, m->name, "archive", BY_ID));
                else if (links && s->links.debug && m->identity.id_kind == ELF_ID_CONTENT_HASH &&
                         is_debug_of(m, s->id.text) && elf_crc_matches(m->fd, s->links.debug_crc))
                    TRY(use(s, m->fd, m->fd, m->name, "archive", BY_LINK));
            }
        }
    }
    return NULL;
}

static struct error *try_at(struct search *s, const char *source, enum how how, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static struct error *try_at(struct search *s, const char *source, enum how how, const char *fmt, ...)
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
    struct error *err = consider(s, path, source, how);
    free(path);
    return err;
}

/* `.build-id` folders: GNU's xx/yyyy and xx/yyyy.debug, perf's xx/yyyy/{elf,debug}. */
static struct error *try_build_id_folder(struct search *s, const char *source, const char *dir)
{
    const char *hex = s->id.text, *rest = s->id.text + 2;

    TRY(try_at(s, source, BY_ID, "%s/.build-id/%.2s/%s", dir, hex, rest));
    TRY(try_at(s, source, BY_ID, "%s/.build-id/%.2s/%s/elf", dir, hex, rest));
    TRY(try_at(s, source, BY_ID, "%s/.build-id/%.2s/%s.debug", dir, hex, rest));
    return try_at(s, source, BY_ID, "%s/.build-id/%.2s/%s/debug", dir, hex, rest);
}

/* Where the debug link of the binary may lead: beside it, and in the tree of debug files under `root`. */
static struct error *try_debuglink(struct search *s)
{
    static const char source[] = "debug link";
    const char *binary = s->files->binary;

    if (!s->links.debug || !binary || s->files->binary_fd || done(s))
        return NULL;
    const char *slash = strrchr(binary, '/');
    int dir = slash ? (int)(slash - binary) : 1;
    if (!slash)
        binary = ".";
    const char *link = s->links.debug;
    TRY(try_at(s, source, BY_LINK, "%.*s/%s", dir, binary, link));
    TRY(try_at(s, source, BY_LINK, "%.*s/.debug/%s", dir, binary, link));
    if (!s->path)
        return NULL;
    int recorded = (int)(strrchr(s->path, '/') - s->path);
    for (size_t i = 0; i < s->b->symfs.count; i++)
        TRY(try_at(s, source, BY_LINK, "%s/usr/lib/debug%.*s/%s", s->b->symfs.data[i], recorded, s->path, link));
    if (*s->b->sysroot)
        TRY(try_at(s, source, BY_LINK, "%s/usr/lib/debug%.*s/%s", s->b->sysroot, recorded, s->path, link));
    if (!s->b->no_host)
        TRY(try_at(s, source, BY_LINK, "/usr/lib/debug%.*s/%s", recorded, s->path, link));
    return NULL;
}

static struct error *try_debuginfod(struct search *s)
{
    struct debuginfod *d = &s->b->debuginfod;
    char *path = NULL;
    struct error *err = NULL;

    if (!d->client || s->key->id_kind != ELF_ID_BUILD_ID)
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
                err = consider(s, path, "debuginfod", BY_ID);
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
    bool has_build_id = s->key->id_kind == ELF_ID_BUILD_ID && s->key->build_id_len >= 2;

    TRY(try_archives(s));
    for (size_t i = 0; i < b->symfs.count; i++) {
        const char *dir = b->symfs.data[i];
        if (s->path) {
            TRY(try_at(s, "symfs", BY_ID, "%s%s", dir, s->path));
            TRY(try_at(s, "symfs", BY_ID, "%s%s", dir, strrchr(s->path, '/')));
            TRY(try_at(s, "symfs", BY_ID, "%s%s.debug", dir, strrchr(s->path, '/')));
        }
        if (has_build_id) {
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
        TRY(try_at(s, "sysroot", BY_ID, "%s%s", b->sysroot, s->path));
    if (s->path && !b->no_host)
        TRY(try_at(s, "recorded path", BY_ID, "%s", s->path));
    if (has_build_id && *b->sysroot) {
        char *tree;
        if (asprintf(&tree, "%s/usr/lib/debug", b->sysroot) < 0)
            return error_no_memory();
        struct error *err = try_build_id_folder(s, "build-id folder", tree);
        free(tree);
        TRY(err);
    }
    if (has_build_id && !b->no_host)
        TRY(try_build_id_folder(s, "build-id folder", "/usr/lib/debug"));
    TRY(try_debuglink(s));
    if (has_build_id && b->home && !b->no_host) {
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

/* ---- the supplement that dwz split off debug files ---- */

/* Uses the file if it has the build ID that the link names. */
static struct error *try_supplement(struct search *s, const struct elf_links *links, char *path, const char *source)
{
    struct elf_identity id = {0};
    struct error *err = NULL;

    if (!path)
        return error_no_memory();
    int fd = s->files->supplement ? -1 : open_regular(path);
    if (fd >= 0) {
        err = elf_identity_read(fd, path, &id);
        if (!err && elf_identity_is(&id, ELF_ID_BUILD_ID, links->supplement_id, links->supplement_id_len)) {
            err = assign(&s->files->supplement, strdup(path));
            if (!err)
                err = assign(&s->files->supplement_source, strdup(source));
        }
        elf_identity_deinit(&id);
        close(fd);
    }
    free(path);
    if (err && err->code != ERROR_NO_MEMORY) {
        error_destroy(err);
        err = NULL;
    }
    return err;
}

__attribute__((format(printf, 1, 2))) static char *format(const char *fmt, ...)
{
    va_list ap;
    char *text;

    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    return n < 0 ? NULL : text;
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
        err = try_supplement(s, links, format("%s/%s", dir, links->supplement + (*links->supplement == '/')), source);
        if (!err)
            err = try_supplement(s, links, format("%s/.build-id/%.2s/%s.debug", dir, hex, hex + 2), source);
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
    return fd >= 0 && path ? try_supplement(s, links, path, "debuginfod") : NULL;
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
            err = assign(&f->supplement, strdup(m->name));
            if (!err)
                err = assign(&f->supplement_source, strdup("archive"));
            f->supplement_fd = m->fd;
        }
    }
    if (!err && !f->debug_fd)
        err = supplement_near(s, links, id.text);
    if (!err && !f->supplement && !s->b->no_host)
        err = try_supplement(s, links, format("/usr/lib/debug/.build-id/%.2s/%s.debug", id.text, id.text + 2),
                             "build-id folder");
    if (!err)
        err = supplement_from_debuginfod(s, links);
    if (!err && !f->supplement)
        err = assign(&f->supplement_source, strdup("missing"));
    return err;
}

static struct error *find_supplement(struct search *s)
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
        return assign(&files->problem, strdup("the trace has no build ID for it"));
    s.id = hex_of(key->build_id, key->build_id_len);
    s.path = file_path_of(key->path);
    err = search_places(&s);
    if (!err && files->binary) {
        free(files->problem); /* noted at a place before the right one */
        files->problem = NULL;
        if (!files->debug) {
            err = assign(&files->debug, strdup(files->binary));
            files->debug_fd = files->binary_fd;
        }
        if (files->debug && !strcmp(files->debug, files->binary)) {
            free(files->debug_source);
            files->debug_source = NULL;
        }
    } else if (!err && files->debug) {
        err = assign(&files->problem, strdup("only the debug file was found, not the binary"));
    } else if (!err && !files->problem) {
        err = assign(&files->problem,
                     format("not found by its path nor by its build ID%s%s", s.server_errno ? "; debuginfod: " : "",
                            s.server_errno ? strerror(s.server_errno) : ""));
    }
    if (!err && files->debug)
        err = find_supplement(&s);
    free(s.path);
    elf_links_deinit(&s.links);
    if (err)
        binary_files_deinit(files);
    return err;
}
