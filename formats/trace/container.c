/* SPDX-License-Identifier: Apache-2.0 */
/* Goes through the components of the path, from the last one to the first, until one is a container's. */
#include "formats/trace/container.h"

#include <string.h>

/* An ID of docker, containerd, CRI-O and podman is a SHA-256 or 256 random bits, in lower case. */
#define ID_LEN 64

/* How an engine, or systemd on its behalf, names a container's cgroup: PREFIX ID SUFFIX. */
static const struct spelling {
    const char *prefix, *suffix;
    bool is_name; /* any text is a container's name; else it has to be an ID */
} spellings[] = {
    {"", "", false},                        /* /docker/ID, /kubepods/burstable/podUID/ID, /ecs/TASK/ID, /default/ID */
    {"docker-", ".scope", false},           /* docker with systemd's driver */
    {"cri-containerd-", ".scope", false},   /* Kubernetes with containerd */
    {"nerdctl-", ".scope", false},
    {"crio-", ".scope", false},             /* Kubernetes with CRI-O */
    {"crio-", "", false},
    {"libpod-", ".scope", false},           /* podman */
    {"libpod-", "", false},
    {"lxc.payload.", "", true},             /* LXC, LXD, Incus */
    {"systemd-nspawn@", ".service", true},  /* machinectl start */
    {"machine-", ".scope", true},           /* systemd-nspawn in a shell */
};

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_id(const char *text, size_t len)
{
    if (len != ID_LEN)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (digit_of(text[i]) < 0)
            return false;
    }
    return true;
}

bool container_in_component(const char **text, size_t *len)
{
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        const struct spelling *s = &spellings[i];
        size_t before = strlen(s->prefix), after = strlen(s->suffix);
        if (*len <= before + after || memcmp(*text, s->prefix, before) ||
            memcmp(*text + *len - after, s->suffix, after))
            continue;
        if (s->is_name || is_id(*text + before, *len - before - after)) {
            *text += before;
            *len -= before + after;
            return true;
        }
    }
    return false;
}

/* Whether the component is in a folder of this name: /lxc/NAME, as LXC without systemd has it. */
static bool is_in(const char *cgroup, const char *component, const char *folder)
{
    size_t len = strlen(folder);

    return (size_t)(component - cgroup) >= len && !memcmp(component - len, folder, len);
}

const char *container_outwards(const char *cgroup, const char **at, size_t *len)
{
    while (*at > cgroup) {
        const char *end = *at, *text = end;
        while (text > cgroup && text[-1] != '/')
            text--;
        *len = (size_t)(end - text);
        *at = text > cgroup ? text - 1 : cgroup;
        const char *component = text;
        if (container_in_component(&text, len) || (*len && is_in(cgroup, component, "/lxc/")))
            return text;
    }
    return NULL;
}

char container_unescape(const char *text, size_t len, size_t *taken)
{
    *taken = 1;
    if (len < 4 || text[0] != '\\' || text[1] != 'x' || digit_of(text[2]) < 0 || digit_of(text[3]) < 0)
        return text[0];
    *taken = 4;
    return (char)(digit_of(text[2]) << 4 | digit_of(text[3]));
}

void container_shorten(const char *text, size_t len, char out[CONTAINER_NAME_MAX])
{
    unsigned used = 0;

    if (is_id(text, len))
        len = CONTAINER_ID_SHORT;
    for (size_t at = 0, taken; at < len && used < CONTAINER_NAME_MAX - 1; at += taken)
        out[used++] = container_unescape(text + at, len - at, &taken);
    out[used] = 0;
}

bool container_of_cgroup(const char *cgroup, char out[CONTAINER_NAME_MAX])
{
    const char *at = cgroup + strlen(cgroup);
    size_t len = 0;
    const char *text = container_outwards(cgroup, &at, &len);

    container_shorten(text, text ? len : 0, out);
    return text != NULL;
}

void container_skip_engine(const char **text, size_t *len)
{
    static const char scheme[] = "://";
    const char *found = memmem(*text, *len, scheme, strlen(scheme));

    if (found) {
        found += strlen(scheme);
        *len -= (size_t)(found - *text);
        *text = found;
    }
}

/* How many bytes of an ID or name what a user has given takes; more than `len` if it does not begin so. */
static size_t begins(const char *text, size_t len, const char *given)
{
    size_t given_len = strlen(given), at = 0;

    container_skip_engine(&given, &given_len);
    for (size_t i = 0, taken; i < given_len; i++, at += taken) {
        if (at >= len || container_unescape(text + at, len - at, &taken) != given[i])
            return len + 1;
    }
    return at;
}

bool container_is(const char *text, size_t len, const char *given)
{
    return begins(text, len, given) == len;
}

bool container_begins(const char *text, size_t len, const char *given)
{
    return begins(text, len, given) <= len;
}
