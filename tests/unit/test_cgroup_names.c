/* SPDX-License-Identifier: Apache-2.0 */
/* Pods and systemd services by the paths of their cgroups. */
#include "tests/unit/test.h"

#include <string.h>

#include "symbolize/trace/cgroup_names.h"

#define ID "4f2c8e1b7a90d3c65b18e7f20a94c3d1b6e85f709a2c4d1e3b5f6a7089c1d2e3"
#define UID "3f0c1f3a-1111-2222-3333-444455556666"
#define UID_SYSTEMD "3f0c1f3a_1111_2222_3333_444455556666"
#define INNER "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
#define HASH "0123456789abcdef0123456789abcdef"

struct path {
    const char *cgroup, *name; /* NULL: none */
};

static const struct path pods[] = {
    {"/kubepods/burstable/pod" UID "/" ID, UID},
    {"/kubepods/pod" UID "/" ID "/init", UID},
    {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_SYSTEMD ".slice/cri-containerd-" ID ".scope", UID},
    {"/kubepods.slice/kubepods-pod" UID_SYSTEMD ".slice/crio-" ID ".scope/container", UID},
    {"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" HASH ".slice/docker-" ID ".scope", HASH}, /* static */
    {"/kubepods/besteffort/pod" HASH "/" ID, HASH},
    {"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" UID_SYSTEMD ".slice", UID}, /* kind */
    {"/../../kubepods/burstable/pod" UID, UID},
    {"/docker/" ID "/kubepods/pod" UID "/" ID "/kubepods/pod" INNER "/" ID, INNER},
    {"//kubepods//pod" UID "//", UID},
    {"", NULL},
    {"/", NULL},
    {"/kubepods.slice", NULL},
    {"/kubepods/burstable/pod", NULL},
    {"/kubepods/burstable/pod3f0c1f3a", NULL},
    {"/kubepods/burstable/pod" UID "0", NULL},
    {"/kubepods/burstable/pod3F0C1F3A-1111-2222-3333-444455556666", NULL}, /* the kubelet writes lower case */
    {"/kubepods/burstable/pod3f0c1f3ax1111-2222-3333-444455556666", NULL},
    {"/user.slice/tripod" HASH, NULL},
    {"/system.slice/my-pod" HASH ".service", NULL},
};

static const struct path units[] = {
    {"/system.slice/gunicorn.service", "gunicorn"},
    {"/system.slice/gunicorn.service/worker", "gunicorn"}, /* a cgroup that the service made */
    {"/system.slice/system-shop.slice/shop@eu.service", "shop@eu"},
    {"/system.slice/shop\\x2dapi.service", "shop-api"},
    {"/user.slice/user-1000.slice/user@1000.service/app.slice/sync.service", "sync"},
    {"/user.slice/user-1000.slice/user@1000.service/app.slice/app-gnome-term-12.scope", NULL},
    {"/user.slice/user-1000.slice/session-3.scope", NULL},
    {"/system.slice/docker-" ID ".scope", NULL},
    {"/machine.slice/systemd-nspawn@deb.service/payload", NULL},
    {"/machine.slice/systemd-nspawn@deb.service/payload/system.slice/nginx.service", "nginx"},
    {"/lxc.payload.web/system.slice/nginx.service", "nginx"},
    {"/system.slice/shop.service/libpod-payload-" ID, "shop"}, /* of podman's units */
    {"/system.slice/outer.service/inner.service", "inner"},
    {"/kubepods.slice/kubepods-pod" UID_SYSTEMD ".slice/cri-containerd-" ID ".scope", NULL},
    {"/system.slice/.service", NULL},
    {"/system.slice/odd\\x1b\\xff\\x2.service", "odd\x1b\xff\\x2"}, /* whoever shows it escapes it */
    {"", NULL},
};

static void check(const struct path *paths, size_t count, bool (*put)(const char *cgroup, struct buf *out))
{
    for (size_t i = 0; i < count; i++) {
        struct buf out = {0};
        buf_put_str(&out, "=");
        bool found = put(paths[i].cgroup, &out);
        if (found != (paths[i].name != NULL) || strcmp(buf_cstr(&out) + 1, found ? paths[i].name : ""))
            fail_msg("%s: %d \"%s\"", paths[i].cgroup, found, buf_cstr(&out) + 1);
        buf_deinit(&out);
    }
}

TEST(pods)
{
    check(pods, sizeof pods / sizeof *pods, cgroup_put_pod_uid);
}

TEST(units)
{
    check(units, sizeof units / sizeof *units, cgroup_put_unit);
}
