/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a tracepoint's file `format`. Its lines are like
 *
 *     ID: 840
 *         field:size_t count;     offset:32;      size:8; signed:0;
 *
 * A field is a number, an array ("char comm[16]"), a pointer, or the place of something of variable length
 * ("__data_loc char[] name"). Numbers alone can be added up.
 */
#include "capture/event/tracepoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/host/procfs.h"
#include "formats/base/buf.h"

/* A field as its line declares it. */
struct field {
    const char *name;
    size_t name_len;
    uint64_t offset, size, is_signed;
    bool is_number;
};

/* Moves `at` behind `key` and the number that follows it, somewhere before `end`. */
static bool take_number(const char **at, const char *end, const char *key, uint64_t *out)
{
    const char *found = memmem(*at, (size_t)(end - *at), key, strlen(key));
    uint64_t n = 0;

    if (!found)
        return false;
    found += strlen(key);
    const char *digits = found;
    for (; found < end && *found >= '0' && *found <= '9'; found++) {
        if (n > UINT32_MAX)
            return false;
        n = n * 10 + (uint64_t)(*found - '0');
    }
    *at = found;
    *out = n;
    return found > digits;
}

static bool is_word(const char *text, size_t len, const char *word)
{
    return strlen(word) == len && !memcmp(text, word, len);
}

static bool is_name_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/*
 * The kernel says of every argument of a system call that it has 8 bytes and no sign; a call takes of the register what its
 * type says, and no more. This machine has the lowest byte first.
 */
static void narrow(const char *type, size_t len, struct field *f)
{
    static const struct {
        const char *name;
        uint8_t size;
        bool is_signed;
    } types[] = {
        {"int", 4, true},          {"unsigned int", 4, false}, {"unsigned", 4, false}, {"u32", 4, false},
        {"__u32", 4, false},       {"s32", 4, true},           {"__s32", 4, true},     {"pid_t", 4, true},
        {"uid_t", 4, false},       {"gid_t", 4, false},        {"key_serial_t", 4, true}, {"timer_t", 4, true},
        {"clockid_t", 4, true},    {"mqd_t", 4, true},         {"rwf_t", 4, true},     {"umode_t", 2, false},
        {"long", 8, true},         {"off_t", 8, true},         {"loff_t", 8, true},    {"ssize_t", 8, true},
    };

    if (f->size != 8 || f->is_signed)
        return;
    while (len && type[len - 1] == ' ')
        len--;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (is_word(type, len, types[i].name)) {
            f->size = types[i].size;
            f->is_signed = types[i].is_signed;
        }
    }
}

/* Parses "field:TYPE NAME;\toffset:N;\tsize:N;\tsigned:N;" anywhere in a line. */
static bool read_field(const char *line, const char *end, struct field *out)
{
    static const char key[] = "field:";
    const char *from = memmem(line, (size_t)(end - line), key, sizeof key - 1);

    if (!from)
        return false;
    from += sizeof key - 1;
    const char *to = memchr(from, ';', (size_t)(end - from)), *at = to;
    if (!to || !take_number(&at, end, "offset:", &out->offset) || !take_number(&at, end, "size:", &out->size) ||
        !take_number(&at, end, "signed:", &out->is_signed))
        return false;
    size_t len = (size_t)(to - from);
    out->is_number = !memchr(from, '[', len) && !memchr(from, '*', len) && !memchr(from, '(', len) &&
                     (out->size == 1 || out->size == 2 || out->size == 4 || out->size == 8) && out->offset >= 8 &&
                     out->offset + out->size <= TRACEPOINT_RECORD_MAX;
    const char *bracket = memrchr(from, '[', len);
    if (bracket && bracket > from && is_name_character(bracket[-1]) && to[-1] == ']')
        to = bracket; /* "char comm[16]"; not "__data_loc char[] name" */
    out->name = to;
    while (out->name > from && is_name_character(out->name[-1]))
        out->name--;
    out->name_len = (size_t)(to - out->name);
    if (out->is_number)
        narrow(from, (size_t)(out->name - from), out);
    return out->name_len > 0;
}

struct error *tracepoint_parse(const char *text, size_t len, const char *weight, struct tracepoint *out)
{
    const char *end = text + len, *line = text, *id = text;
    struct buf numbers = {0};
    bool there = false;
    uint64_t n;

    *out = (struct tracepoint){0};
    if (!take_number(&id, end, "ID: ", &n) || !n || n > UINT32_MAX)
        return error_create(ERROR_FORMAT, "the kernel's description of the tracepoint has no number (ID)");
    out->id = (uint32_t)n;
    for (const char *next; line < end; line = next) {
        struct field f;
        next = memchr(line, '\n', (size_t)(end - line));
        next = next ? next + 1 : end;
        if (!read_field(line, next, &f))
            continue;
        if (is_word(f.name, f.name_len, "__probe_ip") || is_word(f.name, f.name_len, "__probe_func")) {
            buf_deinit(&numbers);
            return error_create(ERROR_UNSUPPORTED, "it is a probe, which writes into the code of a process or of the kernel; "
                                                   "pycap changes neither");
        }
        if (f.is_number)
            buf_printf(&numbers, "%s%.*s", numbers.len_bytes ? ", " : "", (int)f.name_len, f.name);
        if (!weight || !is_word(f.name, f.name_len, weight))
            continue;
        there = true;
        if (f.is_number) {
            out->weight_offset = (uint32_t)f.offset;
            out->weight_size = (uint32_t)f.size;
            out->weight_signed = f.is_signed != 0;
        }
    }
    struct error *err = NULL;
    if (weight && !out->weight_size)
        err = numbers.bad ? error_no_memory()
                          : error_create(ERROR_USAGE, "its field '%s' %s; those that can be added up are: %s", weight,
                                         there ? "is no number" : "does not exist",
                                         numbers.len_bytes ? buf_cstr(&numbers) : "none");
    buf_deinit(&numbers);
    return err;
}

static struct error *unknown(int tracefs, const char *category, const char *name)
{
    struct buf near = {0};
    char *names = NULL;

    error_destroy(tracepoint_list(tracefs, &names)); /* without it nothing is near */
    if (names)
        tracepoint_put_near(names, category, name, &near);
    struct error *err = error_create(ERROR_USAGE, "this kernel has no such tracepoint; %s%s", near.len_bytes ? "like it are " : "",
                                     near.len_bytes ? buf_cstr(&near) : "pycap info --events '*:*' lists those that it has");
    free(names);
    buf_deinit(&near);
    return err;
}

struct error *tracepoint_find(int tracefs, const char *category, const char *name, const char *weight,
                              struct tracepoint *out)
{
    char path[320], *text;
    size_t len;

    if ((size_t)snprintf(path, sizeof path, "events/%s/%s/format", category, name) >= sizeof path || strchr(category, '/') ||
        strchr(name, '/') || *category == '.' || *name == '.')
        return error_create(ERROR_USAGE, "'%s:%s' is no name of a tracepoint", category, name);
    int fd = openat(tracefs, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return unknown(tracefs, category, name);
    if (fd < 0)
        return error_os(errno, "the tracepoint %s:%s cannot be read", category, name);
    struct error *err = procfs_read_open(fd, path, &text, &len);
    close(fd);
    if (err)
        return err;
    err = tracepoint_parse(text, len, weight, out);
    free(text);
    return err;
}
