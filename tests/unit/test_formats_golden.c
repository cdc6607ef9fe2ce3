/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each format makes of one profile with every kind of frame, event, label and odd name, as a whole: testdata/formats/ has
 * the texts, one for each format. Only what a profile cannot show is tested elsewhere: limits, errors, numbers at their ends.
 */
#include "tests/unit/emit_fixture.h"
#include "tests/unit/pprof_text.h"

/* ---- the profile ---- */

static const struct emit_label task_labels[] = {{"asyncio task", "fetch;1\n"}, {"interpreter", "2"}};
static const struct emit_label wait_labels[] = {{"wait", "lock"}, {"system call", "futex"}, {"waker", "7/8 <b>"}};
static const struct emit_label_set label_sets[] = {
    {0},
    {.labels = task_labels, .count = 2, .interpreter = "2"},
    {.labels = wait_labels, .count = 3, .wait = EMIT_WAIT_LOCK, .system_call = "futex"},
};
static const struct emit_setting settings[] = {{"frequency", "100"}};
static const struct emit_loss losses[] = {{"ring_full", "no room", "cpu-clock", 7, .is_sample = true}};
static const struct emit_rate rates[] = {{.event = 0, .frequency_hz = 100, .period = 10000000}};
static const struct emit_capture capture = {.name = "t.bin",
                                            .hostname = "vm",
                                            .kernel_release = "6.1",
                                            .machine = "x86_64",
                                            .cpu_model = "a CPU",
                                            .recorder = "pycap 1",
                                            .cpu_count = 4,
                                            .monotonic_ns = 9000000000,
                                            .realtime_ns = UINT64_C(1700000000123456789),
                                            .start_ns = 10000000000,
                                            .start_realtime_ns = UINT64_C(1700000001123456789),
                                            .duration_ns = 1000000000,
                                            .settings = settings,
                                            .setting_count = 1,
                                            .rates = rates,
                                            .rate_count = 1,
                                            .losses = losses,
                                            .loss_count = 1};
static const uint8_t build_id[20] = {0x93, 0xac, 0x61, 0xec, 0x5a, 0x8e, 0xb1, 0x39, 0x6f, 0x9f};
static const struct emit_segment segments[] = {
    {.vaddr = 0x400000, .file_size = 0x1000, .memory_size = 0x1000, .flags = 4},
    {.vaddr = 0x402000, .file_offset = 0x1000, .file_size = 0x1000, .memory_size = 0x1000, .flags = 5}};

/* A binary whose program headers are known, a function that is inlined into its caller, and one that has no name. */
static void setup_binary(struct synthetic *s)
{
    static const char path[] = "/usr/lib/lib.so";
    uint32_t outer = synthetic_native(s, "outer", path, 0x1235, 0x35), inner = synthetic_native(s, "inner", path, 0x1235, 0);

    s->frames.data[outer].return_address = s->frames.data[inner].return_address = s->frames.data[inner].inlined = true;
    s->frames.data[inner].file = s->frames.data[outer].file = "/src/l.c";
    s->frames.data[inner].line = 12;
    s->frames.data[outer].line = 70;
    s->mappings.data[s->frames.data[outer].mapping] = (struct emit_mapping){
        .path = path, .build_id = build_id, .build_id_len = sizeof build_id, .segments = segments, .segment_count = 2};
    uint32_t stack = synthetic_stack(s, synthetic_stack(s, EMIT_NO_STACK, outer), inner);
    stack = synthetic_stack(s, stack, synthetic_native(s, "", path, 0x1800, 0));
    synthetic_stack(s, stack, synthetic_native(s, "beyond", path, 0x9000, 0)); /* all segments */
    /* The same function at another line. */
    uint32_t elsewhere = synthetic_native(s, "outer", path, 0x1300, 0x100);
    s->frames.data[elsewhere].file = "/src/l.c";
    s->frames.data[elsewhere].line = 77;
    synthetic_stack(s, EMIT_NO_STACK, elsewhere);
    uint32_t builtin = synthetic_native(s, "r_object", "/usr/bin/python3.12", 0x40, 0);
    s->frames.data[builtin].builtin = "marshal";
    s->frames.data[builtin].file = "Python/marshal.c";
    s->frames.data[builtin].line = 7;
    synthetic_stack(s, EMIT_NO_STACK, builtin);
}

/* Names that are missing, or not what they seem. */
static void setup_names(struct synthetic *s)
{
    static const char misleading[] = "a\xe2\x80\xae" "b\xe2\x80\x8b\xc2\x85\xe2\x80\xa8\r</script><!-- & \"c\\";
    const uint32_t nameless[] = {
        synthetic_native(s, "", "/usr/lib/libfoo.so", 1, 0), synthetic_native(s, "", "/tmp/perf-100.map", 7, 0),
        synthetic_native(s, "", "/tmp/perf-x.map", 8, 0),    synthetic_native(s, "", "", 3, 0),
        synthetic_python(s, "", "/x.py", 4, 0, 0),           synthetic_kernel(s, "", "", 5, 0)};
    uint32_t stack = EMIT_NO_STACK;

    for (size_t i = 0; i < sizeof nameless / sizeof *nameless; i++)
        stack = synthetic_stack(s, stack, nameless[i]);
    stack = synthetic_stack(s, EMIT_NO_STACK, synthetic_python(s, "<lambda>", "/x.py", 0, 0, 0));
    stack = synthetic_stack(s, stack, synthetic_python(s, "<lambda>", "/x.py", 9, 0, 9));
    stack = synthetic_stack(s, stack, synthetic_python(s, "<lambda>", "/x.py", 20, 5, 20));
    synthetic_stack(s, stack, synthetic_python(s, misleading, "x.py", 1, 0, 1));
}

/* One more sample, 10 ms behind the last. */
static struct emit_sample *sample_of(struct synthetic *s, uint32_t event, uint32_t stack, uint64_t value)
{
    uint32_t n = (uint32_t)s->samples.count;

    synthetic_sample(s, (struct emit_sample){.time_ns = 10000001000 + (n + 1) * UINT64_C(10000000),
                                             .value = value,
                                             .event = event,
                                             .thread = n % s->model.thread_count,
                                             .cpu = n % 4,
                                             .stack = stack});
    return &s->samples.data[n];
}

static bool is_called_from(const struct synthetic *s, uint32_t stack)
{
    for (uint32_t i = 0; i < s->model.stack_count; i++) {
        if (s->stacks.data[i].parent == stack)
            return true;
    }
    return false;
}

/* A sample at the end of every stack, and two of each other event. */
static void setup_every_kind(struct synthetic *s)
{
    synthetic_demo(s, 0);
    setup_binary(s);
    setup_names(s);
    s->processes.data[0].name = "gunicorn";
    s->processes.data[0].container = "1f2e3d";
    s->processes.data[1].comm = s->processes.data[1].name = "my app 12;\xff\n";
    s->processes.data[1].title = "a \"b\"; 12\n";
    s->threads.data[4].name = "";
    s->processes.data[2].comm = s->processes.data[2].name = "";
    s->model.label_sets = label_sets;
    s->model.label_set_count = 3;
    s->model.captures = &capture;
    s->model.capture_count = 1;
    uint32_t faults = synthetic_event(s, "page-faults", "bytes", false);
    s->events.data[faults].kind = EVENT_BYTES;
    uint32_t waiting = synthetic_event(s, "off-cpu", "ns", true);
    s->events.data[waiting].kind = EVENT_OFF_CPU;
    uint32_t switches = synthetic_event(s, "context-switches", "switches", false);
    s->events.data[switches].kind = EVENT_COUNT;

    for (uint32_t stack = 0; stack < s->model.stack_count; stack++) {
        if (is_called_from(s, stack))
            continue;
        struct emit_sample *sample = sample_of(s, 0, stack, 10000000);
        sample->gil = stack % 3 == 0 ? EMIT_GIL_HELD : stack % 3 == 1 ? EMIT_GIL_NOT_HELD : EMIT_GIL_UNKNOWN;
        sample->label_set = stack % 5 == 2;
    }
    sample_of(s, 0, EMIT_NO_STACK, 10000000);
    sample_of(s, 0, 1, 30000400)->in_interpreter = true; /* outweighs others */
    sample_of(s, 0, 1, 10000000)->thread = 3;            /* the same again, in the same thread */
    uint32_t lock = synthetic_mark(s, "[wait: lock]");
    s->frames.data[lock].wait = "lock";
    uint32_t wait = synthetic_stack(s, 1, lock);
    for (int i = 0; i < 2; i++) {
        sample_of(s, faults, 2, 65536)->faults = 16;
        sample_of(s, switches, 2, 16);
        sample_of(s, waiting, wait, 4000000)->label_set = 2;
    }
}

/* ---- formats that are no lines of text ---- */

static void put_pprof(const char *bytes, size_t len_bytes, struct buf *out)
{
    struct buf raw = pprof_unzip(bytes, len_bytes);

    pprof_put_profile((struct pprof_bytes){raw.data, raw.len_bytes}, out);
    buf_deinit(&raw);
}

/* A line for each member that is no object, and for each array that has none. */
static void put_json(const char *path, json_t *json, struct buf *out)
{
    bool opens = json_is_object(json) || (json_is_array(json) && json_is_object(json_array_get(json, 0)));
    const char *key;
    json_t *value;
    size_t i;
    char inside[200];

    if (!opens) {
        char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
        buf_printf(out, "%s %s\n", path, text);
        free(text);
        return;
    }
    json_object_foreach(json, key, value) {
        snprintf(inside, sizeof inside, "%s%s%s", path, *path ? "." : "", key);
        put_json(inside, value, out);
    }
    json_array_foreach(json, i, value) {
        snprintf(inside, sizeof inside, "%s.%zu", path, i);
        put_json(inside, value, out);
    }
}

static void put_firefox(const char *bytes, size_t len_bytes, struct buf *out)
{
    json_t *json = json_loadb(bytes, len_bytes, JSON_REJECT_DUPLICATES, NULL);

    assert_non_null(json);
    put_json("", json, out);
    json_decref(json);
}

/* ---- the texts ---- */

static const struct {
    const char *title;
    struct emit_options options;
} sections[] = {
    {"without options", {.top_count = 40, .min_share = -1}},
    {"--full-filenames --columns --labels --merge thread --qualify --label-cpu --by line --top 8",
     {.top_count = 8, .full_paths = true, .columns = true, .labels = true, .merge = EMIT_MERGE_THREAD, .qualify = true,
      .label_cpu = true, .by = EMIT_BY_LINE}},
    {"--sort total --top 4 --min 10% --merge all", {.top_count = 4, .sort = EMIT_SORT_TOTAL, .min_share = 0.1, .merge = EMIT_MERGE_ALL}},
    {"--json --top 4", {.top_count = 4, .json = true, .min_share = -1}},
};

/* These are shown by put_pprof() and put_firefox(). */
static bool is_list_of_facts(const struct emitter *emitter)
{
    return !strcmp(emitter->name, "pprof") || !strcmp(emitter->name, "firefox");
}

/* The output as lines of text. */
static struct buf text_of(const struct synthetic *s, const struct emitter *emitter, struct emit_options options)
{
    struct buf text = {0};
    size_t len_bytes;

    options.name = "test";
    options.exporter = "pysym test";
    options.weights_differ = true;
    char *bytes = emit_bytes(s, emitter->name, options, &len_bytes);
    if (!is_list_of_facts(emitter))
        buf_put(&text, bytes, len_bytes);
    else if (emitter->binary)
        put_pprof(bytes, len_bytes, &text);
    else
        put_firefox(bytes, len_bytes, &text);
    free(bytes);
    return text;
}

/* The lines that `other` does not have. */
static void put_new_lines(const char *text, const char *other, struct buf *out)
{
    for (const char *line = text; *line;) {
        size_t len = (size_t)(strchr(line, '\n') + 1 - line);
        bool found = false;
        for (const char *at = other; !found && *at; at = strchr(at, '\n') + 1)
            found = !strncmp(at, line, len);
        if (!found)
            buf_put(out, line, len);
        line += len;
    }
}

/* A section for each set of options that changes something; of lists of facts what it changes. */
static struct buf sections_of(const struct synthetic *s, const struct emitter *emitter)
{
    struct buf out = {0}, first = text_of(s, emitter, sections[0].options);

    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        struct buf text = text_of(s, emitter, sections[i].options);
        if (i && !strcmp(buf_cstr(&text), buf_cstr(&first))) {
            buf_deinit(&text);
            continue;
        }
        buf_printf(&out, "==== %s\n", sections[i].title);
        if (i && is_list_of_facts(emitter))
            put_new_lines(buf_cstr(&text), buf_cstr(&first), &out);
        else
            buf_put(&out, text.data, text.len_bytes);
        buf_put_u8(&out, '\n');
        buf_deinit(&text);
    }
    buf_deinit(&first);
    assert_false(out.bad);
    return out;
}

/* Compares with the file; where they differ, what was found lies below the build folder. */
static bool is_golden(const char *name, struct buf *found)
{
    const char *build = getenv("BUILD");
    char path[300];
    struct buf golden = {0};

    snprintf(path, sizeof path, "testdata/formats/%s.txt", name);
    FILE *file = fopen(path, "r");
    for (int c; file && (c = fgetc(file)) != EOF;)
        buf_put_u8(&golden, (uint8_t)c);
    if (file)
        fclose(file);
    bool same = golden.len_bytes == found->len_bytes && !memcmp(golden.data, found->data, found->len_bytes);
    buf_deinit(&golden);
    if (same)
        return true;
    snprintf(path, sizeof path, "%s/tests/formats-%s.txt", build ? build : "build", name);
    file = fopen(path, "w");
    assert_non_null(file);
    fwrite(found->data, 1, found->len_bytes, file);
    fclose(file);
    print_error("diff testdata/formats/%s.txt %s\n", name, path);
    return false;
}

/* Bytes that are not to be read as text, and tables of what only a few recordings have: waits for the GIL, states of threads. */
static bool has_its_own_test(const struct emitter *emitter)
{
    static const char *const names[] = {"perf-data", "html", "gil", "threads"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!strcmp(emitter->name, names[i]))
            return true;
    }
    return false;
}

TEST(golden)
{
    struct synthetic s = {0};
    bool good = true;

    setup_every_kind(&s);
    for (const struct emitter *const *e = emitters; *e; e++) {
        if (has_its_own_test(*e))
            continue;
        struct buf text = sections_of(&s, *e);
        good = is_golden((*e)->name, &text) && good;
        buf_deinit(&text);
    }
    assert_true(good);
    synthetic_deinit(&s);
}
