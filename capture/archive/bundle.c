/* SPDX-License-Identifier: Apache-2.0 */
/* A binary is looked for where its process sees it, then on this host; what belongs to it likewise. */
#include "capture/archive/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/archive/pack.h"
#include "capture/host/messages.h"
#include "capture/host/procfs.h"
#include "capture/host/root.h"
#include "formats/base/buf.h"
#include "formats/base/hex.h"
#include "formats/base/intern.h"
#include "formats/base/printable.h"
#include "formats/elf/identity.h"
#include "formats/elf/links.h"

#define CLEAN_LINKS __attribute__((cleanup(elf_links_deinit))) = {0}

struct bundle {
    struct bundle_options o;
    struct pack *pack;
    struct intern known; /* identities that were dealt with: kind and id; supplements with kind 's' */
    uint32_t binaries, debug_files, supplements, missing;
};

struct error *bundle_create(const struct bundle_options *options, const struct archive_sink *sink,
                            struct bundle **out)
{
    struct bundle *b = calloc(1, sizeof *b);

    if (!b)
        return error_no_memory();
    b->o = *options;
    struct error *err = pack_create(options->output, sink, &b->pack);
    if (err) {
        free(b);
        return err;
    }
    *out = b;
    return NULL;
}

void bundle_destroy(struct bundle *b)
{
    if (!b)
        return;
    pack_destroy(b->pack);
    intern_deinit(&b->known);
    free(b);
}

/* ---- names ---- */

/* The path inside the archive, without a leading slash. One that would lead elsewhere, or is none, is left out. */
static const char *member_path(const char *path)
{
    const char *start = path + strspn(path, "/");

    if (!*start || strlen(start) > 4096)
        return "unnamed";
    for (const char *part = start; part; part = strchr(part, '/')) {
        part += *part == '/';
        size_t len = strcspn(part, "/");
        if (!len || !strncmp(part, "..", len) || (unsigned char)*part < 0x20)
            return "unnamed";
    }
    return start;
}

static struct error *tell_missing(struct bundle *b, const struct bundle_key *key, const char *path, const char *reason)
{
    struct buf line = {0};

    b->missing++;
    printable_put(&line, path);
    buf_printf(&line, " (%s%s): ", key->id_kind == ELF_ID_BUILD_ID ? "build ID " : key->id_len ? "content hash " : "",
               key->id_len ? hex_of(key->id, key->id_len).text : "no build ID");
    printable_put(&line, reason);
    if (!line.bad)
        messages_line(b->o.messages, "not archived: %s", buf_cstr(&line));
    bool bad = line.bad;
    buf_deinit(&line);
    return bad ? error_no_memory() : NULL;
}

/* ---- finding the file ---- */

enum verdict { ANOTHER_BUILD, TOO_LARGE, UNREADABLE, GONE };

/* The most telling of what was met: what comes first in the list above. */
struct why {
    enum verdict verdict;
    int os_errno;
    struct hex other;
};

static void note(struct why *why, enum verdict verdict, int os_errno)
{
    if (verdict < why->verdict) {
        why->verdict = verdict;
        why->os_errno = os_errno;
    }
}

/* The identity of an ELF file, of the kind that the key has: contents are not hashed for nothing. */
static struct error *identify(const struct bundle_key *key, const struct elf_file *f, struct elf_identity *id)
{
    if (!f->is_elf)
        return NULL;
    bool hash = key->id_kind == ELF_ID_CONTENT_HASH && f->len_bytes == key->file_size;
    return hash ? elf_identity_of(f, id) : elf_identity_of_headers(f, id);
}

/* Whether an open file is the module. */
static struct error *is_it(const struct bundle_key *key, int fd, const char *path, struct why *why, bool *yes)
{
    struct elf_identity id = {0};
    struct elf_file f;

    *yes = false;
    struct error *err = elf_file_open(fd, path, NULL, &f);
    uint64_t len_bytes = f.len_bytes;
    if (!err && len_bytes <= PACK_MEMBER_MAX)
        err = identify(key, &f, &id);
    elf_file_close(&f);
    *yes = !err && elf_identity_is(&id, key->id_kind, key->id, key->id_len);
    if (err) {
        note(why, UNREADABLE, err->os_errno);
    } else if (len_bytes > PACK_MEMBER_MAX) {
        note(why, TOO_LARGE, 0);
    } else if (!*yes) {
        if (why->verdict > ANOTHER_BUILD && id.id_kind == ELF_ID_BUILD_ID)
            why->other = hex_of(id.build_id, id.build_id_len);
        note(why, ANOTHER_BUILD, 0);
    }
    elf_identity_deinit(&id);
    if (err && err->code == ERROR_NO_MEMORY)
        return err;
    error_destroy(err);
    return NULL;
}

/* Takes `fd` if it is the module, closes it if not. */
static struct error *take(const struct bundle_key *key, int fd, const char *path, struct why *why, int *out)
{
    bool yes = false;

    if (fd < 0) {
        note(why, errno == ENOENT || errno == ENOTDIR || errno == ESRCH ? GONE : UNREADABLE, errno);
        return NULL;
    }
    struct error *err = is_it(key, fd, path, why, &yes);
    if (yes)
        *out = fd;
    else
        close(fd);
    return err;
}

static int open_place(const struct bundle_place *p, pid_t pid)
{
    return p->public_only ? root_open_public(pid, p->path) : root_open(pid, p->path);
}

static struct error *find_binary(const struct bundle_key *key, const struct bundle_place *places, uint32_t place_count,
                                 int held, struct why *why, int *out)
{
    static const struct procfs_file unknown; /* it is looked into anyway, wherever it comes from */

    *out = -1;
    if (held >= 0)
        TRY(take(key, fcntl(held, F_DUPFD_CLOEXEC, 3), places[0].path, why, out));
    for (uint32_t i = 0; *out < 0 && i < place_count; i++) {
        const struct bundle_place *p = &places[i];
        if (!p->pid)
            continue;
        /* By the mapping: serves deleted files, too. */
        TRY(take(key, procfs_open_mapping(p->pid, p->start, p->end, p->path, &unknown), p->path, why, out));
        if (*out < 0)
            TRY(take(key, open_place(p, p->pid), p->path, why, out));
    }
    for (uint32_t i = 0; *out < 0 && i < place_count; i++)
        TRY(take(key, open_place(&places[i], 0), places[i].path, why, out));
    if (*out < 0 && key->id_kind == ELF_ID_BUILD_ID && key->id_len >= 2) {
        struct hex hex = hex_of(key->id, key->id_len);
        char path[256];
        snprintf(path, sizeof path, "/usr/lib/debug/.build-id/%.2s/%s", hex.text, hex.text + 2);
        TRY(take(key, root_open(0, path), path, why, out));
    }
    return NULL;
}

/* ---- what belongs to it ---- */

/* A place for debug files: in the root of one process, or in ours. */
struct debug_search {
    pid_t pid;
    const char *folder; /* of the binary, without a slash at the end */
    int folder_len;
    const struct hex *hex;
    const struct bundle_key *key;
    const struct elf_links *links;
};

/* A debug file has the binary's build ID; without one of its own the link's CRC vouches for it. It is read for that. */
static struct error *take_debug(const struct debug_search *s, const char *path, bool by_link, int *out)
{
    struct elf_identity id = {0};
    struct elf_file f;

    if (*out >= 0)
        return NULL;
    int fd = root_open(s->pid, path);
    if (fd < 0)
        return NULL;
    struct error *err = elf_file_open(fd, path, NULL, &f);
    if (!err)
        err = elf_identity_of_headers(&f, &id);
    elf_file_close(&f);
    bool yes = !err && id.is_elf && id.file_size <= PACK_MEMBER_MAX &&
               ((s->key->id_kind == ELF_ID_BUILD_ID &&
                 elf_identity_is(&id, ELF_ID_BUILD_ID, s->key->id, s->key->id_len)) ||
                (by_link && !id.id_kind && id.file_size <= ELF_HASHED_BYTES_MAX &&
                 elf_crc_matches(fd, s->links->debug_crc)));
    elf_identity_deinit(&id);
    if (yes)
        *out = fd;
    else
        close(fd);
    if (err && err->code != ERROR_NO_MEMORY) {
        error_destroy(err);
        err = NULL;
    }
    return err;
}

static struct error *find_debug(const struct debug_search *s, int *out)
{
    static const struct {
        const char *before, *between;
    } forms[] = {{"", "/"}, {"", "/.debug/"}, {"/usr/lib/debug", "/"}};
    char *path;

    if (s->key->id_kind == ELF_ID_BUILD_ID && s->key->id_len >= 2) {
        if (asprintf(&path, "/usr/lib/debug/.build-id/%.2s/%s.debug", s->hex->text, s->hex->text + 2) < 0)
            return error_no_memory();
        struct error *err = take_debug(s, path, false, out);
        free(path);
        TRY(err);
    }
    for (size_t i = 0; s->links->debug && i < sizeof forms / sizeof *forms && *out < 0; i++) {
        if (asprintf(&path, "%s%.*s%s%s", forms[i].before, s->folder_len, s->folder, forms[i].between,
                     s->links->debug) < 0)
            return error_no_memory();
        struct error *err = take_debug(s, path, true, out);
        free(path);
        TRY(err);
    }
    return NULL;
}

static bool add_known(struct bundle *b, uint32_t kind, const uint8_t *id, uint32_t len, bool *added)
{
    uint8_t key[4 + ELF_BUILD_ID_MAX];

    len = len < ELF_BUILD_ID_MAX ? len : ELF_BUILD_ID_MAX;
    memcpy(key, &kind, 4);
    memcpy(key + 4, id, len);
    return intern_id(&b->known, key, 4 + len, added) != INTERN_NONE;
}

/* The supplement of a debug file found in the root of `pid`, into the archive. */
static struct error *add_supplement(struct bundle *b, pid_t pid, int debug_fd)
{
    struct elf_links links CLEAN_LINKS;
    struct error *err = NULL;
    bool added = false, early;
    char *path = NULL;
    int fd = -1;

    TRY(elf_links_read(debug_fd, &links));
    if (!links.supplement || !add_known(b, 's', links.supplement_id, links.supplement_id_len, &added) || !added)
        return NULL;
    struct hex hex = hex_of(links.supplement_id, links.supplement_id_len);
    const struct bundle_key key = {ELF_ID_BUILD_ID, links.supplement_id, links.supplement_id_len, 0};
    /* A link without a root is from the debug file's folder: distributions keep all in one of two. */
    for (int i = 0; !err && fd < 0 && i < 3; i++) {
        struct why why = {.verdict = GONE};
        int n = i == 0   ? asprintf(&path, "%s", links.supplement)
                : i == 1 ? asprintf(&path, "/usr/lib/debug/.build-id/%.2s/%s.debug", hex.text, hex.text + 2)
                         : asprintf(&path, "/usr/lib/debug/.dwz/%s",
                                    strrchr(links.supplement, '/') ? strrchr(links.supplement, '/') + 1
                                                                   : links.supplement);
        if (n < 0)
            return error_no_memory();
        err = take(&key, root_open(pid, path), path, &why, &fd);
        free(path);
    }
    if (!err && fd >= 0) {
        char member[3 * ELF_BUILD_ID_MAX];
        snprintf(member, sizeof member, ".build-id/%.2s/%s.debug", hex.text, hex.text + 2);
        err = pack_file(b->pack, member, fd, false, &early);
        b->supplements++;
    }
    if (fd >= 0)
        close(fd);
    return err;
}

/* Looks for the debug file, first where the process would, then on this host. */
static struct error *add_debug(struct bundle *b, const struct bundle_key *key, const struct hex *hex,
                               const struct bundle_place *places, uint32_t place_count, int binary,
                               const char *member_folder)
{
    struct elf_links links CLEAN_LINKS;
    struct error *err = NULL;
    int fd = -1;

    TRY(elf_links_read(binary, &links));
    struct debug_search s = {.hex = hex, .key = key, .links = &links};
    for (uint32_t i = 0; !err && fd < 0 && i < 2 * place_count; i++) {
        const struct bundle_place *p = &places[i % place_count];
        const char *slash = strrchr(p->path, '/');
        s.pid = i < place_count ? p->pid : 0;
        if (i < place_count && !s.pid)
            continue;
        s.folder = p->path;
        s.folder_len = slash ? (int)(slash - p->path) : 0;
        err = find_debug(&s, &fd);
    }
    if (!err && fd >= 0) {
        char *member;
        bool early;
        if (asprintf(&member, "%s/debug", member_folder) < 0) {
            err = error_no_memory();
        } else {
            err = pack_file(b->pack, member, fd, false, &early);
            free(member);
        }
        if (!err) {
            b->debug_files++;
            err = add_supplement(b, s.pid, fd);
        }
    }
    /* The binary may have its DWARF itself, and dwz treats that, too. */
    if (!err && fd < 0)
        err = add_supplement(b, place_count ? places[0].pid : 0, binary);
    if (fd >= 0)
        close(fd);
    return err;
}

/* ---- putting it in ---- */

/* perf's link from the build ID to the folder. */
static struct error *add_link(struct bundle *b, const struct hex *hex, const char *folder)
{
    char member[3 * ELF_BUILD_ID_MAX], *target;

    snprintf(member, sizeof member, ".build-id/%.2s/%s", hex->text, hex->text + 2);
    if (asprintf(&target, "../../%s", folder) < 0)
        return error_no_memory();
    struct error *err = pack_link(b->pack, member, target);
    free(target);
    return err;
}

static struct error *add_found(struct bundle *b, const struct bundle_key *key, const struct bundle_place *places,
                               uint32_t place_count, int fd)
{
    struct hex hex = hex_of(key->id, key->id_len);
    char *folder, *member = NULL;
    bool early = false;

    if (asprintf(&folder, "%s/%s", member_path(places[0].path), hex.text) < 0)
        return error_no_memory();
    struct error *err = asprintf(&member, "%s/elf", folder) < 0 ? error_no_memory() : NULL;
    /* What has no build ID is known by its contents: all of them. */
    if (!err)
        err = pack_file(b->pack, member, fd, b->o.strip_code && key->id_kind == ELF_ID_BUILD_ID, &early);
    if (!err && early)
        err = tell_missing(b, key, places[0].path, "it shrank while it was read");
    else if (!err)
        b->binaries++;
    if (!err && key->id_kind == ELF_ID_BUILD_ID && key->id_len >= 2)
        err = add_link(b, &hex, folder);
    if (!err)
        err = add_debug(b, key, &hex, places, place_count, fd, folder);
    free(member);
    free(folder);
    return err;
}

struct error *bundle_add(struct bundle *b, const struct bundle_key *key, const struct bundle_place *places,
                         uint32_t place_count, int held)
{
    struct why why = {.verdict = GONE};
    char reason[256];
    bool added;
    int fd = -1;

    if (!key->id_len || key->id_kind == ELF_ID_NONE || key->id_len > ELF_BUILD_ID_MAX)
        return tell_missing(b, key, places[0].path, "the capture holds nothing that identifies it");
    if (!add_known(b, key->id_kind, key->id, key->id_len, &added))
        return error_no_memory();
    if (!added)
        return NULL;
    struct error *err = find_binary(key, places, place_count, held, &why, &fd);
    if (!err && fd >= 0) {
        err = add_found(b, key, places, place_count, fd);
        close(fd);
        return err;
    }
    if (err)
        return err;
    switch (why.verdict) {
    case ANOTHER_BUILD:
        snprintf(reason, sizeof reason, "replaced: what is there now has %s",
                 why.other.text[0] ? why.other.text : "another size, or no build ID");
        break;
    case TOO_LARGE:
        snprintf(reason, sizeof reason, "larger than 4 GiB");
        break;
    case UNREADABLE:
        snprintf(reason, sizeof reason, "unreadable: %s", strerror(why.os_errno));
        break;
    default:
        snprintf(reason, sizeof reason, "gone");
        break;
    }
    return tell_missing(b, key, places[0].path, reason);
}

struct error *bundle_add_vdso(struct bundle *b, const struct bundle_key *key, const void *image, uint64_t len_bytes)
{
    struct hex hex = hex_of(key->id, key->id_len);
    char member[3 * ELF_BUILD_ID_MAX];
    bool added;

    if (key->id_kind != ELF_ID_BUILD_ID || key->id_len < 2)
        return NULL;
    if (!add_known(b, key->id_kind, key->id, key->id_len, &added))
        return error_no_memory();
    if (!added)
        return NULL;
    snprintf(member, sizeof member, "[vdso]/%s/vdso", hex.text);
    TRY(pack_bytes(b->pack, member, image, len_bytes));
    *strrchr(member, '/') = 0;
    return add_link(b, &hex, member);
}

struct error *bundle_finish(struct bundle *b, uint32_t *missing)
{
    TRY(pack_finish(b->pack));
    *missing = b->missing;
    if (b->o.quiet)
        return NULL;
    messages_write(b->o.messages, "Archived %s, %s and %s in %s (%.1f MiB).\n",
                   messages_count(b->binaries, "binary").text, messages_count(b->debug_files, "debug file").text,
                   messages_count(b->supplements, "supplement").text, strcmp(b->o.output, "-") ? b->o.output : "standard output",
            (double)pack_size(b->pack) / (1 << 20));
    if (b->missing)
        messages_write(b->o.messages,
                       "%s could not be found; frames in such modules will have no names, and stacks may end there.\n",
                       messages_count(b->missing, "module").text);
    return NULL;
}
