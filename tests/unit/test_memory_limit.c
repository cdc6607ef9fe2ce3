/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of memory that cgroups of both kinds set, and what is none. */
#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/host/memory_limit.h"

static char root[] = "/tmp/test_memory_limit.XXXXXX";

static void put(const char *name, const char *text)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s", root, name);
    if (!text) {
        assert_int_equal(mkdir(path, 0700), 0);
        return;
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static int remove_root(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

TEST_WITH(limits, NULL, remove_root)
{
    const char *unified = "36 25 0:32 / /u rw - cgroup2 cgroup2 rw\n", *older = "35 31 0:31 / /cpu rw - cgroup cgroup rw,cpu\n"
                          "37 31 0:32 / /m rw - cgroup cgroup rw,memory\n";
    char both[512];

    assert_non_null(mkdtemp(root));
    put("u", NULL);
    put("u/a", NULL);
    put("u/a/b", NULL);
    put("u/a/b/memory.max", "max\n");
    put("u/a/memory.max", "4194304\n");
    put("m", NULL);
    put("m/x", NULL);
    put("m/memory.limit_in_bytes", "9223372036854771712\n");
    put("m/x/memory.limit_in_bytes", "1048576\n");
    assert_int_equal(memory_limit_by(unified, "0::/a/b\n", root), 4194304); /* of the one above */
    assert_int_equal(memory_limit_by(unified, "0::/\n", root), UINT64_MAX);
    assert_int_equal(memory_limit_by(unified, "0::/gone\n", root), UINT64_MAX);
    assert_int_equal(memory_limit_by(older, "5:cpu:/a\n4:memory:/x\n0::/a\n", root), 1048576);
    assert_int_equal(memory_limit_by(older, "4:memory:/y\n", root), 9223372036854771712u);
    snprintf(both, sizeof both, "%s%s", older, unified);
    assert_int_equal(memory_limit_by(both, "4:memory:/x\n0::/a/b\n", root), 1048576);
    assert_int_equal(memory_limit_by(both, "4:memory:/\n0::/a/b\n", root), 4194304);
    assert_int_equal(memory_limit_by("", "0::/a\n", root), UINT64_MAX);
    assert_int_equal(memory_limit_by(unified, "", root), UINT64_MAX);
}
