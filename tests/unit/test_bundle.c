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

#include "capture/archive/bundle.h"
#include "elf_fixture.h"
#include "formats/base/hex.h"
#include "formats/elf/identity.h"

struct target {
    uint64_t len_bytes;
};

static struct error *target_write(void *ctx, const void *data, size_t len_bytes)
{
    struct target *t = ctx;

    (void)data;
    t->len_bytes += len_bytes;
    return NULL;
}

static struct error *target_finish(void *ctx)
{
    (void)ctx;
    return NULL;
}

/* Archives one module; the messages, to be freed. */
static char *archive(const struct bundle_key *key, const struct bundle_place *place)
{
    struct target target = {0};
    const struct archive_sink sink = {target_write, target_finish, &target};
    struct bundle_options options = {.output = "made.tar"};
    struct bundle *b;
    uint32_t missing;
    char *text = NULL;
    size_t len;

    options.messages = open_memstream(&text, &len);
    OK(bundle_create(&options, &sink, &b));
    OK(bundle_add(b, key, place, 1, -1));
    OK(bundle_finish(b, &missing));
    bundle_destroy(b);
    fclose(options.messages);
    assert_int_equal(missing, strstr(text, "not archived") != NULL);
    return text;
}

/* Whether the module at the path is archived, and if not, whether the message says this. */
static bool archives(const struct bundle_key *key, const char *path, bool public_only, const char *why)
{
    const struct bundle_place place = {.path = path, .public_only = public_only};
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
static void test_contents(void **state)
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
    const struct bundle_place place = {.path = secret};
    char *text = archive(&key, &place);
    assert_non_null(strstr(text, "replaced"));
    assert_null(strstr(text, hex_of(other.build_id, other.build_id_len).text));
    free(text);
    /* Would be hashed for hours, if it were. */
    assert_int_equal(truncate(secret, (off_t)1 << 43), 0);
    const struct bundle_key long_key = {id.id_kind, id.build_id, id.build_id_len, UINT64_C(1) << 43};
    assert_false(archives(&long_key, secret, false, NULL));
}

static void test_what_is_opened(void **state)
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
static void test_public_only(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_contents, fixture_init, fixture_deinit),
        cmocka_unit_test_setup_teardown(test_what_is_opened, fixture_init, fixture_deinit),
        cmocka_unit_test_setup_teardown(test_public_only, fixture_init, fixture_deinit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
