/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces whose records were changed behind correct checksums (trace_mutator.h), through every output of pysym. The
 * input's first byte chooses output and options, the rest is the trace. Beside what the sanitizers find, it is a fault
 * if an output holds a character that controls a terminal or misleads its reader, or is not JSON, not XML, no page or no
 * profile of pprof's, where it should be.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/base/clock.h"
#include "formats/base/utf8.h"
#include "symbolize/convert.h"
#include "symbolize/live/live_consumer.h"
#include "symbolize/live/page.h"
#include "tests/fuzz/check_page.h"
#include "tests/fuzz/check_profile.h"
#include "tests/fuzz/check_xml.h"
#include "tests/fuzz/trace_mutator.h"
#include "tests/tools/memory_files.h"
#include "tests/tools/perf_data_reader.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t len_bytes, size_t max_bytes, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data, size_t len_bytes, const uint8_t *other, size_t other_len_bytes,
                                 uint8_t *out, size_t max_bytes, unsigned seed);

enum { OUTPUT_MOST_BYTES = 64 << 20 };

static char sources[] = "/tmp/fuzz_pysym-sources-XXXXXX"; /* a folder */

static const char *const outputs[][8] = {
    {"folded"},
    {"speedscope"},
    {"perf-script"},
    {"perf-data", "-o", "perf.data"},
    {"perf-data", "-o", "perf.data", "--show-interpreter", "--full-filenames"},
    {"perf-data", "-o", "perf.data", "--hide=^_", "--labels"},
    {"perf-data", "-o", "perf.data", "--native-names", "--interpreter", "show"},
    {"html"},
    {"html", "--full-filenames", "--columns", "--show-interpreter"},
    {"ndjson"},
    {"pprof"},
    {"top"},
    {"gil", "--top", "0"},
    {"gil", "--json", "--merge", "all", "--by", "line"},
    {"summary"},
    {"unwind-check"},
    {"dump"},
    {"folded", "--threads", "--labels", "--columns", "--full-filenames", "--show-interpreter"},
    {"perf-script", "--show-interpreter", "--full-filenames"},
    {"speedscope", "--labels", "--function"},
    {"top", "--top", "0", "--gil"},
    {"summary", "--strict=all", "-v"},
    {"summary", "--json"},
    {"speedscope", "--merge", "process"},
    {"folded", "--merge", "all"},
    {"pprof", "--labels", "--label-cpu", "--qualify", "--columns", "--show-interpreter"},
    {"pprof", "--merge", "process", "--full-filenames", "--group=file", "--time", "10%,"},
    {"top", "--json", "--by", "line", "--merge", "thread"},
    {"folded", "--comm", "e", "--thread", ".", "--focus", "[a-m]", "--min=1%"},
    {"folded", "--group", "package", "--collapse-recursion", "--time", ",90%", "--hide=^_"},
    {"top", "--root-at", "a", "--ignore", "zz", "--layer=python,kernel"},
    {"folded", "--pid", "4294967295", "--task", "x", "--around", "e"},
    {"summary", "--callers-of", "e", "--cgroup", "/", "--cpu=0-3"},
    {"tree"},
    {"tree", "--min=0%", "--by", "line", "--show-interpreter", "--full-filenames"},
    {"brief"},
    {"brief", "--merge", "all", "--top", "0"},
    {"svg"},
    {"svg", "--min=0%", "--by=line", "--columns", "--labels"},
    {"firefox"},
    {"firefox", "--labels", "--full-filenames", "--columns", "--show-interpreter"},
    {"firefox", "--merge", "process", "--group", "file"},
    {"annotate"},
    {"annotate", "--top", "0", "--all-lines", "--source", sources},
    {"annotate", "--json", "--top", "0", "--context", "0", "--source", sources},
    {"html", "--embed-source", "--source", sources},
    {"live"},
    {"live", "--gil", "--show-interpreter", "--max-memory", "8M"},
    {"threads"},
    {"threads", "--json"},
    {"threads", "--merge", "thread", "--labels"},
};
enum { OUTPUTS = sizeof outputs / sizeof *outputs };

/* Collects an output; refuses what is too long, as a full disk would. */
static ssize_t collect(void *state, const char *data, size_t len_bytes)
{
    struct buf *out = state;

    if (out->len_bytes + len_bytes > OUTPUT_MOST_BYTES)
        return 0;
    buf_put(out, data, len_bytes);
    return (ssize_t)len_bytes;
}

static void check_characters(const struct buf *out, const char *controls)
{
    for (size_t i = 0, n; i < out->len_bytes; i += n) {
        uint32_t code;
        n = utf8_decode(out->data + i, out->len_bytes - i, &code);
        if (!n || (utf8_is_control(code) && !(code && code < 128 && strchr(controls, (int)code))))
            __builtin_trap();
    }
}

static void check_text(const struct buf *out)
{
    check_characters(out, "\n\t");
}

static void check_line(const struct buf *out)
{
    check_characters(out, "");
}

static void check_json(const char *text, size_t len_bytes)
{
    /* Sums of weights may be more than jansson's integers hold. */
    json_t *json = json_loadb(text, len_bytes, JSON_DECODE_INT_AS_REAL | JSON_REJECT_DUPLICATES, NULL);

    if (!json)
        __builtin_trap();
    json_decref(json);
}

static void check_json_lines(const struct buf *out)
{
    for (size_t i = 0; i < out->len_bytes;) {
        const char *line = (const char *)out->data + i, *end = memchr(line, '\n', out->len_bytes - i);
        if (!end)
            __builtin_trap();
        check_json(line, (size_t)(end - line));
        i += (size_t)(end - line) + 1;
    }
}

/* The records of a perf.data file, and the names in them. */
static void check_perf_data(const struct buf *out)
{
    enum { COMM = 3, MMAP2 = 10, CGROUP = 19 };
    struct perf_data_reader reader;
    struct perf_data_record record;
    bool broken;

    if (!perf_data_open(&reader, out->data, out->len_bytes))
        __builtin_trap();
    while (perf_data_next(&reader, &record, &broken)) {
        size_t name = record.type == MMAP2 ? 64 : 8;
        if (record.type != COMM && record.type != MMAP2 && record.type != CGROUP)
            continue;
        struct buf text = {.data = (uint8_t *)record.body + name, .len_bytes = strlen((const char *)record.body + name)};
        check_line(&text);
    }
    if (broken)
        __builtin_trap();
}

static void check_output(const struct options *o, const struct buf *out)
{
    const char *format = o->choice.emitter ? o->choice.emitter->name : "";

    if (!strcmp(format, "perf-data"))
        check_perf_data(out);
    else if (!strcmp(format, "pprof"))
        profile_check(out);
    else
        check_text(out);
    if (!strcmp(format, "svg"))
        xml_check(out);
    if (!strcmp(format, "html"))
        page_check(out);
    if (!strcmp(format, "speedscope") || !strcmp(format, "firefox") || o->emit.json)
        check_json((const char *)out->data, out->len_bytes);
    else if (!strcmp(format, "ndjson"))
        check_json_lines(out);
}

static FILE *open_buf(struct buf *out)
{
    return fopencookie(out, "w", (cookie_io_functions_t){.write = collect});
}

/* Every table of the live view, as the screen would get it. */
static void check_view(struct live_tally *tally)
{
    struct live_page page = {0};

    for (uint32_t i = 0; i < 3 * 2 * 2 * 2; i++) {
        struct live_view view = {.table = (enum live_table)(i % 3), .by_line = i / 3 & 1, .measure = i / 6 & 1, .python_only = i / 12 & 1,
                                 .interval_ns = 1};
        if (!live_page_make(&page, tally, &view, 24, 80))
            __builtin_trap();
        for (size_t line = 0; line < page.used; line++)
            check_line(&page.lines.data[line].text);
    }
    live_page_deinit(&page);
}

static struct error *run_live(const struct options *o, FILE *trouble)
{
    struct live_feed feed = {.wake_fd = -1};
    struct convert_outcome outcome;

    struct error *err = live_tally_create(NS_PER_MS, &feed.tally);
    if (!err)
        err = convert_run(o, &(struct convert_output){.live = &feed}, trouble, &outcome);
    check_view(feed.tally);
    live_tally_destroy(feed.tally);
    return err;
}

static void run(char **argv, int argc)
{
    struct options o;
    struct convert_outcome outcome = {0};
    struct buf messages = {0};
    struct memory_files files = {.most_bytes = OUTPUT_MOST_BYTES};
    FILE *out = memory_files_open(&files, "output"), *trouble = open_buf(&messages);

    struct error *err = options_parse(argc, argv, &o);
    if (err)
        __builtin_trap();
    o.emit.name = "fuzz";
    o.emit.exporter = "pysym fuzz";
    if (o.choice.emitter && o.choice.emitter->needs_files)
        o.emit.files = &files.files;
    err = o.choice.kind == OUTPUT_LIVE ? run_live(&o, trouble)
                                       : convert_run(&o, &(struct convert_output){.file = out}, trouble, &outcome);
    if (err)
        buf_put_str(&messages, error_text(err));
    bool whole = memory_files_close(&files) && !err;
    fclose(trouble);
    if (whole) {
        buf_cstr(&files.list.data[0]->data);
        check_output(&o, &files.list.data[0]->data);
    }
    check_text(&messages);
    error_destroy(err);
    options_deinit(&o);
    memory_files_deinit(&files);
    buf_deinit(&messages);
}

static void write_source(const char *name, const char *text)
{
    char path[64];

    snprintf(path, sizeof path, "%s/%s", sources, name);
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) == EOF || fclose(file))
        __builtin_trap();
}

static void remove_sources(void)
{
    static const char *const names[] = {"part0.py", "part1.py", "program.py", ""};
    char path[64];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", sources, names[i]);
        remove(path);
    }
}

/* Source files of the names that the seeds have, with characters that must not reach a terminal. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    if (!mkdtemp(sources) || atexit(remove_sources))
        __builtin_trap();
    write_source("part0.py", "# coding: latin-1\nx = '\x1b[31m\xff\x9b' # \x85\r\n\ttab\f\n\n\n\n\n\n\nlast");
    write_source("part1.py", "\xef\xbb\xbf# \xe2\x80\xae bidi \xc2\x9b\x33\x31m \xed\xa0\x80 \xff\r\rdef level1_0():\n");
    write_source("program.py", "");
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    char path[32], *argv[16] = {"pysym", path, "--no-host", "--format"};
    int argc = 4, fd = memfd_create("fuzz", MFD_CLOEXEC);

    if (!len_bytes) {
        close(fd);
        return 0;
    }
    const char *const *words = outputs[data[0] % OUTPUTS];
    if (write(fd, data + 1, len_bytes - 1) != (ssize_t)len_bytes - 1)
        __builtin_trap();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    for (int i = 0; i < 8 && words[i]; i++)
        argv[argc++] = (char *)words[i];
    run(argv, argc);
    close(fd);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t len_bytes, size_t max_bytes, unsigned seed)
{
    struct mutator m;

    mutator_open(&m, data + 1, len_bytes ? len_bytes - 1 : 0, seed);
    mutator_change(&m);
    uint8_t chosen = mutator_below(&m, 4) && len_bytes ? data[0] : (uint8_t)mutator_below(&m, OUTPUTS);
    size_t written = max_bytes ? mutator_write(&m, data + 1, max_bytes - 1) : 0;
    mutator_close(&m);
    if (!written)
        return len_bytes;
    data[0] = chosen;
    return written + 1;
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *data, size_t len_bytes, const uint8_t *other, size_t other_len_bytes,
                                 uint8_t *out, size_t max_bytes, unsigned seed)
{
    struct mutator m, with;

    if (!len_bytes || !other_len_bytes || !max_bytes)
        return 0;
    mutator_open(&m, data + 1, len_bytes - 1, seed);
    mutator_open(&with, other + 1, other_len_bytes - 1, seed);
    mutator_cross(&m, &with);
    size_t written = mutator_write(&m, out + 1, max_bytes - 1);
    mutator_close(&m);
    mutator_close(&with);
    out[0] = data[0];
    return written ? written + 1 : 0;
}
