/* SPDX-License-Identifier: Apache-2.0 */
/* Which container the beginning of an ID means, by the text of each process's /proc/PID/cgroup. */
#include "tests/unit/test.h"

#include <stdio.h>
#include <string.h>

#include "capture/process/containers.h"

#define ONE   "4f2c8e1b7a90d3c65b18e7f20a94c3d1b6e85f709a2c4d1e3b5f6a7089c1d2e3"
#define ALIKE "4f2d8e1b7a90d3c65b18e7f20a94c3d1b6e85f709a2c4d1e3b5f6a7089c1d2e3"
#define INNER "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* The unified hierarchy alone; older ones, whose paths differ; a container in a container; names. */
static const char *const processes[] = {
    "0::/system.slice/docker-" ONE ".scope\n",
    "0::/system.slice/docker-" ONE ".scope/init\n",
    "5:memory:/kubepods/burstable/pod3f0c1f3a-1111-2222-3333-444455556666/" ALIKE "\n1:name=systemd:/\n0::/\n",
    "0::/docker/" ONE "/kubelet.slice/cri-containerd-" INNER ".scope\n",
    "0::/lxc.payload.web\n",
    "0::/lxc.payload.web-2\n",
    "0::/machine.slice/machine-deb\\x2dtest.scope\n",
    "0::/system.slice/ssh.service\n",
    "",
    "no line of such a file",
    "0::",
};

static struct containers some(void)
{
    struct containers c = {0};

    for (size_t i = 0; i < sizeof processes / sizeof *processes; i++)
        OK(containers_add(&c, processes[i]));
    return c;
}

static void means(const struct containers *c, const char *given, const char *id)
{
    const char *found = NULL;

    OK(containers_choose(c, given, &found));
    assert_string_equal(found, id);
}

static void refuses(const struct containers *c, const char *given, enum error_code code, const char *words)
{
    const char *found;
    struct error *err = containers_choose(c, given, &found);

    assert_non_null(err);
    assert_int_equal(err->code, code);
    if (!strstr(error_text(err), words))
        fail_msg("%s", error_text(err));
    error_destroy(err);
}

TEST(meant)
{
    struct containers c = some();

    assert_int_equal(c.ids.count, 6);
    means(&c, "4f2c", ONE);
    means(&c, ONE, ONE);
    means(&c, "containerd://" ALIKE, ALIKE);
    means(&c, "0", INNER);
    means(&c, "web-", "web-2");
    means(&c, "web", "web"); /* whole before longer ones */
    means(&c, "deb-test", "deb\\x2dtest");
    containers_deinit(&c);
}

TEST(not_meant)
{
    struct containers c = some(), none = {0};

    refuses(&c, "4f2", ERROR_USAGE, "2 containers begin with '4f2': 4f2c8e1b7a90, 4f2d8e1b7a90; give more of the ID");
    refuses(&c, "we", ERROR_USAGE, "2 containers begin with 'we': web, web-2;");
    refuses(&c, "gunicorn", ERROR_NOT_FOUND, "; those here: 4f2c8e1b7a90, 4f2d8e1b7a90, 0123456789ab, web, web-2, deb-test");
    refuses(&c, "", ERROR_USAGE, "wants the ID of a container");
    refuses(&c, "docker://", ERROR_USAGE, "not 'docker://'");
    refuses(&none, "4f2c", ERROR_NOT_FOUND, "none is in any container");
    none.apart = true;
    refuses(&none, "4f2c", ERROR_NOT_FOUND, "--pid=host");
    containers_deinit(&c);
}

/* Names come from whoever made the cgroup. */
TEST(many)
{
    struct containers c = {0};
    char line[128];

    for (int i = 0; i < 12; i++) {
        snprintf(line, sizeof line, "0::/docker/%064x\n", i);
        OK(containers_add(&c, line));
    }
    refuses(&c, "00", ERROR_USAGE, "12 containers begin with '00': 000000000000, ");
    refuses(&c, "00", ERROR_USAGE, " and 4 more; give more of the ID");
    containers_deinit(&c);
}

TEST(processes)
{
    const bool in_one[] = {true, true, false, true};

    for (size_t i = 0; i < sizeof processes / sizeof *processes; i++)
        assert_int_equal(containers_holds(ONE, processes[i]), i < sizeof in_one && in_one[i]);
    assert_true(containers_holds(ALIKE, processes[2]));
    assert_true(containers_holds(INNER, processes[3]));
    assert_true(containers_holds("web", processes[4]));
    assert_false(containers_holds("web", processes[5]));
}
