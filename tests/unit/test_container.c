/* SPDX-License-Identifier: Apache-2.0 */
/* Containers by the paths of their cgroups, as the engines name them. */
#include "tests/unit/test.h"

#include <string.h>

#include "formats/trace/container.h"

#define ID "4f2c8e1b7a90d3c65b18e7f20a94c3d1b6e85f709a2c4d1e3b5f6a7089c1d2e3"
#define OTHER "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct {
    const char *cgroup, *container; /* NULL: none */
} paths[] = {
    {"/system.slice/docker-" ID ".scope", "4f2c8e1b7a90"},
    {"/docker/" ID, "4f2c8e1b7a90"},
    {"/docker/" ID "/init", "4f2c8e1b7a90"}, /* a cgroup that the program made */
    {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12ab_34.slice/cri-containerd-" ID ".scope",
     "4f2c8e1b7a90"},
    {"/kubepods/burstable/pod3f0c1f3a-1111-2222-3333-444455556666/" ID, "4f2c8e1b7a90"},
    {"/kubepods.slice/kubepods-pod1.slice/crio-" ID ".scope", "4f2c8e1b7a90"},
    {"/kubepods.slice/kubepods-pod1.slice/crio-" ID ".scope/container", "4f2c8e1b7a90"},
    {"/machine.slice/libpod-" ID ".scope", "4f2c8e1b7a90"},
    {"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope/container", "4f2c8e1b7a90"},
    {"/libpod_parent/libpod-" ID, "4f2c8e1b7a90"},
    {"/system.slice/nerdctl-" ID ".scope", "4f2c8e1b7a90"},
    {"/ecs/task-7/" ID, "4f2c8e1b7a90"},
    {"/../../docker/" ID, "4f2c8e1b7a90"}, /* seen from another cgroup namespace */
    {"/docker/" OTHER "/docker/" ID, "4f2c8e1b7a90"}, /* docker in docker */
    {"/lxc.payload.web/system.slice/nginx.service", "web"},
    {"/lxc/web", "web"},
    {"/machine.slice/systemd-nspawn@deb\\x2dtest.service/payload", "deb-test"},
    {"/machine.slice/machine-deb\\x2dtest.scope", "deb-test"},
    {"", NULL},
    {"/", NULL},
    {"/user.slice/user-0.slice/session-3.scope", NULL},
    {"/system.slice/docker.service", NULL},
    {"/system.slice/containerd.service", NULL},
    {"/system.slice/docker-4f2c.scope", NULL}, /* no ID */
    {"/docker/" ID "0", NULL},
    {"/machine.slice/libpod-conmon-" ID ".scope", NULL}, /* the program beside the container */
    {"/lxc", NULL},
    {"/lxc.payload.", NULL},
};

TEST(spellings)
{
    char out[CONTAINER_NAME_MAX];

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        bool found = container_of_cgroup(paths[i].cgroup, out);
        if (found != (paths[i].container != NULL) || strcmp(out, found ? paths[i].container : ""))
            fail_msg("%s: \"%s\"", paths[i].cgroup, out);
    }
}

TEST(whole_ids)
{
    const char *cgroup = "/docker/" OTHER "/system.slice/docker-" ID ".scope/init", *at = cgroup + strlen(cgroup);
    size_t len;
    const char *inner = container_outwards(cgroup, &at, &len);

    assert_int_equal(len, 64);
    assert_memory_equal(inner, ID, 64);
    const char *outer = container_outwards(cgroup, &at, &len);
    assert_int_equal(len, 64);
    assert_memory_equal(outer, OTHER, 64);
    assert_null(container_outwards(cgroup, &at, &len));
    at = cgroup = "";
    assert_null(container_outwards(cgroup, &at, &len));
}

static bool begins(const char *text, const char *given)
{
    return container_begins(text, strlen(text), given);
}

TEST(given)
{
    assert_true(begins(ID, "4f2c"));
    assert_true(begins(ID, "4f2c8e1b7a90"));
    assert_true(begins(ID, "containerd://4f2c8e1b7a90"));
    assert_false(begins(ID, "f2c"));
    assert_false(begins(ID, ID "0"));
    assert_false(container_is(ID, 64, "4f2c"));
    assert_true(container_is(ID, 64, ID));
    assert_true(container_is(ID, 64, "cri-o://" ID));
    assert_true(begins("deb\\x2dtest", "deb-t"));
    assert_true(container_is("deb\\x2dtest", 11, "deb-test"));
    assert_false(begins("deb\\x2dtest", "deb\\x2d"));
}

/* Names come from whoever made the cgroup. */
TEST(hostile)
{
    char cgroup[4096] = "/lxc.payload.", out[CONTAINER_NAME_MAX];

    memset(cgroup + strlen(cgroup), 'x', 2000);
    assert_true(container_of_cgroup(cgroup, out));
    assert_int_equal(strlen(out), CONTAINER_NAME_MAX - 1);
    assert_true(container_of_cgroup("/lxc.payload.a\\x2", out));
    assert_string_equal(out, "a\\x2");
    assert_true(container_of_cgroup("/lxc.payload.\\xzz\\x00b", out));
    assert_string_equal(out, "\\xzz");
}
