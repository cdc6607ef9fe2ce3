/* SPDX-License-Identifier: Apache-2.0 */
/* A group may read a file only once the file is its own: until then nobody but the owner may. */
#include "capture/output/file_rights.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/host/privileges.h"
#include "formats/base/output_place.h"

enum { MODE_OWNER = 0600, MODE_GROUP = 0640 };

static const char list[] = "/etc/group";

/* The group's number; false: no line of the list has that name. */
static bool look_up(const char *name, gid_t *out)
{
    FILE *f = fopen(list, "re");
    bool found = false;

    for (struct group *g; f && !found && (g = fgetgrent(f));) {
        found = !strcmp(g->gr_name, name);
        *out = found ? g->gr_gid : *out;
    }
    if (f)
        fclose(f);
    return found;
}

/* "Unchanged" is what fchown() takes the largest number for. */
static bool is_number(const char *text, gid_t *out)
{
    size_t digits = strspn(text, "0123456789");

    if (!digits || digits > 10 || text[digits])
        return false;
    unsigned long long number = strtoull(text, NULL, 10);
    *out = (gid_t)number;
    return number < (gid_t)-1;
}

struct error *file_rights_find_group(const char *text, gid_t *out)
{
    if (!look_up(text, out) && !is_number(text, out))
        return error_create(ERROR_USAGE, "--group: there is no group '%s' in %s; a group that is only known elsewhere can be "
                            "given by its number", text, list);
    if (!privileges_may_give(*out))
        return error_create(ERROR_PERMISSION, "--group: files can be given to the group '%s' only by a user who is in it, or with "
                            "CAP_CHOWN", text);
    return NULL;
}

struct error *file_rights_set(int fd, const char *path, const gid_t *group)
{
    struct stat st;
    uid_t uid;
    gid_t gid;

    if (fstat(fd, &st))
        return error_file(errno, path, "cannot be looked at");
    if (!S_ISREG(st.st_mode))
        return NULL;
    if (fchmod(fd, MODE_OWNER)) /* also when it was there already */
        return error_file(errno, path, "cannot be made private");
    if (output_owner(&uid, &gid) && fchown(fd, uid, gid))
        return error_file(errno, path, "cannot be given to the user who called sudo");
    if (group && (fchown(fd, (uid_t)-1, *group) || fchmod(fd, MODE_GROUP)))
        return error_file(errno, path, "cannot be given to the group of --group");
    return NULL;
}
