/* SPDX-License-Identifier: Apache-2.0 */
/* All symbols are read at once and sorted; modules that come later have them read again. */
#include "capture/host/kallsyms.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/host/procfs.h"
#include "formats/base/vec.h"

/* How long a miss keeps the table from being read again. */
#define REREAD_NS UINT64_C(5000000000)
/* Further than that behind its start no address belongs to the last symbol below it. */
#define FUNCTION_MAX_BYTES (UINT64_C(1) << 20)

struct kallsyms_entry {
    uint64_t address;
    uint32_t name, module; /* offsets into text */
};

struct kallsyms {
    VEC(struct kallsyms_entry) list;
    char *text; /* the file, with NULs put in */
    int fd; /* opened while privileged: that decides whether the addresses show; -1 */
    bool loaded;
    uint64_t loaded_ns;
};

struct error *kallsyms_create(struct kallsyms **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return error_no_memory();
    (*out)->fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
    return NULL;
}

void kallsyms_destroy(struct kallsyms *k)
{
    if (!k)
        return;
    VEC_DEINIT(&k->list);
    free(k->text);
    if (k->fd >= 0)
        close(k->fd);
    free(k);
}

static int by_address(const void *a, const void *b)
{
    const struct kallsyms_entry *x = a, *y = b;

    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    return x->name < y->name ? -1 : x->name > y->name;
}

struct error *kallsyms_parse(struct kallsyms *k, const char *text, size_t len_bytes)
{
    char *copy = malloc(len_bytes + 2);

    if (!copy)
        return error_no_memory();
    copy[0] = 0; /* offset 0 is the empty module name */
    memcpy(copy + 1, text, len_bytes);
    copy[len_bytes + 1] = 0;
    free(k->text);
    k->text = copy;
    k->list.count = 0;
    /* "ffffffff81000000 T _text" or "… t name\t[module]" */
    for (char *line = copy + 1, *next; *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        else
            next = line + strlen(line);
        char *rest;
        uint64_t address = strtoull(line, &rest, 16);
        if (rest == line || *rest != ' ' || !rest[1] || rest[2] != ' ' || !address)
            continue;
        char type = rest[1];
        if (type != 't' && type != 'T' && type != 'w' && type != 'W')
            continue;
        struct kallsyms_entry s = {.address = address, .name = (uint32_t)(rest + 3 - copy)};
        char *tab = strchr(rest + 3, '\t');
        if (tab) {
            *tab = 0;
            char *open = strchr(tab + 1, '['), *close = open ? strchr(open, ']') : NULL;
            if (close) {
                *close = 0;
                s.module = (uint32_t)(open + 1 - copy);
            }
        }
        if (!VEC_PUSH(&k->list, s))
            return error_no_memory();
    }
    if (k->list.count)
        qsort(k->list.data, k->list.count, sizeof *k->list.data, by_address);
    return NULL;
}

struct error *kallsyms_load(struct kallsyms *k, uint64_t time_ns)
{
    char *text;
    size_t len;

    k->loaded = true;
    k->loaded_ns = time_ns;
    if (k->fd < 0 || lseek(k->fd, 0, SEEK_SET))
        return NULL;
    struct error *err = procfs_read_open(k->fd, "/proc/kallsyms", &text, &len);
    if (err) {
        /* No names then: addresses are still in the trace. */
        error_destroy(err);
        return NULL;
    }
    err = kallsyms_parse(k, text, len);
    free(text);
    return err;
}

static const struct kallsyms_entry *find(const struct kallsyms *k, uint64_t address)
{
    size_t low = 0, high = k->list.count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (k->list.data[mid].address <= address)
            low = mid + 1;
        else
            high = mid;
    }
    if (!low)
        return NULL;
    /* Of several names for one address the first. */
    const struct kallsyms_entry *s = &k->list.data[low - 1];
    while (s > k->list.data && s[-1].address == s->address)
        s--;
    return address - s->address < FUNCTION_MAX_BYTES ? s : NULL;
}

struct error *kallsyms_lookup(struct kallsyms *k, uint64_t address, uint64_t time_ns, struct kernel_symbol *out,
                              bool *found)
{
    if (!k->loaded)
        TRY(kallsyms_load(k, time_ns));
    const struct kallsyms_entry *s = find(k, address);
    if (!s && time_ns - k->loaded_ns > REREAD_NS) {
        TRY(kallsyms_load(k, time_ns));
        s = find(k, address);
    }
    *found = s != NULL;
    if (s)
        *out = (struct kernel_symbol){.address = s->address, .name = k->text + s->name, .module = k->text + s->module};
    return NULL;
}
