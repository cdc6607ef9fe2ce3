/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces are compared by inode number: there is one file system of them. */
#include "capture/host/owner.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/host/procfs_task.h"

enum kind { USER, CONTAINER, NAMESPACE, BLOCK, UNKNOWN };
#define BLOCK_SHIFT 16
/* The kernel allows no more namespaces within each other. */
#define LEVELS_MAX 33

static uint64_t key_of(enum kind kind, uint32_t number)
{
    return (uint64_t)kind << 32 | number;
}

uint64_t owner_unknown(void)
{
    return key_of(UNKNOWN, 0);
}

uint64_t owner_key(const struct owner_facts *f)
{
    if (f->container)
        return key_of(CONTAINER, f->container);
    if (f->user_ns)
        return f->user_ns_owner ? key_of(USER, f->user_ns_owner) : key_of(NAMESPACE, f->user_ns);
    if (f->uid && f->uid != PROCFS_UID_UNKNOWN && f->login)
        return key_of(USER, f->login);
    return f->uid == PROCFS_UID_UNKNOWN ? owner_unknown() : key_of(USER, f->uid);
}

uint64_t owner_block(uint64_t owner)
{
    return owner >> 32 == USER && owner >> BLOCK_SHIFT ? key_of(BLOCK, (uint32_t)(owner >> BLOCK_SHIFT)) : 0;
}

uint32_t owner_number(uint64_t owner, uint32_t count)
{
    const uint64_t block = owner_block(owner), key = block ? block : owner;

    return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15) >> 32) % count);
}

bool owner_is_root(uint64_t owner)
{
    return owner == key_of(USER, 0);
}

/* ---- what /proc says ---- */

static uint32_t read_login(pid_t pid)
{
    char path[64], text[16];

    snprintf(path, sizeof path, "/proc/%d/loginuid", pid);
    uint32_t login = procfs_read_at(AT_FDCWD, path, text, sizeof text) ? (uint32_t)strtoul(text, NULL, 10) : 0;
    return login == PROCFS_UID_UNKNOWN ? 0 : login;
}

static uint32_t inode_of(int fd)
{
    struct stat st;

    return fd >= 0 && !fstat(fd, &st) ? (uint32_t)st.st_ino : 0;
}

/* Opens the outermost of the namespaces that a process is in, of those below pycap's `own`; -1: there is none. */
static int open_outermost(pid_t pid, const char *name, uint32_t own)
{
    char path[64];
    uint32_t inode = (uint32_t)procfs_namespace(pid, name);

    if (!own || !inode || inode == own)
        return -1;
    snprintf(path, sizeof path, "/proc/%d/ns/%s", pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (int i = 0; fd >= 0 && i < LEVELS_MAX; i++) {
        int parent = ioctl(fd, NS_GET_PARENT);
        if (inode_of(parent) == own || parent < 0) {
            if (parent >= 0)
                close(parent);
            return fd;
        }
        close(fd);
        fd = parent;
    }
    return fd;
}

void owner_host_read(struct owner_host *out)
{
    *out = (struct owner_host){(uint32_t)procfs_namespace(getpid(), "user"), (uint32_t)procfs_namespace(getpid(), "pid")};
}

void owner_read(const struct owner_host *host, pid_t pid, struct owner_facts *facts)
{
    uid_t made_by = 0;
    int user = open_outermost(pid, "user", host->user), pids = open_outermost(pid, "pid", host->pid);

    facts->container = facts->user_ns = facts->user_ns_owner = 0;
    facts->login = read_login(pid);
    if (user >= 0) {
        facts->user_ns = inode_of(user);
        facts->user_ns_owner = ioctl(user, NS_GET_OWNER_UID, &made_by) ? 0 : made_by;
        close(user);
    }
    if (pids >= 0) {
        int of = ioctl(pids, NS_GET_USERNS);
        if (inode_of(of) == host->user)
            facts->container = inode_of(pids);
        if (of >= 0)
            close(of);
        close(pids);
    }
}
