/* SPDX-License-Identifier: Apache-2.0 */
/* Goes through the components of the path, from the last one to the first, until one has such a name. */
#include "symbolize/trace/cgroup_names.h"

#include <string.h>

#include "formats/trace/container.h"

struct component {
    const char *text;
    size_t len;
};

/* The component before `at`, which is the end of the path at first. False: there is none. */
static bool previous(const char *cgroup, const char **at, struct component *out)
{
    const char *end = *at;

    while (end > cgroup && end[-1] == '/')
        end--;
    const char *text = end;
    while (text > cgroup && text[-1] != '/')
        text--;
    *out = (struct component){text, (size_t)(end - text)};
    *at = text;
    return end > text;
}

static bool ends_in(const struct component *c, const char *end)
{
    size_t len = strlen(end);

    return c->len > len && !memcmp(c->text + c->len - len, end, len);
}

static bool begins_with(const struct component *c, const char *begin)
{
    size_t len = strlen(begin);

    return c->len > len && !memcmp(c->text, begin, len);
}

/* ---- pods ---- */

enum { UID_LEN = 36, HASH_LEN = 32 };

static bool is_uid(const char *text, size_t len)
{
    static const char shape[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

    if (len != UID_LEN && len != HASH_LEN)
        return false;
    for (size_t i = 0; i < len; i++) {
        bool is_digit = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
        bool divides = len == UID_LEN && shape[i] == '-';
        if (divides ? text[i] != '-' && text[i] != '_' : !is_digit)
            return false;
    }
    return true;
}

/* What is behind "pod" in podUID or in ...-podUID.slice. */
static bool find_uid(const struct component *c, struct component *uid)
{
    static const char pod[] = "pod", slice[] = ".slice";
    bool is_slice = ends_in(c, slice);
    size_t end = c->len - (is_slice ? strlen(slice) : 0), len_pod = strlen(pod);

    for (size_t len = HASH_LEN; len <= UID_LEN; len += UID_LEN - HASH_LEN) {
        if (end < len + len_pod)
            continue;
        size_t begin = end - len - len_pod;
        bool apart = begin ? is_slice && c->text[begin - 1] == '-' : true;
        if (apart && !memcmp(c->text + begin, pod, len_pod) && is_uid(c->text + begin + len_pod, len)) {
            *uid = (struct component){c->text + begin + len_pod, len};
            return true;
        }
    }
    return false;
}

bool cgroup_put_pod_uid(const char *cgroup, struct buf *out)
{
    const char *at = cgroup + strlen(cgroup);
    struct component c, uid;

    while (previous(cgroup, &at, &c)) {
        if (!find_uid(&c, &uid))
            continue;
        for (size_t i = 0; i < uid.len; i++)
            buf_put_u8(out, (uint8_t)(uid.text[i] == '_' ? '-' : uid.text[i]));
        return true;
    }
    return false;
}

/* ---- services ---- */

bool cgroup_put_unit(const char *cgroup, struct buf *out)
{
    static const char service[] = ".service";
    const char *at = cgroup + strlen(cgroup);
    struct component c;

    while (previous(cgroup, &at, &c)) {
        struct component inside = c;
        if (!ends_in(&c, service) || begins_with(&c, "user@") || container_in_component(&inside.text, &inside.len))
            continue;
        size_t len = c.len - strlen(service);
        for (size_t i = 0, taken; i < len; i += taken)
            buf_put_u8(out, (uint8_t)container_unescape(c.text + i, len - i, &taken));
        return true;
    }
    return false;
}
