/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel lists its tracepoints in one file of tracefs, available_events: some two thousand lines. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "capture/event/tracepoint.h"
#include "capture/host/procfs.h"
#include "formats/base/nearest.h"

struct error *tracepoint_list(int tracefs, char **names)
{
    int fd = openat(tracefs, "available_events", O_RDONLY | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT)
        return error_create(ERROR_UNSUPPORTED, "tracefs is empty: this kernel has no tracepoints, or its lockdown ('confidentiality') hides them");
    if (fd < 0)
        return error_os(errno, "the kernel's list of tracepoints cannot be opened");
    struct error *err = procfs_read_open(fd, "available_events", names, NULL);
    close(fd);
    return err;
}

/* A name of the list that is compared with the one that was asked for. */
struct candidate {
    const char *text; /* CATEGORY:NAME, not terminated */
    size_t len, category_len;
    const char *name; /* behind the colon */
    size_t name_len;
};

/* Moves to the next line of the list; false: it was the last. */
static bool next(const char **at, struct candidate *out)
{
    for (; **at; *at += (*at)[0] == '\n') {
        size_t len = strcspn(*at, "\n");
        const char *colon = memchr(*at, ':', len), *text = *at;
        *at += len;
        if (colon) {
            *out = (struct candidate){text, len, (size_t)(colon - text), colon + 1, len - (size_t)(colon - text) - 1};
            return true;
        }
    }
    return false;
}

static bool is_near(const struct candidate *c, const char *category, const char *name, bool anywhere)
{
    char word[64];

    if (anywhere)
        return memmem(c->name, c->name_len, name, strlen(name)) != NULL;
    if (c->name_len == strlen(name) && !memcmp(c->name, name, c->name_len))
        return true;
    if (c->category_len != strlen(category) || memcmp(c->text, category, c->category_len) || c->name_len >= sizeof word)
        return false;
    memcpy(word, c->name, c->name_len);
    word[c->name_len] = 0;
    struct nearest near = nearest_to(name, strlen(name));
    nearest_consider(&near, word);
    return near.name != NULL;
}

void tracepoint_put_near(const char *names, const char *category, const char *name, struct buf *out)
{
    int count = 0;

    for (int pass = 0; pass < 2 && !count && *name; pass++) {
        struct candidate c;
        for (const char *at = names; count < TRACEPOINT_NEAR_MAX && next(&at, &c);) {
            if (is_near(&c, category, name, pass == 1))
                buf_printf(out, "%s%.*s", count++ ? ", " : "", (int)c.len, c.text);
        }
    }
}
