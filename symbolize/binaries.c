/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks for the files of a module in the places where tools keep them, nearest
 * to the user's wish first, and believes only the build ID.
 *
 * One module may need two files: the binary (code and .eh_frame) and a debug file
 * (DWARF, symbols) that was split off it. Every place is therefore only a source
 * of candidates; what a candidate is good for is read from the file itself. The
 * search stops when both needs are met, or the places run out.
 */
#include "symbolize/binaries.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gelf.h>
#include <lzma.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/vec.h"
#include "formats/elf/identity.h"

/* libdebuginfod, opened only when it is asked for: nobody needs it installed to read a trace. */
struct debuginfod {
    void *client;
    void *(*begin)(void);
    void (*end)(void *client);
    int (*find_executable)(void *client, const unsigned char *build_id, int len, char **path);
    int (*find_debuginfo)(void *client, const unsigned char *build_id, int len, char **path);
};

struct binaries {
    VEC(char *) symfs;
    char *sysroot; /* "" for "/" */
    char *home;    /* whose ~/.debug is perf's cache; NULL when unknown */
    bool no_host;
    struct debuginfod debuginfod;
};

/* What a file turned out to hold. */
enum { HAS_CODE = 1, HAS_DWARF = 2, HAS_SYMTAB = 4 };

struct search {
    struct binaries *b;
    const struct binary_key *key;
    struct binary_files *files;
    char *path; /* the recorded one, without " (deleted)"; NULL when it names no file */
    char id_hex[2 * ELF_BUILD_ID_MAX + 1];
    int debug_holds;          /* HAS_* of files->debug */
    char *debuglink;          /* .gnu_debuglink of the binary */
    uint32_t debuglink_crc;
};

static void hex_of(const uint8_t *id, uint32_t len, char out[2 * ELF_BUILD_ID_MAX + 1])
{
    static const char digits[] = "0123456789abcdef";
    uint32_t n = len < ELF_BUILD_ID_MAX ? len : ELF_BUILD_ID_MAX;

    for (uint32_t i = 0; i < n; i++) {
        out[2 * i] = digits[id[i] >> 4];
        out[2 * i + 1] = digits[id[i] & 15];
    }
    out[2 * n] = 0;
}

/* The library stays loaded: curl, below it, has global state that unloading would leak. */
static void debuginfod_close(struct debuginfod *d)
{
    if (d->client)
        d->end(d->client);
    *d = (struct debuginfod){0};
}

static struct error *debuginfod_open(struct debuginfod *d)
{
    const char *urls = getenv("DEBUGINFOD_URLS");

    if (!urls || !*urls)
        return error_create(ERROR_USAGE, "debuginfod was asked for, but DEBUGINFOD_URLS names no server");
    void *library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return error_create(ERROR_UNSUPPORTED, "debuginfod was asked for, but libdebuginfod.so.1 is not installed");
    d->begin = (void *(*)(void))dlsym(library, "debuginfod_begin");
    d->end = (void (*)(void *))dlsym(library, "debuginfod_end");
    d->find_executable = (int (*)(void *, const unsigned char *, int, char **))
        dlsym(library, "debuginfod_find_executable");
    d->find_debuginfo = (int (*)(void *, const unsigned char *, int, char **))
        dlsym(library, "debuginfod_find_debuginfo");
    if (d->begin && d->end && d->find_executable && d->find_debuginfo && (d->client = d->begin()))
        return NULL;
    debuginfod_close(d);
    return error_create(ERROR_UNSUPPORTED, "libdebuginfod.so.1 cannot be used");
}

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
    const char *home = getenv("HOME");
    if (home && *home && !(b->home = strdup(home)))
        goto no_memory;
    if (options->debuginfod)
        err = debuginfod_open(&b->debuginfod);
    else
        unsetenv("DEBUGINFOD_URLS"); /* libdw would ask by itself */
    if (!err) {
        elf_version(EV_CURRENT);
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
    for (size_t i = 0; i < b->symfs.count; i++)
        free(b->symfs.data[i]);
    VEC_DEINIT(&b->symfs);
    free(b->sysroot);
    free(b->home);
    free(b);
}

void binary_files_deinit(struct binary_files *files)
{
    free(files->binary);
    free(files->debug);
    free(files->source);
    free(files->problem);
    *files = (struct binary_files){0};
}

/* What an ELF file holds, and its debug link. */
static int contents_of(int fd, char **debuglink, uint32_t *crc)
{
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    size_t names;
    int holds = 0;

    if (!elf || elf_getshdrstrndx(elf, &names)) {
        elf_end(elf);
        return HAS_CODE; /* no section headers: stripped of everything but what runs */
    }
    bool sections = false;
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
        GElf_Shdr s;
        const char *name;
        if (!gelf_getshdr(scn, &s) || !(name = elf_strptr(elf, names, s.sh_name)))
            continue;
        sections = true;
        if (s.sh_type == SHT_PROGBITS && (s.sh_flags & SHF_EXECINSTR))
            holds |= HAS_CODE;
        else if (s.sh_type == SHT_PROGBITS && (!strcmp(name, ".debug_info") || !strcmp(name, ".zdebug_info")))
            holds |= HAS_DWARF;
        else if (s.sh_type == SHT_SYMTAB)
            holds |= HAS_SYMTAB;
        else if (!strcmp(name, ".gnu_debuglink") && debuglink && !*debuglink) {
            Elf_Data *data = elf_rawdata(scn, NULL);
            const char *nul = data && data->d_buf ? memchr(data->d_buf, 0, data->d_size) : NULL;
            size_t at = nul ? ((size_t)(nul - (const char *)data->d_buf) + 4) & ~(size_t)3 : 0;
            /* A link is a file name; one with directories would lead out of the places it may be in. */
            if (nul && at + 4 <= data->d_size && *(const char *)data->d_buf && !strchr(data->d_buf, '/')) {
                memcpy(crc, (const char *)data->d_buf + at, 4);
                *debuglink = strdup(data->d_buf);
            }
        }
    }
    elf_end(elf);
    return sections ? holds : HAS_CODE;
}

/* The CRC of .gnu_debuglink is the common CRC-32. */
static bool crc_matches(int fd, uint32_t expected)
{
    static const size_t chunk = 1 << 16;
    uint8_t *buffer = malloc(chunk);
    uint32_t crc = 0;
    off_t at = 0;
    ssize_t n = -1;

    while (buffer && (n = pread(fd, buffer, chunk, at)) > 0) {
        crc = lzma_crc32(buffer, (size_t)n, crc);
        at += n;
    }
    free(buffer);
    return n == 0 && crc == expected;
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
    char found[2 * ELF_BUILD_ID_MAX + 1];
    char *text;
    int n;

    if (s->files->problem)
        return NULL; /* the first place is the most telling one */
    hex_of(id->build_id, id->build_id_len, found);
    if (id->id_kind == s->key->id_kind)
        n = asprintf(&text, "%s differs: %s has %s, the trace has %s",
                     id->id_kind == ELF_ID_BUILD_ID ? "build ID" : "content", path, found, s->id_hex);
    else if (id->id_kind == ELF_ID_BUILD_ID)
        n = asprintf(&text, "build ID differs: %s has %s, the trace has none but content hash %s", path, found,
                     s->id_hex);
    else
        n = asprintf(&text, "build ID differs: %s has none, the trace has %s", path, s->id_hex);
    return assign(&s->files->problem, n < 0 ? NULL : text);
}

enum how { BY_ID, BY_LINK };

/* Looks at one file and takes of it what is still needed. */
static struct error *consider(struct search *s, const char *path, const char *source, enum how how)
{
    struct elf_identity id = {0};
    struct stat st;
    struct error *err = NULL;
    uint32_t crc = 0;
    char *link = NULL;

    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode))
        goto out;
    err = elf_identity_read(fd, path, &id);
    if (err) { /* an unreadable candidate is no candidate */
        bool fatal = err->code == ERROR_NO_MEMORY;
        if (!fatal) {
            error_destroy(err);
            err = NULL;
        }
        goto out;
    }
    bool same = id.id_kind == s->key->id_kind && id.build_id_len == s->key->build_id_len &&
                !memcmp(id.build_id, s->key->build_id, id.build_id_len);
    /* A debug file without a build ID of its own is vouched for by the link's CRC. */
    if (!same && how == BY_LINK && id.is_elf && id.id_kind == ELF_ID_CONTENT_HASH)
        same = crc_matches(fd, s->debuglink_crc);
    if (!same) {
        err = note_mismatch(s, path, &id);
        goto out;
    }
    if (!id.is_elf)
        goto out;
    int holds = contents_of(fd, how == BY_ID ? &link : NULL, &crc);
    bool used = false;
    if ((holds & HAS_CODE) && !s->files->binary && how == BY_ID) {
        err = assign(&s->files->binary, strdup(path));
        used = true;
        free(s->debuglink);
        s->debuglink = link;
        s->debuglink_crc = crc;
        link = NULL;
    }
    int symbols = holds & (HAS_DWARF | HAS_SYMTAB);
    bool better = (symbols & HAS_DWARF) > (s->debug_holds & HAS_DWARF) || (symbols && !s->debug_holds);
    if (!err && better) {
        err = assign(&s->files->debug, strdup(path));
        s->debug_holds = symbols;
        used = true;
    }
    if (!err && used && !s->files->source)
        err = assign(&s->files->source, strdup(source));
out:
    free(link);
    elf_identity_deinit(&id);
    close(fd);
    return err;
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
    const char *hex = s->id_hex, *rest = s->id_hex + 2;

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

    if (!s->debuglink || !binary || done(s))
        return NULL;
    const char *slash = strrchr(binary, '/');
    int dir = slash ? (int)(slash - binary) : 1;
    if (!slash)
        binary = ".";
    char *link = s->debuglink;
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
        TRY(try_debuglink(s)); /* of a binary that only this place had */
    }
    return done(s) ? NULL : try_debuginfod(s);
}

/* The recorded path as a path of a file, or NULL: "[vdso]", "//anon" and "memfd:" are none. */
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
        return assign(&files->problem, strdup("the trace holds no build ID of it"));
    hex_of(key->build_id, key->build_id_len, s.id_hex);
    s.path = file_path_of(key->path);
    err = search_places(&s);
    if (!err && files->binary) {
        free(files->problem); /* of a place that came before the right one */
        files->problem = NULL;
        if (!files->debug)
            err = assign(&files->debug, strdup(files->binary));
    } else if (!err && files->debug) {
        err = assign(&files->problem, strdup("only the debug file was found, not the binary"));
    } else if (!err && !files->problem) {
        err = assign(&files->problem, strdup("not found by its path nor by its build ID"));
    }
    free(s.path);
    free(s.debuglink);
    if (err)
        binary_files_deinit(files);
    return err;
}
