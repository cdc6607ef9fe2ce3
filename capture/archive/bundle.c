/* SPDX-License-Identifier: Apache-2.0 */
/* A binary is looked for where its process sees it, then on this host; what belongs to it likewise. */
#include "capture/archive/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/archive/allowance.h"
#include "capture/archive/claims.h"
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
    struct allowance packed, compared;
    uint32_t binaries, debug_files, supplements, missing;
};

struct error *bundle_create(const struct bundle_options *options, const struct archive_sink *sink,
                            struct bundle **out)
{
    struct bundle *b = calloc(1, sizeof *b);

    if (!b)
        return error_no_memory();
    b->o = *options;
    allowance_init(&b->packed, options->owner_bytes_max);
    allowance_init(&b->compared, options->owner_bytes_max);
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
    allowance_deinit(&b->packed);
    allowance_deinit(&b->compared);
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

static struct error *tell_left_out(struct bundle *b, const struct bundle_key *key, const char *path, const char *reason)
{
    struct buf line = {0};

    printable_put(&line, path);
    if (key->id_len)
        buf_printf(&line, " (%s %s): ", elf_id_kind_text(key->id_kind), hex_of(key->id, key->id_len).text);
    else
        buf_put_str(&line, " (no build ID): ");
    printable_put(&line, reason);
    if (!line.bad)
        messages_line(b->o.messages, "not archived: %s", buf_cstr(&line));
    bool bad = line.bad;
    buf_deinit(&line);
    return bad ? error_no_memory() : NULL;
}

static struct error *tell_missing(struct bundle *b, const struct bundle_key *key, const char *path, const char *reason)
{
    b->missing++;
    return tell_left_out(b, key, path, reason);
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
    bool hash = elf_identity_hashed_bytes(key->id_kind, f->len_bytes) && f->len_bytes == key->file_size;
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

/* Takes `fd` if it is the module, closes it if not. A file that is among the claims already is not looked into again. */
static struct error *take(const struct bundle_key *key, const struct claims *known, int fd, const char *path,
                          struct why *why, int *out)
{
    struct error *err = NULL;
    bool yes;

    if (fd < 0) {
        note(why, errno == ENOENT || errno == ENOTDIR || errno == ESRCH ? GONE : UNREADABLE, errno);
        return NULL;
    }
    yes = known && claims_have(known, fd);
    if (!yes)
        err = is_it(key, fd, path, why, &yes);
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

/* The file at a place, or -1 in `*out`: as it was held open, in its process, or if that has ended, on this host. */
static struct error *find_at(const struct bundle_key *key, const struct bundle_place *p,
                             const struct claims *known, struct why *why, int *out)
{
    static const struct procfs_file unknown; /* it is looked into anyway, wherever it comes from */

    *out = -1;
    if (p->fd >= 0)
        TRY(take(key, known, fcntl(p->fd, F_DUPFD_CLOEXEC, 3), p->path, why, out));
    /* By the mapping: serves deleted files, too. */
    if (*out < 0 && p->pid)
        TRY(take(key, known, procfs_open_mapping(p->pid, p->start, p->end, p->path, &unknown), p->path, why, out));
    if (*out < 0 && p->pid)
        TRY(take(key, known, open_place(p, p->pid), p->path, why, out));
    if (*out < 0)
        TRY(take(key, known, open_place(p, 0), p->path, why, out));
    return NULL;
}

/* Every file that claims to be the module. */
static struct error *find_binary(const struct bundle_key *key, const struct bundle_place *places, uint32_t place_count,
                                 struct why *why, struct claims *claims)
{
    int fd;

    for (uint32_t i = 0; i < place_count; i++) {
        TRY(find_at(key, &places[i], claims, why, &fd));
        if (fd >= 0)
            claims_add(claims, fd, i);
        claims_expect(claims, places[i].file_size, i);
    }
    if (claims->vouched.fd < 0 && claims->other.fd < 0 && key->id_kind == ELF_ID_BUILD_ID && key->id_len >= 2) {
        struct hex hex = hex_of(key->id, key->id_len);
        char path[256];
        snprintf(path, sizeof path, "/usr/lib/debug/.build-id/%.2s/%s", hex.text, hex.text + 2);
        fd = -1;
        TRY(take(key, NULL, root_open(0, path), path, why, &fd));
        if (fd >= 0)
            claims_add(claims, fd, 0);
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
    const struct claim *binary;
    const struct elf_links *links;
};

/*
 * A debug file has the binary's build ID; without one of its own the link's CRC vouches for it, and it is read for that.
 * The process's root may be one that its user made, so the file's owner counts, too.
 */
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
    bool yes = !err && claims_may_describe(s->binary, fd) && id.is_elf && id.file_size <= PACK_MEMBER_MAX &&
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

/*
 * Packs a file whole, unless its owner's files are too many: then a message says so. Stores in `*packed` whether it did,
 * and in `*ended_early` as pack_file().
 */
static struct error *put(struct bundle *b, const char *member, const char *path, int fd, bool strip, bool *packed,
                         bool *ended_early)
{
    struct stat st;

    *packed = *ended_early = false;
    if (fstat(fd, &st))
        return error_file(errno, path, "cannot be looked at");
    if (!allowance_take(&b->packed, st.st_uid, (uint64_t)st.st_size)) {
        messages_line(b->o.messages, "not archived: %s: with it the files of user %u are more than the archive takes",
                      path, st.st_uid);
        return NULL;
    }
    *packed = true;
    return pack_file(b->pack, member, fd, strip, ended_early);
}

/* The supplement of a debug file found in the root of `pid`, into the archive. */
static struct error *add_supplement(struct bundle *b, pid_t pid, int debug_fd, const struct claim *binary)
{
    struct elf_links links CLEAN_LINKS;
    struct error *err = NULL;
    bool added = false, early, packed;
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
        err = take(&key, NULL, root_open(pid, path), path, &why, &fd);
        free(path);
        if (!err && fd >= 0 && !claims_may_describe(binary, fd)) {
            close(fd);
            fd = -1;
        }
    }
    if (!err && fd >= 0) {
        char member[3 * ELF_BUILD_ID_MAX];
        snprintf(member, sizeof member, ".build-id/%.2s/%s.debug", hex.text, hex.text + 2);
        err = put(b, member, links.supplement, fd, false, &packed, &early);
        b->supplements += packed;
    }
    if (fd >= 0)
        close(fd);
    return err;
}

/* Looks for the debug file, first where the binary's process would, then on this host. */
static struct error *add_debug(struct bundle *b, const struct bundle_key *key, const struct hex *hex,
                               const struct bundle_place *place, const struct claim *binary, const char *member_folder)
{
    struct elf_links links CLEAN_LINKS;
    const char *slash = strrchr(place->path, '/');
    struct debug_search s = {.hex = hex, .key = key, .links = &links, .binary = binary, .pid = place->pid,
                             .folder = place->path, .folder_len = slash ? (int)(slash - place->path) : 0};
    struct error *err;
    int fd = -1;

    TRY(elf_links_read(binary->fd, &links));
    err = find_debug(&s, &fd);
    if (!err && fd < 0 && s.pid) {
        s.pid = 0;
        err = find_debug(&s, &fd);
    }
    if (!err && fd >= 0) {
        char *member;
        bool early, packed = false;
        if (asprintf(&member, "%s/debug", member_folder) < 0) {
            err = error_no_memory();
        } else {
            err = put(b, member, place->path, fd, false, &packed, &early);
            free(member);
        }
        b->debug_files += packed;
        if (!err && packed)
            err = add_supplement(b, s.pid, fd, binary);
    }
    /* The binary may have its DWARF itself, and dwz treats that, too. */
    if (!err && fd < 0)
        err = add_supplement(b, place->pid, binary->fd, binary);
    if (fd >= 0)
        close(fd);
    return err;
}

/* ---- putting it in ---- */

/* perf's link from the build ID to the folder, by which also a hash is found in an unpacked archive. */
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

static struct error *add_found(struct bundle *b, const struct bundle_key *key, const struct bundle_place *place,
                               const struct claim *binary)
{
    struct hex hex = hex_of(key->id, key->id_len);
    char *folder, *member = NULL;
    bool early = false, packed = false;

    if (asprintf(&folder, "%s/%s", member_path(place->path), hex.text) < 0)
        return error_no_memory();
    struct error *err = asprintf(&member, "%s/elf", folder) < 0 ? error_no_memory() : NULL;
    /* What has no build ID is known by its contents: all of them. */
    if (!err)
        err = put(b, member, place->path, binary->fd, b->o.strip_code && key->id_kind == ELF_ID_BUILD_ID, &packed, &early);
    if (!err && early)
        err = tell_missing(b, key, place->path, "it shrank while it was read");
    else if (!err)
        b->binaries += packed;
    b->missing += !packed;
    if (!err && packed && key->id_len >= 2)
        err = add_link(b, &hex, folder);
    if (!err && packed)
        err = add_debug(b, key, &hex, place, binary, folder);
    free(member);
    free(folder);
    return err;
}

/* The reason why no file was found. */
static struct error *tell_why(struct bundle *b, const struct bundle_key *key, const char *path, const struct why *why)
{
    char reason[256];

    switch (why->verdict) {
    case ANOTHER_BUILD:
        snprintf(reason, sizeof reason, "replaced: what is there now has %s",
                 why->other.text[0] ? why->other.text : "another size, or no build ID");
        break;
    case TOO_LARGE:
        snprintf(reason, sizeof reason, "larger than 4 GiB");
        break;
    case UNREADABLE:
        snprintf(reason, sizeof reason, "unreadable: %s", strerror(why->os_errno));
        break;
    default:
        snprintf(reason, sizeof reason, "gone");
        break;
    }
    return tell_missing(b, key, path, reason);
}

/* Two files have one build ID and other contents. `taken`: the first one is in the archive. */
static struct error *tell_contested(struct bundle *b, const struct bundle_key *key, const char *one, const char *another,
                                    bool taken)
{
    char *reason;

    if (asprintf(&reason, taken ? "it has the build ID of %s, which is root's, and other contents"
                                : "%s has the same build ID and other contents, or they could not be compared",
                 taken ? one : another) < 0)
        return error_no_memory();
    struct error *err = taken ? tell_left_out(b, key, another, reason) : tell_missing(b, key, one, reason);
    free(reason);
    return err;
}

struct error *bundle_add(struct bundle *b, const struct bundle_key *key, const struct bundle_place *places,
                         uint32_t place_count)
{
    struct why why = {.verdict = GONE};
    struct claims claims;
    uint32_t one, another;
    bool added, contested;

    if (!key->id_len || key->id_kind == ELF_ID_NONE || key->id_len > ELF_BUILD_ID_MAX)
        return tell_missing(b, key, places[0].path, "the capture holds nothing that identifies it");
    if (!add_known(b, key->id_kind, key->id, key->id_len, &added))
        return error_no_memory();
    if (!added)
        return NULL;
    claims_init(&claims, &b->compared);
    struct error *err = find_binary(key, places, place_count, &why, &claims);
    if (!err) {
        const struct claim *chosen = claims_choose(&claims, &contested, &one, &another);
        if (contested)
            err = tell_contested(b, key, places[one].path, places[another].path, chosen != NULL);
        else if (!chosen)
            err = tell_why(b, key, places[0].path, &why);
        if (!err && chosen)
            err = add_found(b, key, &places[chosen->place], chosen);
    }
    claims_deinit(&claims);
    return err;
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
