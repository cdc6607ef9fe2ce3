/* SPDX-License-Identifier: Apache-2.0 */
/* What an archive takes from paths that a trace claims, and what its messages tell of files that lie there. */
#include "tests/unit/test.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/archive/allowance.h"
#include "capture/archive/bundle.h"
#include "formats/base/hex.h"
#include "formats/elf/identity.h"
#include "tests/toolchain/elf_fixture.h"

struct target {
    char data[1 << 20];
    uint64_t len_bytes;
};

static struct error *target_write(void *ctx, const void *data, size_t len_bytes)
{
    struct target *t = ctx;

    assert_true(len_bytes <= sizeof t->data - t->len_bytes);
    memcpy(t->data + t->len_bytes, data, len_bytes);
    t->len_bytes += len_bytes;
    return NULL;
}

static struct error *target_finish(void *ctx)
{
    (void)ctx;
    return NULL;
}

/* Archives one module; the messages, to be freed. `holds`, unless NULL: whether the archive has these bytes. */
static char *archive_of(const struct bundle_key *key, const struct bundle_place *places, uint32_t place_count,
                        uint64_t owner_bytes_max, const char *holds, bool *held)
{
    static struct target target;
    const struct archive_sink sink = {target_write, target_finish, &target};
    struct bundle_options options = {.output = "made.tar", .owner_bytes_max = owner_bytes_max};
    struct bundle *b;
    uint32_t missing;
    char *text = NULL;
    size_t len;

    target.len_bytes = 0;
    options.messages = open_memstream(&text, &len);
    OK(bundle_create(&options, &sink, &b));
    OK(bundle_add(b, key, places, place_count));
    OK(bundle_finish(b, &missing));
    bundle_destroy(b);
    fclose(options.messages);
    assert_in_range(missing, 0, 1);
    assert_true(!missing || strstr(text, "not archived"));
    if (holds)
        *held = memmem(target.data, target.len_bytes, holds, strlen(holds)) != NULL;
    return text;
}

static char *archive(const struct bundle_key *key, const struct bundle_place *place)
{
    return archive_of(key, place, 1, 0, NULL, NULL);
}

/* Whether the module at the path is archived, and if not, whether the message says this. */
static bool archives(const struct bundle_key *key, const char *path, bool public_only, const char *why)
{
    const struct bundle_place place = {.path = path, .fd = -1, .public_only = public_only};
    char *text = archive(key, &place);
    bool done = !strstr(text, "not archived");

    if (!done && why)
        assert_non_null(strstr(text, why));
    free(text);
    return done;
}

static void identify(const char *path, struct elf_identity *id)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    OK(elf_identity_read(fd, path, id));
    elf_identity_deinit(&(struct elf_identity){.segments = id->segments});
    close(fd);
}

/* A hash of what a path leads to would let whoever made the trace test his guesses of a file that only root may read. */
TEST_WITH(contents, fixture_init, fixture_deinit)
{
    const struct fixture *f = *state;
    char path[PATH_MAX], secret[PATH_MAX];
    struct elf_identity id;

    assert_true(fixture_run(f, "printf 'int f(int x){return x+1;}' >a.c && cc -shared -fPIC -Wl,--build-id=none -o a.so a.c &&"
                               " printf 'int f(int x){return x+2;}' >b.c && cc -shared -fPIC -Wl,--build-id=none -o b.so b.c"));
    snprintf(path, sizeof path, "%s/a.so", f->dir);
    identify(path, &id);
    assert_int_equal(id.id_kind, ELF_ID_CONTENT_HASH);
    struct bundle_key key = {id.id_kind, id.build_id, id.build_id_len, id.file_size};
    assert_true(archives(&key, path, false, NULL));
    key.file_size++;
    assert_false(archives(&key, path, false, "another size, or no build ID"));
    key.file_size = 0;
    assert_false(archives(&key, path, false, NULL));

    key.file_size = id.file_size;
    snprintf(secret, sizeof secret, "%s/b.so", f->dir);
    struct elf_identity other;
    identify(secret, &other);
    const struct bundle_place place = {.path = secret, .fd = -1};
    char *text = archive(&key, &place);
    assert_non_null(strstr(text, "replaced"));
    assert_null(strstr(text, hex_of(other.build_id, other.build_id_len).text));
    free(text);
    /* Would be hashed for hours, if it were. */
    assert_int_equal(truncate(secret, (off_t)1 << 43), 0);
    const struct bundle_key long_key = {id.id_kind, id.build_id, id.build_id_len, UINT64_C(1) << 43};
    assert_false(archives(&long_key, secret, false, NULL));
}

TEST_WITH(what_is_opened, fixture_init, fixture_deinit)
{
    const struct fixture *f = *state;
    const uint8_t id[20] = {1};
    const struct bundle_key key = {ELF_ID_BUILD_ID, id, sizeof id, 0};
    char path[PATH_MAX];

    assert_true(fixture_run(f, "mkfifo fifo && ln -s /proc/self/pagemap endless && ln -s /dev/zero device"));
    static const char *const names[] = {"fifo", "endless", "device"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", f->dir, names[i]);
        assert_false(archives(&key, path, false, "unreadable: Permission denied"));
    }
}

/* A build ID that a process forged does not open a file that the process's user may not read. */
TEST_WITH(public_only, fixture_init, fixture_deinit)
{
    const struct fixture *f = *state;
    char path[PATH_MAX];
    struct elf_identity id;

    assert_true(fixture_run(f, "printf 'int f(int x){return x+1;}' >a.c && cc -shared -fPIC -Wl,--build-id -o a.so a.c"));
    snprintf(path, sizeof path, "%s/a.so", f->dir);
    identify(path, &id);
    const struct bundle_key key = {id.id_kind, id.build_id, id.build_id_len, id.file_size};
    assert_int_equal(key.id_kind, ELF_ID_BUILD_ID);
    assert_int_equal(chmod(f->dir, 0711), 0);
    assert_int_equal(chmod(path, 0644), 0);
    assert_true(archives(&key, path, true, NULL));
    assert_int_equal(chmod(path, 0640), 0);
    assert_false(archives(&key, path, true, "unreadable: Permission denied"));
    assert_true(archives(&key, path, false, NULL));
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(chmod(f->dir, 0700), 0);
    assert_false(archives(&key, path, true, "unreadable: Permission denied"));
}

/* ---- several files with one build ID ---- */

enum { COPIES_MAX = 4 };
struct copy {
    const char *name;
    uid_t owner;
    mode_t mode;
};

/* The key of `real`, and places of the copies, which get their owners and modes. */
static struct bundle_key make_copies(const struct fixture *f, const struct copy *copies, uint32_t count,
                                     char paths[COPIES_MAX][PATH_MAX], struct bundle_place *places)
{
    static struct elf_identity id;

    assert_true(fixture_run(f, "printf 'int real_name(int x){return x+1;}' >r.c && sed s/real/forg/ r.c >f.c &&"
                               " for n in r f; do cc -shared -fPIC -Wl,--build-id=0x11223344 -o $n.so $n.c || exit; done &&"
                               " for n in real same; do cp r.so $n; done; for n in forged forged2; do cp f.so $n; done"));
    for (uint32_t i = 0; i < count; i++) {
        snprintf(paths[i], PATH_MAX, "%s/%s", f->dir, copies[i].name);
        assert_int_equal(chown(paths[i], copies[i].owner, copies[i].owner), 0);
        assert_int_equal(chmod(paths[i], copies[i].mode), 0);
        places[i] = (struct bundle_place){.path = paths[i], .fd = -1};
    }
    identify(paths[0], &id);
    return (struct bundle_key){id.id_kind, id.build_id, id.build_id_len, 0};
}

/* Whether the archive holds the real library, the forged one, or none: 'r', 'f', '-'. */
static char which(const struct fixture *f, const struct copy *copies, uint32_t count, const char *says)
{
    char paths[COPIES_MAX][PATH_MAX];
    struct bundle_place places[COPIES_MAX];
    struct bundle_key key = make_copies(f, copies, count, paths, places);
    bool real, forged;

    free(archive_of(&key, places, count, 0, "forg_name", &forged));
    char *text = archive_of(&key, places, count, 0, "real_name", &real);
    assert_false(real && forged);
    if (says) {
        if (!strstr(text, says))
            fail_msg("the message is %s", text);
    } else {
        assert_null(strstr(text, "not archived"));
    }
    free(text);
    return real ? 'r' : forged ? 'f' : '-';
}

/* A copy of a library with forged symbols does not stand for it, in whatever order they are met. */
TEST_WITH(forged, fixture_init, fixture_deinit)
{
    const struct fixture *f = *state;
    char both[2 * PATH_MAX];

    if (geteuid())
        skip();
    /* Root's is taken, and the message names both. */
    snprintf(both, sizeof both, "%s/forged (build ID 11223344): it has the build ID of %s/real,", f->dir, f->dir);
    assert_int_equal(which(f, (struct copy[]){{"forged", 1000, 0755}, {"real", 0, 0755}}, 2, both), 'r');
    assert_int_equal(which(f, (struct copy[]){{"real", 0, 0755}, {"forged", 1000, 0755}}, 2, both), 'r');
    assert_int_equal(which(f, (struct copy[]){{"same", 1000, 0755}, {"forged", 1000, 0755}, {"real", 0, 0644}}, 3, both), 'r');
    /* One that others may write to is nobody's word. */
    assert_int_equal(which(f, (struct copy[]){{"real", 0, 0755}, {"forged", 0, 0775}}, 2, both), 'r');
    /* None is taken if two users' differ, and if root has two. */
    snprintf(both, sizeof both, "%s/real (build ID 11223344): %s/forged has the same build ID", f->dir, f->dir);
    assert_int_equal(which(f, (struct copy[]){{"real", 1001, 0755}, {"forged", 1000, 0755}}, 2, both), '-');
    assert_int_equal(which(f, (struct copy[]){{"real", 0, 0755}, {"forged", 0, 0755}}, 2, both), '-');
    /* Equal copies are no contradiction. */
    assert_int_equal(which(f, (struct copy[]){{"real", 1001, 0755}, {"same", 1000, 0755}}, 2, NULL), 'r');
    assert_int_equal(which(f, (struct copy[]){{"forged", 1001, 0755}, {"forged2", 1001, 0755}}, 2, NULL), 'f');
}

/* The one that is left may be the forger's, if the trace says that one of another size had the build ID, too. */
TEST_WITH(forged_alone, fixture_init, fixture_deinit)
{
    const struct fixture *f = *state;
    static const struct copy copies[] = {{"forged", 1000, 0755}, {"real", 1001, 0755}};
    char paths[COPIES_MAX][PATH_MAX];
    struct bundle_place places[COPIES_MAX];
    bool forged;

    if (geteuid())
        skip();
    struct bundle_key key = make_copies(f, copies, 2, paths, places);
    assert_int_equal(unlink(paths[1]), 0);
    places[0].file_size = 15000;
    places[1].file_size = 15001;
    free(archive_of(&key, places, 2, 0, "forg_name", &forged));
    assert_false(forged);
    places[1].file_size = 15000;
    free(archive_of(&key, places, 2, 0, "forg_name", &forged));
    assert_true(forged);
}

/* A debug file that another user put beside root's library says nothing of it. */
TEST_WITH(forged_debug, fixture_init, fixture_deinit)
{
    const struct fixture *f = *state;
    static const struct copy copies[] = {{"real", 0, 0755}};
    char paths[COPIES_MAX][PATH_MAX], debug[PATH_MAX];
    struct bundle_place place;
    bool has;

    if (geteuid())
        skip();
    make_copies(f, copies, 1, paths, &place);
    assert_true(fixture_run(f, "objcopy --only-keep-debug f.so real.debug && objcopy --add-gnu-debuglink=real.debug r.so real"));
    snprintf(debug, sizeof debug, "%s/real.debug", f->dir);
    struct elf_identity id;
    identify(paths[0], &id);
    const struct bundle_key key = {id.id_kind, id.build_id, id.build_id_len, 0};
    free(archive_of(&key, &place, 1, 0, "forg_name", &has));
    assert_true(has); /* root's own */
    assert_int_equal(chown(debug, 1000, 1000), 0);
    free(archive_of(&key, &place, 1, 0, "forg_name", &has));
    assert_false(has);
    /* But of their own libraries they may say what they like. */
    assert_int_equal(chown(paths[0], 1000, 1000), 0);
    free(archive_of(&key, &place, 1, 0, "forg_name", &has));
    assert_true(has);
}

TEST_WITH(too_many_bytes, fixture_init, fixture_deinit)
{
    const struct fixture *f = *state;
    static const struct copy copies[] = {{"real", 1000, 0755}};
    char paths[COPIES_MAX][PATH_MAX];
    struct bundle_place place;
    bool has;

    if (geteuid())
        skip();
    struct bundle_key key = make_copies(f, copies, 1, paths, &place);
    char *text = archive_of(&key, &place, 1, 10000, "real_name", &has);
    assert_false(has);
    assert_non_null(strstr(text, "real: with it the files of user 1000 are more than the archive takes"));
    free(text);
    /* Root's do not count as theirs. */
    assert_int_equal(chown(paths[0], 0, 0), 0);
    free(archive_of(&key, &place, 1, 10000, "real_name", &has));
    assert_true(has);
}

TEST(allowance)
{
    struct allowance a;

    allowance_init(&a, 0);
    assert_true(allowance_take(&a, 7, ALLOWANCE_OWNER_BYTES - 1));
    assert_false(allowance_take(&a, 7, 2));
    assert_true(allowance_take(&a, 7, 1));
    assert_false(allowance_take(&a, 7, UINT64_MAX));
    for (uid_t owner = 8; owner < 7 + ALLOWANCE_ALL_BYTES / ALLOWANCE_OWNER_BYTES; owner++)
        assert_true(allowance_take(&a, owner, ALLOWANCE_OWNER_BYTES));
    assert_false(allowance_take(&a, 100, 1)); /* all together */
    assert_true(allowance_take(&a, 0, ALLOWANCE_ALL_BYTES));
    assert_false(allowance_take(&a, 0, 1));
    allowance_deinit(&a);
}
