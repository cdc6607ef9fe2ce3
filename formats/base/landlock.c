/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel refuses rights that it does not know, so its version of Landlock says which are asked for. */
#include "formats/base/landlock.h"

#include <errno.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Later than the headers of some hosts that this is built on: linux/landlock.h of Linux 6.12. */
#define ACCESS_TRUNCATE (UINT64_C(1) << 14)
struct ruleset_attributes {
    uint64_t handled_fs, handled_net, scoped;
};

/* By version of Landlock, from 1 on: all rights of the file system, of the network, and what is kept inside. */
static const struct ruleset_attributes known[] = {
    {.handled_fs = 0x1fff},
    {.handled_fs = 0x3fff},
    {.handled_fs = 0x7fff},
    {.handled_fs = 0x7fff, .handled_net = 3},
    {.handled_fs = 0xffff, .handled_net = 3},
    {.handled_fs = 0xffff, .handled_net = 3, .scoped = 3},
};
#define VERSIONS ((long)(sizeof known / sizeof *known))

static uint64_t rights_of(unsigned access, bool folder)
{
    uint64_t rights = 0;

    if (access & LANDLOCK_READ)
        rights |= LANDLOCK_ACCESS_FS_READ_FILE | (folder ? LANDLOCK_ACCESS_FS_READ_DIR : 0);
    if (access & LANDLOCK_WRITE)
        rights |= LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_TRUNCATE;
    if (folder && (access & LANDLOCK_RENAME))
        rights |= LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE;
    if (folder && (access & LANDLOCK_MAKE))
        rights |= LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_MAKE_SYM;
    return rights;
}

static bool allow(int ruleset, const struct landlock_place *place, uint64_t handled)
{
    struct stat st;

    if (fstat(place->fd, &st))
        return false;
    const struct landlock_path_beneath_attr rule = {
        .allowed_access = rights_of(place->access, S_ISDIR(st.st_mode)) & handled, .parent_fd = place->fd};
    return !rule.allowed_access || !syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) ||
           errno == EBADFD;
}

static bool enter(const struct landlock_place *places, size_t count, bool network)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    if (version < 1)
        return false;
    struct ruleset_attributes attributes = known[(version < VERSIONS ? version : VERSIONS) - 1];
    if (network)
        attributes.handled_net = 0;
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
    if (ruleset < 0)
        return false;
    bool good = true;
    for (size_t i = 0; good && i < count; i++)
        good = allow(ruleset, &places[i], attributes.handled_fs);
    good = good && !syscall(SYS_landlock_restrict_self, ruleset, 0);
    close(ruleset);
    return good;
}

bool landlock_enter(const struct landlock_place *places, size_t count)
{
    return enter(places, count, false);
}

bool landlock_enter_with_network(const struct landlock_place *places, size_t count)
{
    return enter(places, count, true);
}
