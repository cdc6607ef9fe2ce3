/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the emitters share: a small made-up profile, and its text in a format. */
#ifndef TESTS_UNIT_EMIT_FIXTURE_H
#define TESTS_UNIT_EMIT_FIXTURE_H

#include "tests/unit/test.h"

#include <jansson.h>
#include <stdio.h>

#include "formats/emit/emit.h"
#include "tests/tools/emit_synthetic.h"

static const struct emit_options plain = {.name = "test", .exporter = "pysym test", .top_count = 10};
static const struct emit_options by_thread = {.name = "test", .exporter = "pysym test", .merge = EMIT_MERGE_THREAD};

/* What a format makes of the samples; the caller frees it. */
static inline char *emit_bytes(const struct synthetic *s, const char *format, struct emit_options options, size_t *len_bytes)
{
    char *bytes = NULL;
    const struct emitter *emitter = emitter_find(format);

    assert_non_null(emitter);
    FILE *out = open_memstream(&bytes, len_bytes);
    assert_non_null(out);
    struct error *err = synthetic_emit(s, emitter, &options, out);
    if (err)
        print_error("%s\n", error_text(err));
    assert_null(err);
    assert_int_equal(fclose(out), 0);
    return bytes;
}

/* The same of a format that is text. */
static inline char *emit(const struct synthetic *s, const char *format, struct emit_options options)
{
    size_t len;
    char *text = emit_bytes(s, format, options, &len);

    assert_int_equal(strlen(text), len);
    return text;
}

static inline void expect(const struct synthetic *s, const char *format, struct emit_options options, const char *golden)
{
    char *text = emit(s, format, options);

    assert_string_equal(text, golden);
    free(text);
}

static inline bool contains(const struct synthetic *s, const char *format, struct emit_options options, const char *part)
{
    char *text = emit(s, format, options);
    bool found = strstr(text, part);

    if (!found)
        print_error("no '%s' in:\n%s\n", part, text);
    free(text);
    return found;
}

/* One process, one thread, one event of 10 ms. */
static inline void setup_one(struct synthetic *s)
{
    synthetic_thread(s, synthetic_process(s, 100, "python3"), 101, "MainThread");
    synthetic_event(s, "cpu-clock", "ns", true);
}

static inline void sample(struct synthetic *s, uint32_t thread, uint32_t stack)
{
    synthetic_sample(s, (struct emit_sample){.time_ns = 10000001000 + s->samples.count * 10000000,
                                             .value = 10000000,
                                             .thread = thread,
                                             .cpu = 3,
                                             .stack = stack});
}

/* main -> C.run -> memcpy -> kernel, twice; C.run alone on another line; a torn stack; in two threads. */
static inline void setup_small(struct synthetic *s)
{
    setup_one(s);
    synthetic_thread(s, 0, 102, "worker");
    uint32_t module = synthetic_stack(s, EMIT_NO_STACK, synthetic_python(s, "<module>", "/srv/x.py", 1, 1, 1));
    uint32_t run = synthetic_stack(s, module, synthetic_python(s, "C.run", "/srv/x.py", 42, 9, 40));
    uint32_t run2 = synthetic_stack(s, module, synthetic_python(s, "C.run", "/srv/x.py", 43, 5, 40));
    uint32_t native =
        synthetic_stack(s, run, synthetic_native(s, "memcpy", "/usr/lib/libc.so.6", 0x7f0000001000, 0x12));
    uint32_t kernel =
        synthetic_stack(s, native, synthetic_kernel(s, "do_syscall_64", "[kernel.kallsyms]", 0xffffffff81000000, 0x5c));
    uint32_t torn = synthetic_stack(s, EMIT_NO_STACK, synthetic_mark(s, "[torn]"));
    sample(s, 0, kernel);
    sample(s, 1, kernel);
    sample(s, 0, kernel);
    sample(s, 0, run2);
    sample(s, 1, torn);
}

static inline json_t *parse_speedscope(const struct synthetic *s, struct emit_options options)
{
    char *text = emit(s, "speedscope", options);
    json_error_t error;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &error); /* refuses invalid UTF-8 */

    if (!json)
        print_error("%s\n", error.text);
    assert_non_null(json);
    free(text);
    return json;
}

#endif
