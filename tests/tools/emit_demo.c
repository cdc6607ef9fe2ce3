/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a made-up profile in any of the output formats, to try them on their consumers.
 *
 *     emit_demo FORMAT [OPTION...] >OUT     options: threads merge_all merge_thread no_lines by_function full_paths columns samples=N
 *     emit_demo totals [samples=N]          "TID SAMPLES NANOSECONDS" per thread: what every format must add up to
 *     emit_demo bench FORMAT [samples=N]    time per sample, on stderr
 */
#include <stdio.h>
#include <time.h>

#include "tests/tools/emit_synthetic.h"

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void print_totals(const struct synthetic *s)
{
    for (uint32_t thread = 0; thread < s->model.thread_count; thread++) {
        unsigned long long samples = 0, ns = 0;
        for (size_t i = 0; i < s->samples.count; i++) {
            if (s->samples.data[i].thread == thread)
                samples++, ns += s->samples.data[i].value;
        }
        printf("%u %llu %llu\n", s->model.threads[thread].tid, samples, ns);
    }
}

/* The samples made, over and over. */
static struct error *bench(const struct synthetic *s, const struct emitter *emitter, const struct emit_options *options,
                           uint64_t count)
{
    void *state = NULL;
    double begun = now_s(), fed = begun;

    struct error *err = emitter->begin(&s->model, options, stdout, &state);
    for (uint64_t i = 0; !err && i < count; i++)
        err = emitter->sample(state, &s->samples.data[i % s->samples.count]);
    fed = now_s();
    if (!err)
        err = emitter->end(state);
    fprintf(stderr, "%s: %.1f M samples/s, %.1f ns each, then %.3f s at the end\n", emitter->name,
            (double)count / (fed - begun) / 1e6, (fed - begun) * 1e9 / (double)count, now_s() - fed);
    emitter->destroy(state);
    return err;
}

/* What pysym does to frames under --nolineno and --function. */
static void change_lines(struct emit_frame *f, bool no_lines, bool by_function)
{
    if (no_lines)
        f->line = f->column = f->function_line = 0;
    if (by_function) {
        f->line = f->function_line;
        f->column = 0;
    }
}

int main(int argc, char **argv)
{
    struct emit_options options = {.name = "demo", .exporter = "pysym 0", .top_count = 20};
    struct synthetic s = {0};
    unsigned long long count = 4000;
    const char *format = argc > 1 ? argv[1] : "";
    bool no_lines = false, by_function = false;
    bool is_bench = !strcmp(format, "bench");
    struct error *err = NULL;

    if (is_bench)
        format = argc > 2 ? argv[2] : "";
    for (int i = 2 + is_bench; i < argc; i++) {
        if (!strncmp(argv[i], "merge_", 6))
            options.merge = !strcmp(argv[i], "merge_all") ? EMIT_MERGE_ALL : EMIT_MERGE_THREAD;
        options.threads |= !strcmp(argv[i], "threads");
        no_lines |= !strcmp(argv[i], "no_lines");
        by_function |= !strcmp(argv[i], "by_function");
        options.full_paths |= !strcmp(argv[i], "full_paths");
        options.columns |= !strcmp(argv[i], "columns");
        if (!strncmp(argv[i], "samples=", 8))
            count = strtoull(argv[i] + 8, NULL, 10);
    }
    const struct emitter *emitter = emitter_find(format);
    if (!emitter && strcmp(format, "totals")) {
        fprintf(stderr, "emit_demo: no such format: %s\n", format);
        return 2;
    }
    synthetic_demo(&s, is_bench ? 100000 : (uint32_t)count);
    options.merged_lines = no_lines || by_function;
    for (size_t i = 0; i < s.frames.count; i++)
        change_lines(&s.frames.data[i], no_lines, by_function);
    if (!emitter)
        print_totals(&s);
    else if (is_bench)
        err = bench(&s, emitter, &options, count);
    else
        err = synthetic_emit(&s, emitter, &options, stdout);
    synthetic_deinit(&s);
    if (!err && fflush(stdout))
        err = error_os(1, "stdout");
    if (err) {
        fprintf(stderr, "emit_demo: %s\n", error_text(err));
        error_destroy(err);
        return 1;
    }
    return 0;
}
