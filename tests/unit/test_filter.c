/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes a filter by command name and by cgroup lets through. */
#include "tests/unit/test.h"

#include <string.h>

#include "capture/process/filter.h"

static const char mounts[] =
    "24 30 0:22 / /sys rw,nosuid - sysfs sysfs rw\n"
    "35 24 0:30 / /sys/fs/cgroup/cpu rw shared:12 - cgroup cgroup rw,cpu\n"
    "36 24 0:31 / /sys/fs/cgroup/unified rw,nosuid shared:10 master:2 - cgroup2 cgroup2 rw\n";

static void refused(struct error *err, enum error_code code)
{
    assert_non_null(err);
    assert_int_equal(err->code, code);
    error_destroy(err);
}

TEST(comms)
{
    struct filter f = {0};

    assert_true(filter_is_empty(&f));
    OK(filter_add_comms(&f, "python3,a-name-longer-than-that"));
    assert_false(filter_is_empty(&f));
    assert_string_equal(f.comms.data[1], "a-name-longer-than-that");
    OK(filter_add_comms(&f, "more"));
    assert_int_equal(f.comms.count, 3);
    refused(filter_add_comms(&f, ""), ERROR_USAGE);
    refused(filter_add_comms(&f, "a,,b"), ERROR_USAGE);
    refused(filter_add_comms(&f, "a,"), ERROR_USAGE);
    filter_deinit(&f);
}

/* Where there are older hierarchies only, it is that of systemd, or of memory. */
TEST(older_cgroups)
{
    static const char memory[] = "35 24 0:30 / /sys/fs/cgroup/cpu rw shared:12 - cgroup cgroup rw,cpu\n"
                                 "36 24 0:31 / /sys/fs/cgroup/mem rw,nosuid - cgroup cgroup rw,memory\n",
                      named[] = "36 24 0:31 / /sys/fs/cgroup/mem rw,nosuid - cgroup cgroup rw,memory\n"
                                "37 24 0:32 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n";
    struct filter f = {0};

    OK(filter_add_cgroups_by(&f, "/sys/fs/cgroup/mem/app", memory));
    assert_string_equal(f.mount, "/sys/fs/cgroup/mem");
    assert_true(filter_has_path(&f, "/app/worker"));
    refused(filter_add_cgroups_by(&f, "/sys/fs/cgroup/cpu/app", memory), ERROR_USAGE);
    filter_deinit(&f);
    f = (struct filter){0};
    OK(filter_add_cgroups_by(&f, "/sys/fs/cgroup/systemd/app.service,/b", named));
    assert_string_equal(f.mount, "/sys/fs/cgroup/systemd");
    assert_true(filter_has_path(&f, "/app.service"));
    assert_true(filter_has_path(&f, "/b"));
    filter_deinit(&f);
}

TEST(cgroups)
{
    struct filter f = {0};

    OK(filter_add_cgroups_by(&f, "/system.slice/app.service,/sys/fs/cgroup/unified/user.slice/", mounts));
    assert_true(filter_has_path(&f, "/system.slice/app.service"));
    assert_true(filter_has_path(&f, "/system.slice/app.service/worker"));
    assert_false(filter_has_path(&f, "/system.slice/app.service2"));
    assert_false(filter_has_path(&f, "/system.slice"));
    assert_true(filter_has_path(&f, "/user.slice/user-1000.slice"));
    assert_false(filter_has_path(&f, "/"));
    assert_false(filter_has_path(&f, NULL));
    filter_deinit(&f);
    /* The root holds everything; a path that only begins like the mount's lies within the hierarchy. */
    f = (struct filter){0};
    OK(filter_add_cgroups_by(&f, "/sys/fs/cgroup/unified", mounts));
    assert_true(filter_has_path(&f, "/"));
    assert_true(filter_has_path(&f, "/a/b"));
    filter_deinit(&f);
    f = (struct filter){0};
    OK(filter_add_cgroups_by(&f, "/sys/fs/cgroup/unified2", mounts));
    assert_true(filter_has_path(&f, "/sys/fs/cgroup/unified2/a"));
    assert_string_equal(f.mount, "/sys/fs/cgroup/unified");
    /* An older hierarchy is told apart from a path in the unified one that begins alike. */
    refused(filter_add_cgroups_by(&f, "/sys/fs/cgroup/cpu/app", mounts), ERROR_USAGE);
    refused(filter_add_cgroups_by(&f, "/a,/sys/fs/cgroup/cpu,/b", mounts), ERROR_USAGE);
    size_t before = f.cgroups.count;
    OK(filter_add_cgroups_by(&f, "/sys/fs/cgroup/cpus,/no/such.service", mounts));
    assert_int_equal(f.cgroups.count, before + 2);
    assert_false(filter_has_cgroup(&f, before + 1));
    refused(filter_add_cgroups_by(&f, "app.service", mounts), ERROR_USAGE);
    refused(filter_add_cgroups_by(&f, "/a,", mounts), ERROR_USAGE);
    refused(filter_add_cgroups_by(&f, "", mounts), ERROR_USAGE);
    refused(filter_add_cgroups_by(&f, "/a", "24 30 0:22 / /memory rw - sysfs sysfs rw\n"), ERROR_UNSUPPORTED);
    refused(filter_add_cgroups_by(&f, "/a", "35 24 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"), ERROR_UNSUPPORTED);
    filter_deinit(&f);
}

/* No process is in such a container. */
TEST(containers)
{
    struct filter f = {0};

    refused(filter_add_containers(&f, "no-such-container"), ERROR_NOT_FOUND);
    refused(filter_add_containers(&f, ""), ERROR_USAGE);
    assert_true(filter_is_empty(&f));
    assert_true(filter_passes_cgroup(&f, 1));
    filter_deinit(&f);
}
