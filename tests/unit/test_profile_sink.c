/* SPDX-License-Identifier: Apache-2.0 */
/* From samples to messages on the pipe: series, events, windows and chunks, then what was lost. */
#include "tests/unit/test.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "symbolize/push/profile_sink.h"
#include "tests/tools/emit_synthetic.h"
#include "tests/unit/pprof_text.h"

#define S UINT64_C(1000000000)
#define MIDNIGHT (UINT64_C(1700006400) * S) /* 2023-11-15 */

struct world {
    struct synthetic s;
    struct emit_capture capture;
    struct push_request request;
    struct store_kind store;
    struct limits limits;
    struct series *series;
    struct profile_sink *sink;
    struct parts *parts;
    int ends[2];
    struct profile_pipe pipe;
};

/* Two processes, two events; three functions, of which one is called by another many times over. */
static void begin(struct world *w, uint32_t rows, uint32_t depth)
{
    static const struct emit_label_set no_labels = {0};
    const struct emit_options emit = {.name = "t", .exporter = "pysym test", .limits = &w->limits};
    uint32_t stack = EMIT_NO_STACK;

    *w = (struct world){.request = {.max_series = 100}, .store = {.max_rows = rows, .max_raw_bytes = 1 << 20},
                        .limits = {.memory_max = 64 << 20, .work_max = UINT64_MAX}};
    synthetic_thread(&w->s, synthetic_process(&w->s, 10, "web"), 10, "main");
    synthetic_thread(&w->s, synthetic_process(&w->s, 20, "cron"), 20, "main");
    synthetic_event(&w->s, "cpu-clock", "ns", true);
    synthetic_event(&w->s, "page-faults", "bytes", false);
    w->s.events.data[1].kind = EVENT_BYTES;
    for (uint32_t i = 0; i < depth; i++)
        stack = synthetic_stack(&w->s, stack, synthetic_python(&w->s, "f", "/srv/app.py", i + 1, 0, 1));
    w->capture = (struct emit_capture){.name = "c", .hostname = "web-1", .kernel_release = "", .machine = "", .cpu_model = "", .recorder = "",
                                       .monotonic_ns = 1000 * S, .realtime_ns = MIDNIGHT, .start_ns = 1000 * S,
                                       .start_realtime_ns = MIDNIGHT, .duration_ns = 40 * S};
    w->s.model.captures = &w->capture;
    w->s.model.capture_count = 1;
    w->s.model.label_sets = &no_labels;
    w->s.model.label_set_count = 1;
    w->s.model.filters = "";
    assert_int_equal(pipe2(w->ends, O_CLOEXEC | O_NONBLOCK), 0);
    w->pipe.fd = w->ends[1];
    OK(series_create(&w->request, &w->limits, &w->series));
    OK(profile_sink_create(&w->pipe, &w->store, w->series, &w->limits, &w->sink));
    const struct parts_options options = {.by = PARTS_BY_SERIES, .window_ns = 15 * S, .input_count = 1, .sink = profile_sink_parts(w->sink)};
    OK(parts_create(&options, emitter_find("pprof"), &w->s.model, &emit, &w->parts));
}

static void finish(struct world *w)
{
    parts_emitter.destroy(w->parts);
    profile_sink_destroy(w->sink);
    series_destroy(w->series);
    assert_int_equal(w->limits.memory_used, 0);
    close(w->ends[0]);
    close(w->ends[1]);
    synthetic_deinit(&w->s);
}

static void sample(struct world *w, uint32_t thread, uint32_t event, uint64_t since_start_ms, uint32_t stack, uint64_t value)
{
    OK(parts_emitter.sample(w->parts, &(struct emit_sample){.time_ns = 1000 * S + since_start_ms * 1000000, .value = value, .thread = thread,
                                                            .event = event, .stack = stack}));
}

static void put_profile(const struct push_profile *p, struct buf *out)
{
    struct buf raw = pprof_unzip(p->data, p->len_bytes), text = {0};

    buf_printf(out, "profile [%d,%d) last %d, chunk %u, %d samples, %d rows:", (int)((p->window_begin_ns - MIDNIGHT) / S),
               (int)((p->window_end_ns - MIDNIGHT) / S), (int)((p->last_ns - MIDNIGHT) / S), p->chunk, (int)p->samples, (int)p->rows);
    for (uint32_t i = 0; i < p->label_count; i++)
        buf_printf(out, " %s=%s", p->labels[i].name, p->labels[i].value);
    buf_put_u8(out, '\n');
    assert_int_equal(raw.len_bytes, p->raw_len_bytes);
    pprof_put_profile((struct pprof_bytes){raw.data, raw.len_bytes}, &text);
    for (char *line = strtok((char *)(uintptr_t)buf_cstr(&text), "\n"); line; line = strtok(NULL, "\n")) {
        if (!strncmp(line, "type", 4) || !strncmp(line, "every", 5) || !strncmp(line, "sample", 6) || !strncmp(line, "comment", 7))
            buf_printf(out, "  %s\n", line);
    }
    buf_deinit(&raw);
    buf_deinit(&text);
}

/* Ends the output; compares the messages, as text. */
static void assert_messages(struct world *w, const char *expected)
{
    struct profile_label labels[PROFILE_LABELS_MAX];
    struct converter_message m;
    struct message_head head;
    struct buf text = {0};
    uint8_t begins[MESSAGE_HEAD_BYTES], *body;

    OK(parts_emitter.end(w->parts));
    while (read(w->ends[0], begins, sizeof begins) == sizeof begins) {
        OK(message_read_head(begins, &head));
        body = malloc(head.len_bytes);
        assert_int_equal(read(w->ends[0], body, head.len_bytes), head.len_bytes);
        OK(message_read(head, body, labels, &m));
        if (m.event == CONVERTER_PROFILE)
            put_profile(&m.profile, &text);
        else
            buf_printf(&text, "lost %d %s%s\n", (int)m.count, m.text, m.is_sample ? "" : ", a part");
        free(body);
    }
    assert_string_equal(buf_cstr(&text), expected);
    buf_deinit(&text);
}

TEST(series_and_events)
{
    struct world w;

    begin(&w, 100, 2);
    sample(&w, 0, 0, 1000, 0, 10);
    sample(&w, 0, 1, 2000, 1, 4096);
    sample(&w, 1, 0, 3000, 1, 10);
    sample(&w, 0, 0, 4000, 1, 10);
    sample(&w, 0, 0, 5000, 0, 10);
    sample(&w, 0, 0, 31000, 0, 10);
    OK(parts_lose(w.parts, 0, 1006 * S, &(struct emit_loss){.name = "ring_full", .meaning = "", .event = "cpu-clock", .count = 3,
                                                                .is_sample = true}));
    OK(parts_lose(w.parts, 0, 1032 * S, &(struct emit_loss){.name = "string_cut", .meaning = "", .event = "", .count = 2}));
    assert_messages(&w,
                    "profile [0,15) last 5, chunk 0, 3 samples, 2 rows: __name__=process_cpu host=web-1 service_name=web\n"
                    "  type samples/count\n  type cpu/nanoseconds\n  every 0 from 1700006400000000000 for 15000000000\n"
                    "  sample 1: 2 20\n  sample 2 1: 1 10\n"
                    "profile [0,15) last 2, chunk 0, 1 samples, 1 rows: __name__=page_faults host=web-1 service_name=web\n"
                    "  type samples/count\n  type page_faults/bytes\n  every 0 from 1700006400000000000 for 15000000000\n"
                    "  sample 2 1: 1 4096\n"
                    "profile [0,15) last 3, chunk 0, 1 samples, 1 rows: __name__=process_cpu host=web-1 service_name=cron\n"
                    "  type samples/count\n  type cpu/nanoseconds\n  every 0 from 1700006400000000000 for 15000000000\n"
                    "  sample 2 1: 1 10\n"
                    "profile [30,45) last 31, chunk 0, 1 samples, 1 rows: __name__=process_cpu host=web-1 service_name=web\n"
                    "  type samples/count\n  type cpu/nanoseconds\n  every 0 from 1700006430000000000 for 10000000000\n"
                    "  sample 1: 1 10\n"
                    "profile [30,45) last 32, chunk 0, 2 samples, 2 rows: __name__=pycap_lost host=web-1 service_name=pycap\n"
                    "  type lost/count\n  type incomplete/count\n  every 1 from 1700006430000000000 for 10000000000\n"
                    "  sample 1 2: 3 0\n  sample 3: 0 2\n"
                    "lost 3 ring_full\nlost 2 string_cut, a part\n");
    assert_int_equal(profile_sink_cut_count(w.sink), 0);
    finish(&w);
}

TEST(chunks)
{
    struct world w;

    begin(&w, 2, 5);
    for (uint32_t i = 0; i < 10; i++)
        sample(&w, 0, 0, 1000, i % 5, i);
    assert_messages(&w,
                    "profile [0,15) last 1, chunk 0, 4 samples, 2 rows: __name__=process_cpu host=web-1 service_name=web\n"
                    "  type samples/count\n  type cpu/nanoseconds\n  every 0 from 1700006400000000000 for 15000000000\n"
                    "  sample 1: 2 5\n  sample 2 1: 2 7\n"
                    "profile [0,15) last 1, chunk 1, 4 samples, 2 rows: __name__=process_cpu host=web-1 service_name=web\n"
                    "  type samples/count\n  type cpu/nanoseconds\n  every 0 from 1700006400000000000 for 15000000000\n"
                    "  sample 3 2 1: 2 9\n  sample 4 3 2 1: 2 11\n"
                    "profile [0,15) last 1, chunk 2, 2 samples, 1 rows: __name__=process_cpu host=web-1 service_name=web\n"
                    "  type samples/count\n  type cpu/nanoseconds\n  every 0 from 1700006400000000000 for 15000000000\n"
                    "  sample 5 4 3 2 1: 2 13\n");
    finish(&w);
}

TEST(deep)
{
    struct world w;

    begin(&w, 10, PROFILE_DEPTH_MAX + 1);
    sample(&w, 0, 0, 1000, PROFILE_DEPTH_MAX, 10);
    sample(&w, 0, 0, 1000, PROFILE_DEPTH_MAX, 10);
    sample(&w, 0, 0, 1000, PROFILE_DEPTH_MAX - 1, 10);
    OK(parts_emitter.end(w.parts));
    assert_int_equal(profile_sink_cut_count(w.sink), 2);
    finish(&w);
}

/* Whoever reads is gone: an error, and nothing is left behind. */
TEST(no_reader)
{
    struct world w;

    begin(&w, 10, 1);
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    close(w.ends[0]);
    sample(&w, 0, 0, 1000, 0, 10);
    sample(&w, 1, 0, 1000, 0, 10);
    struct error *err = parts_emitter.end(w.parts);
    assert_non_null(err);
    error_destroy(err);
    signal(SIGPIPE, before);
    w.ends[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    finish(&w);
}

/* Each part that is open has a stream with a buffer, and there may be many parts. */
TEST(memory_of_open_parts)
{
    struct world w;

    begin(&w, 100, 2);
    uint64_t before = w.limits.memory_used;
    sample(&w, 0, 0, 1000, 0, 10);
    assert_true(w.limits.memory_used - before > BUFSIZ);
    finish(&w);
}
