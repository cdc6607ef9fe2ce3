/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of /proc say of who keeps pycap from processes, and in which cgroup a process is. */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "capture/host/procfs.h"
#include "capture/host/restraints.h"

#define PROC "23 29 0:21 / /proc rw,nosuid,nodev,noexec,relatime shared:13 - proc proc "

/* How /proc hides processes by a mountinfo; the group that sees them all the same, 0: there is none. */
static const char *hides(const char *mountinfo, unsigned *group)
{
    static char hidepid[RESTRAINTS_HIDEPID_MAX];

    if (!restraints_hidepid_in(mountinfo, hidepid, group))
        *group = 0;
    return hidepid;
}

TEST(hidepid)
{
    unsigned group = 7;

    assert_string_equal(hides("", &group), "");
    assert_string_equal(hides(PROC "rw\n", &group), "");
    assert_string_equal(hides(PROC "rw,hidepid=off\n", &group), "");
    assert_string_equal(hides(PROC "rw,hidepid=0,gid=5\n", &group), "");
    assert_string_equal(hides(PROC "rw,hidepid=2\n24 29 0:22 / /sys rw - sysfs sysfs rw\n", &group), "2");
    assert_int_equal(group, 0);
    assert_string_equal(hides(PROC "rw,gid=27,hidepid=invisible\n", &group), "invisible");
    assert_int_equal(group, 27);
    assert_string_equal(hides(PROC "rw,gid=27,hidepid=ptraceable\n", &group), "ptraceable");
    assert_int_equal(group, 0);
    /* The last one that is mounted there counts, and no other place. */
    assert_string_equal(hides(PROC "rw,hidepid=invisible\n" PROC "rw\n", &group), "");
    assert_string_equal(hides(PROC "rw\n" PROC "rw,hidepid=noaccess\n", &group), "noaccess");
    assert_string_equal(hides("23 29 0:21 / /jail/proc rw - proc proc rw,hidepid=2\n", &group), "");
    assert_string_equal(hides(PROC "rw,hidepid=a-word-that-is-longer-than-any\n", &group), "a-word-that-is-");
}

static const char *module_of(const char *label)
{
    static char text[RESTRAINTS_TEXT_MAX];

    restraints_module_of(label, text);
    return text;
}

TEST(modules)
{
    assert_string_equal(module_of(""), "");
    assert_string_equal(module_of("unconfined\n"), "");
    assert_string_equal(module_of("docker-default (enforce)\n"), "the AppArmor profile 'docker-default'");
    assert_string_equal(module_of("/usr/bin/a b//c (kill)"), "the AppArmor profile '/usr/bin/a b//c'");
    assert_string_equal(module_of("mine (complain)\n"), "");
    assert_string_equal(module_of("lxc (unconfined)\n"), "");
    assert_string_equal(module_of("system_u:system_r:container_t:s0:c1,c2\n"), "the SELinux domain 'container_t'");
    assert_string_equal(module_of("system_u:system_r:pycap_t\n"), "the SELinux domain 'pycap_t'");
    assert_string_equal(module_of("unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023\n"), "");
    assert_string_equal(module_of("system_u:system_r:spc_t:s0\n"), "");
    assert_string_equal(module_of("kernel\n"), "");
}

/* Whether that is the path, with and without preference for the unified hierarchy. */
static void in_cgroup(const char *text, const char *unified, const char *named)
{
    char *found[2] = {procfs_cgroup_in(text, true), procfs_cgroup_in(text, false)};

    for (int i = 0; i < 2; i++) {
        const char *expected = i ? named : unified;
        assert_int_equal(found[i] != NULL, expected != NULL);
        if (expected)
            assert_string_equal(found[i], expected);
        free(found[i]);
    }
}

TEST(cgroups)
{
    in_cgroup("", NULL, NULL);
    in_cgroup("0::/system.slice/a.service\n", "/system.slice/a.service", "/system.slice/a.service");
    /* Both are mounted, as by systemd's hybrid setup. Engines name their containers in the older one. */
    in_cgroup("5:memory:/docker/1\n1:name=systemd:/docker/1\n0::/system.slice/containerd.service\n",
              "/system.slice/containerd.service", "/docker/1");
    in_cgroup("5:memory:/m\n1:name=systemd:/\n0::/a\n", "/a", "/a");
    in_cgroup("1:name=systemd:/a\n0::/\n", "/", "/a");
    /* Version 1 alone. */
    in_cgroup("5:memory:/docker/1\n1:name=systemd:/docker/1\n", "/docker/1", "/docker/1");
    in_cgroup("5:memory:/m\n1:name=systemd:/\n", "/", "/");
    in_cgroup("6:cpu,cpuacct:/c\n5:hugetlb,memory,pids:/a:b/c\n", "/a:b/c", "/a:b/c");
    in_cgroup("6:cpu,cpuacct:/memory:/x\n5:memory2:/m\n", NULL, NULL);
}
