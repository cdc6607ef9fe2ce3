/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes count as one owner's. */
#include "tests/unit/test.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/host/owner.h"

static uint64_t key(uint32_t uid, uint32_t container, uint32_t user_ns, uint32_t user_ns_owner)
{
    const struct owner_facts facts = {uid, container, user_ns, user_ns_owner, 0};

    return owner_key(&facts);
}

TEST(keys)
{
    /* Users of the host are told apart, and the unknown is nobody's. */
    assert_true(owner_is_root(key(0, 0, 0, 0)));
    assert_int_not_equal(key(1000, 0, 0, 0), key(1001, 0, 0, 0));
    assert_int_equal(key(PROCFS_UID_UNKNOWN, 0, 0, 0), owner_unknown());
    assert_false(owner_is_root(owner_unknown()));
    /* A container is one owner, whoever it runs as; so is what its users make in it. */
    assert_int_equal(key(0, 77, 0, 0), key(1234, 77, 0, 0));
    assert_int_equal(key(0, 77, 0, 0), key(1234, 77, 88, 1234));
    assert_int_not_equal(key(0, 77, 0, 0), key(0, 78, 0, 0));
    assert_false(owner_is_root(key(0, 77, 0, 0)));
    /* A user namespace counts for the user who made it, by whichever ids; for itself if that was root. */
    assert_int_equal(key(165536, 0, 88, 1000), key(1000, 0, 0, 0));
    assert_int_equal(key(165537, 0, 89, 1000), key(1000, 0, 0, 0));
    assert_int_not_equal(key(165536, 0, 88, 0), key(0, 0, 0, 0));
    assert_int_equal(key(165536, 0, 88, 0), key(165537, 0, 88, 0));
    assert_int_not_equal(key(165536, 0, 88, 0), key(165536, 0, 89, 0));
}

/* Whoever has logged in uses the ids of his session, but for root's. */
TEST(login_sessions)
{
    const struct owner_facts other = {.uid = 1001, .login = 1000}, root = {.uid = 0, .login = 1000},
                             unknown = {.uid = PROCFS_UID_UNKNOWN, .login = 1000}, contained = {.uid = 5, .container = 7, .login = 1000};

    assert_int_equal(owner_key(&other), 1000);
    assert_true(owner_is_root(owner_key(&root)));
    assert_int_equal(owner_key(&unknown), owner_unknown());
    assert_int_equal(owner_key(&contained), key(5, 7, 0, 0));
}

TEST(blocks)
{
    assert_int_equal(owner_block(key(65535, 0, 0, 0)), 0);
    assert_int_not_equal(owner_block(key(65536, 0, 0, 0)), 0);
    assert_int_equal(owner_block(key(200000, 0, 0, 0)), owner_block(key(262143, 0, 0, 0)));
    assert_int_not_equal(owner_block(key(200000, 0, 0, 0)), owner_block(key(262144, 0, 0, 0)));
    assert_int_not_equal(owner_block(key(65536, 0, 0, 0)), key(1, 0, 0, 0));
    assert_int_equal(owner_block(key(0, 5, 0, 0)), 0);
    assert_int_equal(owner_block(owner_unknown()), 0);
}

/* Begins a child in new namespaces; below 0: the kernel refuses. It runs until end(). */
static pid_t begin(uid_t uid, int first, int second)
{
    int ready[2];

    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (!pid) {
        bool ok = (!uid || !setresuid(uid, uid, uid)) && !unshare(first) && (!second || !unshare(second));
        pid_t inner = ok ? fork() : -1; /* the first one in a pid namespace */
        if (inner > 0)
            ok = write(ready[1], &inner, sizeof inner) > 0;
        else if (!inner)
            ok = pause();
        close(ready[1]);
        pause();
        _exit(!ok);
    }
    close(ready[1]);
    pid_t inner = -1;
    if (read(ready[0], &inner, sizeof inner) != sizeof inner)
        inner = -1;
    close(ready[0]);
    if (inner < 0)
        kill(pid, SIGKILL), waitpid(pid, NULL, 0);
    return inner;
}

static void end(pid_t pid)
{
    char path[64];
    int parent = 0;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    assert_int_equal(fscanf(f, "%*d %*s %*c %d", &parent), 1);
    fclose(f);
    kill(pid, SIGKILL);
    kill(parent, SIGKILL);
    waitpid(parent, NULL, 0);
}

TEST(namespaces)
{
    struct owner_host host;
    struct owner_facts facts = {.uid = 5};

    owner_host_read(&host);
    owner_read(&host, getpid(), &facts);
    assert_int_equal(facts.container, 0);
    assert_int_equal(facts.user_ns, 0);
    if (geteuid())
        return;
    pid_t pid = begin(0, CLONE_NEWPID, 0);
    if (pid > 0) {
        owner_read(&host, pid, &facts);
        assert_int_not_equal(facts.container, 0);
        assert_int_equal(facts.user_ns, 0);
        end(pid);
    }
    pid = begin(4242, CLONE_NEWUSER | CLONE_NEWPID, CLONE_NEWUSER);
    if (pid > 0) {
        owner_read(&host, pid, &facts);
        assert_int_equal(facts.container, 0);
        assert_int_not_equal(facts.user_ns, 0);
        assert_int_equal(facts.user_ns_owner, 4242);
        assert_int_equal(owner_key(&facts), 4242);
        end(pid);
    }
}
