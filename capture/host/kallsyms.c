/* SPDX-License-Identifier: Apache-2.0 */
/* The file is parsed as it is read, piece by piece: it may have ten megabytes. */
#include "capture/host/kallsyms.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/host/packed_symbols.h"
#include "capture/host/quiet_thread.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"

/* How long a miss keeps the table from being read again. */
#define REREAD_NS UINT64_C(5000000000)
/* Further than that behind its start no address belongs to the last symbol below it. */
#define FUNCTION_MAX_BYTES (UINT64_C(1) << 20)
#define PIECE_BYTES (64 << 10)
/* Addresses whose names are remembered: a search takes a hundred times as long as to find one among them. */
#define KNOWN_MAX 4096

struct kallsyms {
    struct packed_symbols *names; /* NULL: none could be read */
    int fd; /* opened while privileged: that decides whether the addresses show; -1 */
    bool loaded;
    uint64_t loaded_ns;
    bool reading; /* by the thread, which has `names` until it is joined */
    pthread_t thread;
    void (*begin)(void);
    atomic_bool stop, read; /* the thread is to end; it has ended */
    struct map known;                   /* address -> index in symbols */
    VEC(struct kernel_symbol) symbols;  /* their names are owned, the modules' are those of `names` */
};

struct error *kallsyms_create(struct kallsyms **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return error_no_memory();
    (*out)->fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
    return NULL;
}

/* ---- the text ---- */

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "ffffffff81000000 T _text" or "… t name\t[module]", without the end of the line. False: out of memory. */
static bool add_line(struct packed_symbols *names, const char *line, const char *end)
{
    uint64_t address = 0;
    const char *p = line;

    for (; p < end && digit(*p) >= 0; p++)
        address = address << 4 | (uint64_t)digit(*p);
    if (p == line || end - p < 3 || p[0] != ' ' || p[2] != ' ' || !address)
        return true;
    if (p[1] != 't' && p[1] != 'T' && p[1] != 'w' && p[1] != 'W')
        return true;
    const char *name = p + 3, *module = NULL;
    const char *tab = memchr(name, '\t', (size_t)(end - name));
    size_t module_len = 0;
    if (tab) {
        const char *open = memchr(tab, '[', (size_t)(end - tab));
        const char *close = open ? memchr(open, ']', (size_t)(end - open)) : NULL;
        if (close) {
            module = open + 1;
            module_len = (size_t)(close - module);
        }
    }
    return packed_symbols_add(names, address, name, (size_t)((tab ? tab : end) - name), module, module_len);
}

/* Adds the whole lines of the text; stores how many bytes they have. False: out of memory. */
static bool add_lines(struct packed_symbols *names, const char *text, size_t len_bytes, size_t *used_bytes)
{
    const char *line = text, *end = text + len_bytes;

    for (const char *nl; (nl = memchr(line, '\n', (size_t)(end - line))); line = nl + 1) {
        if (!add_line(names, line, nl))
            return false;
    }
    *used_bytes = (size_t)(line - text);
    return true;
}

/* Reads the open file from where it is. False: out of memory, or it is to stop. */
static bool add_file(struct kallsyms *k, struct packed_symbols *names, char *piece)
{
    size_t have = 0, used;

    while (!atomic_load(&k->stop)) {
        ssize_t n = read(k->fd, piece + have, PIECE_BYTES - have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return have ? add_line(names, piece, piece + have) : true;
        have += (size_t)n;
        if (!add_lines(names, piece, have, &used))
            return false;
        have -= used;
        memmove(piece, piece + used, have);
        if (have == PIECE_BYTES) /* no line is that long */
            have = 0;
    }
    return false;
}

static void forget_known(struct kallsyms *k)
{
    for (size_t i = 0; i < k->symbols.count; i++)
        free((char *)k->symbols.data[i].name);
    k->symbols.count = 0;
    map_clear(&k->known);
}

/* Replaces the names by those of the file. Those that cannot be read, or for which there is no memory, are not there. */
static void read_names(struct kallsyms *k)
{
    struct packed_symbols *names = NULL;
    char *piece = NULL;
    bool good = k->fd >= 0 && !lseek(k->fd, 0, SEEK_SET);

    if (good) {
        names = packed_symbols_create();
        piece = malloc(PIECE_BYTES);
        good = names && piece && add_file(k, names, piece) && packed_symbols_end(names);
    }
    free(piece);
    if (!good) {
        packed_symbols_destroy(names);
        names = NULL;
    }
    forget_known(k);
    packed_symbols_destroy(k->names);
    k->names = names;
}

struct error *kallsyms_parse(struct kallsyms *k, const char *text, size_t len_bytes)
{
    size_t used;

    forget_known(k);
    packed_symbols_destroy(k->names);
    k->names = packed_symbols_create();
    bool good = k->names && add_lines(k->names, text, len_bytes, &used) &&
                add_line(k->names, text + used, text + len_bytes) && packed_symbols_end(k->names);
    return good ? NULL : error_no_memory();
}

/* ---- when it is read ---- */

static void *run(void *ctx)
{
    struct kallsyms *k = ctx;

    k->begin();
    read_names(k);
    atomic_store(&k->read, true);
    return NULL;
}

void kallsyms_begin(struct kallsyms *k, void (*begin)(void), uint64_t time_ns)
{
    k->begin = begin;
    k->reading = !quiet_thread_start(&k->thread, run, k);
    k->loaded = k->reading; /* else the first lookup reads it */
    k->loaded_ns = time_ns;
}

bool kallsyms_is_being_read(const struct kallsyms *k)
{
    return k->reading && !atomic_load(&k->read);
}

void kallsyms_wait(struct kallsyms *k)
{
    if (k->reading)
        pthread_join(k->thread, NULL);
    k->reading = false;
}

void kallsyms_destroy(struct kallsyms *k)
{
    if (!k)
        return;
    atomic_store(&k->stop, true);
    kallsyms_wait(k);
    forget_known(k);
    map_deinit(&k->known);
    VEC_DEINIT(&k->symbols);
    packed_symbols_destroy(k->names);
    if (k->fd >= 0)
        close(k->fd);
    free(k);
}

struct error *kallsyms_load(struct kallsyms *k, uint64_t time_ns)
{
    kallsyms_wait(k);
    k->loaded = true;
    k->loaded_ns = time_ns;
    read_names(k);
    return NULL;
}

/* What is known of an address by now; NULL: nothing. */
static const struct kernel_symbol *find_known(const struct kallsyms *k, uint64_t address)
{
    const uint64_t *index = map_get(&k->known, address);

    return index ? &k->symbols.data[*index] : NULL;
}

/* Searches for an address, and remembers what was found. `*symbol` is NULL when that is nothing. */
static struct error *find(struct kallsyms *k, uint64_t address, const struct kernel_symbol **symbol)
{
    struct packed_symbol name;

    *symbol = find_known(k, address);
    if (*symbol || !k->names || !packed_symbols_find(k->names, address, &name) ||
        address - name.address >= FUNCTION_MAX_BYTES)
        return NULL;
    if (k->symbols.count >= KNOWN_MAX)
        forget_known(k);
    struct kernel_symbol found = {.address = name.address, .name = strdup(name.name), .module = name.module};
    if (!found.name || !VEC_PUSH(&k->symbols, found)) {
        free((char *)found.name);
        return error_no_memory();
    }
    if (!map_set(&k->known, address, k->symbols.count - 1))
        return error_no_memory();
    *symbol = &k->symbols.data[k->symbols.count - 1];
    return NULL;
}

struct error *kallsyms_lookup(struct kallsyms *k, uint64_t address, uint64_t time_ns, struct kernel_symbol *out,
                              bool *found)
{
    const struct kernel_symbol *symbol;

    kallsyms_wait(k);
    if (!k->loaded)
        TRY(kallsyms_load(k, time_ns));
    TRY(find(k, address, &symbol));
    if (!symbol && time_ns - k->loaded_ns > REREAD_NS) {
        TRY(kallsyms_load(k, time_ns));
        TRY(find(k, address, &symbol));
    }
    *found = symbol != NULL;
    if (symbol)
        *out = *symbol;
    return NULL;
}
