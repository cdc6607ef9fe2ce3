/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a PMU (Documentation/ABI/testing/sysfs-bus-event_source-devices-*):
 *
 *     type             10
 *     format/umask     config:8-15
 *     events/mem-loads event=0xcd,umask=0x1,ldlat=3    "?" instead of a number: the user has to say it
 *     cpumask          0                               the PMU counts for all CPUs of a package
 *     cpus             0-7                             the PMU counts on these alone: CPUs of one kind of several
 */
#include "capture/event/pmu.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/base/nearest.h"

/* Files of sysfs have a page at most, and these a line. */
enum { FILE_MAX = 4096, TERM_MAX = 256, LIST_MAX = 4096 };

/* ---- files ---- */

static int open_below(const char *devices, const char *device, const char *folder)
{
    char path[1024];

    if ((size_t)snprintf(path, sizeof path, "%s/%s/%s", devices, device, folder) >= sizeof path)
        return -1;
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Reads a file's first line, without its end; false: it does not exist, or is too long. */
static bool read_line(const char *devices, const char *device, const char *folder, const char *name, char out[FILE_MAX])
{
    int at = strchr(name, '/') || *name == '.' ? -1 : open_below(devices, device, folder);
    int fd = at < 0 ? -1 : openat(at, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, FILE_MAX - 1);

    if (fd >= 0)
        close(fd);
    if (at >= 0)
        close(at);
    if (n < 0)
        return false;
    out[n] = 0;
    out[strcspn(out, "\n")] = 0;
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Appends the names in a folder, in order; what has a dot in it belongs to another name ("energy-pkg.unit"). */
static void list_folder(DIR *dir, struct buf *out)
{
    char *names[LIST_MAX];
    size_t count = 0;

    for (struct dirent *entry; count < LIST_MAX && (entry = readdir(dir));) {
        if (!strchr(entry->d_name, '.') && (names[count] = strdup(entry->d_name)))
            count++;
    }
    qsort(names, count, sizeof *names, by_name);
    for (size_t i = 0; i < count; i++) {
        buf_printf(out, "%s%s", i ? ", " : "", names[i]);
        free(names[i]);
    }
}

static void list(const char *devices, const char *device, const char *folder, struct buf *out)
{
    int fd = open_below(devices, device, folder);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (dir) {
        list_folder(dir, out);
        closedir(dir);
    } else if (fd >= 0) {
        close(fd);
    }
}

void pmu_list_devices(const char *devices, struct buf *out)
{
    list(devices, ".", "", out);
}

void pmu_list_events(const char *devices, const char *device, struct buf *out)
{
    list(devices, device, "events", out);
}

/* ---- bits ---- */

/* Reads a number below 64 at `*at`. */
static bool take_bit(const char **at, unsigned *out)
{
    unsigned n = 0;
    const char *from = *at;

    for (; **at >= '0' && **at <= '9' && n < 64; (*at)++)
        n = n * 10 + (unsigned)(**at - '0');
    *out = n;
    return *at > from && n < 64;
}

struct error *pmu_put_bits(const char *format, uint64_t value, struct pmu_event *out)
{
    const char *at = strncmp(format, "config", 6) ? NULL : format + 6;
    unsigned which = 0, used = 0, first, last;

    if (at && (*at == '1' || *at == '2'))
        which = (unsigned)(*at++ - '0');
    if (at && *at == '3')
        return error_create(ERROR_UNSUPPORTED, "it belongs to perf_event_attr.config3, which pycap does not set");
    if (!at || *at != ':')
        return error_create(ERROR_FORMAT, "the kernel's description of it is not understood: '%s'", format);
    do {
        at++;
        if (!take_bit(&at, &first))
            return error_create(ERROR_FORMAT, "the kernel's description of it is not understood: '%s'", format);
        last = first;
        if (*at == '-' && (at++, !take_bit(&at, &last) || last < first))
            return error_create(ERROR_FORMAT, "the kernel's description of it is not understood: '%s'", format);
        for (unsigned bit = first; bit <= last; bit++, used++) {
            uint64_t one = used < 64 ? value >> used & 1 : 0;
            out->config[which] = (out->config[which] & ~(UINT64_C(1) << bit)) | one << bit;
        }
    } while (*at == ',');
    if (*at && *at != ' ')
        return error_create(ERROR_FORMAT, "the kernel's description of it is not understood: '%s'", format);
    if (used < 64 && value >> used)
        return error_create(ERROR_USAGE, "it has %u bits", used);
    return NULL;
}

/* ---- terms ---- */

struct finder {
    const char *devices, *device;
    struct pmu_event *out;
};

/* Parses a decimal number, or a hexadecimal one behind "0x". */
static bool read_value(const char *text, uint64_t *out)
{
    bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const char *digits = is_hex ? text + 2 : text, *accepted = is_hex ? "0123456789abcdefABCDEF" : "0123456789";
    size_t len = strlen(digits);

    if (!len || strspn(digits, accepted) != len || len > (is_hex ? 16 : 19))
        return false;
    *out = strtoull(digits, NULL, is_hex ? 16 : 10);
    return true;
}

/* The PMU's type, and whether its events can be attributed to threads. */
static struct error *find_device(const struct finder *f)
{
    char line[FILE_MAX];
    uint64_t type;
    struct buf known = {0};

    if (read_line(f->devices, f->device, "", "type", line) && read_value(line, &type) && type <= UINT32_MAX) {
        f->out->type = (uint32_t)type;
        if (read_line(f->devices, f->device, "", "cpumask", line))
            return error_create(ERROR_UNSUPPORTED, "the PMU %s counts for a whole package of CPUs and takes no samples, so no "
                                "thread can be told from it; perf stat shows its counts", f->device);
        if (!read_line(f->devices, f->device, "", "cpus", line))
            return NULL;
        if (strlen(line) >= sizeof f->out->cpus)
            return error_create(ERROR_FORMAT, "the PMU %s has a list of CPUs that is too long", f->device);
        memcpy(f->out->cpus, line, strlen(line) + 1);
        return NULL;
    }
    pmu_list_devices(f->devices, &known);
    bool is_cpu = !strcmp(f->device, "cpu") || !strncmp(f->device, "cpu_", 4);
    struct error *err = error_create(is_cpu ? ERROR_UNSUPPORTED : ERROR_USAGE, "this host has no PMU '%s'%s; it has %s", f->device,
                                     is_cpu ? ": its CPUs' counters are not there, as in many virtual machines" : "",
                                     known.len_bytes ? buf_cstr(&known) : "none");
    buf_deinit(&known);
    return err;
}

static struct error *unknown_term(const struct finder *f, const char *name)
{
    struct buf formats = {0}, events = {0};

    list(f->devices, f->device, "format", &formats);
    pmu_list_events(f->devices, f->device, &events);
    struct error *err = error_create(ERROR_USAGE, "'%s' is neither a term nor an event of the PMU %s; terms: %s; events: %s", name,
                                     f->device, formats.len_bytes ? buf_cstr(&formats) : "none",
                                     events.len_bytes ? buf_cstr(&events) : "none");
    buf_deinit(&formats);
    buf_deinit(&events);
    return err;
}

/* Turns an error about a term's value into one that names both. */
static struct error *refused_value(const struct finder *f, const char *name, const char *value, struct error *why)
{
    if (!why)
        return NULL;
    struct error *err = error_create(why->code, "PMU %s: %s=%s: %s", f->device, name, value, error_text(why));
    error_destroy(why);
    return err;
}

/* A term with a value; "1" where none was given. */
static struct error *put_term(const struct finder *f, const char *name, const char *value)
{
    static const char *const whole[] = {"config", "config1", "config2"};
    char format[FILE_MAX];
    uint64_t n;

    if (!strcmp(value, "?"))
        return NULL; /* whoever names the event says it: find_terms() checks */
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        if (strcmp(name, whole[i]))
            continue;
        if (!read_value(value, &f->out->config[i]))
            return error_create(ERROR_USAGE, "PMU %s: %s=%s: that is no number, like 60 or 0x3c", f->device, name, value);
        return NULL;
    }
    if (!read_line(f->devices, f->device, "format", name, format))
        return unknown_term(f, name);
    if (!read_value(value, &n))
        return error_create(ERROR_USAGE, "PMU %s: %s=%s: that is no number, like 60 or 0x3c", f->device, name, value);
    return refused_value(f, name, value, pmu_put_bits(format, n, f->out));
}

/* Splits "a=1,b" at its first comma; returns the rest, or NULL at the end. */
static const char *split_term(const char *text, char name[TERM_MAX], char value[TERM_MAX])
{
    size_t len = strcspn(text, ","), key = strcspn(text, "=,");
    size_t value_len = key < len ? len - key - 1 : 0;

    snprintf(name, TERM_MAX, "%.*s", (int)(key < TERM_MAX ? key : TERM_MAX - 1), text);
    snprintf(value, TERM_MAX, "%.*s", (int)(value_len < TERM_MAX ? value_len : TERM_MAX - 1), key < len ? text + key + 1 : "");
    return text[len] ? text + len + 1 : NULL;
}

static bool terms_have(const char *terms, const char *name)
{
    char other[TERM_MAX], value[TERM_MAX];

    while (terms) {
        terms = split_term(terms, other, value);
        if (!strcmp(other, name) && strcmp(value, "?"))
            return true;
    }
    return false;
}

/* The terms of an event with a name of its own. `asked` are all that the user wrote: they fill in what is left open. */
static struct error *put_named(const struct finder *f, const char *event, const char *terms, const char *asked)
{
    char name[TERM_MAX], value[TERM_MAX];

    while (terms) {
        terms = split_term(terms, name, value);
        if (!strcmp(value, "?") && !terms_have(asked, name))
            return error_create(ERROR_USAGE, "PMU %s: the event %s wants the term %s=NUMBER beside it", f->device, event, name);
        TRY(put_term(f, name, *value ? value : "1"));
    }
    return NULL;
}

static struct error *put_asked(const struct finder *f, const char *name, const char *value, const char *asked)
{
    char line[FILE_MAX];
    size_t len = strlen(name);

    if (*value)
        return put_term(f, name, value);
    if (read_line(f->devices, f->device, "events", name, line))
        return put_named(f, name, line, asked);
    if (*name == 'r' && len > 1 && len <= 17 && strspn(name + 1, "0123456789abcdefABCDEF") == len - 1) {
        f->out->config[0] = strtoull(name + 1, NULL, 16);
        return NULL;
    }
    return put_term(f, name, "1");
}

struct error *pmu_find(const char *devices, const char *device, const char *terms, struct pmu_event *out)
{
    const struct finder f = {devices, device, out};
    char name[TERM_MAX], value[TERM_MAX], line[FILE_MAX];

    *out = (struct pmu_event){0};
    TRY(find_device(&f));
    /* Events first, whatever their place: the terms beside one change it. */
    for (int pass = 0; pass < 2; pass++) {
        for (const char *at = terms; at;) {
            at = split_term(at, name, value);
            bool is_event = !*value && read_line(devices, device, "events", name, line);
            if (is_event == !pass)
                TRY(put_asked(&f, name, value, terms));
        }
    }
    return NULL;
}
