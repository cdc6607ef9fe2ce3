/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles for stores that take no larger ones: in chunks whose sums are the whole, and with stacks that are not too deep. */
#include "tests/unit/emit_fixture.h"
#include "tests/unit/pprof_text.h"

#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "formats/emit/pprof/losses.h"

/* Samples by stack: as names, the innermost function first. */
struct sums {
    struct intern stacks;
    VEC(uint64_t) samples, values;
    uint32_t profiles, most_rows, deepest;
    uint64_t most_bytes;
};

static void sums_deinit(struct sums *sums)
{
    intern_deinit(&sums->stacks);
    VEC_DEINIT(&sums->samples);
    VEC_DEINIT(&sums->values);
}

static uint32_t put_stack(struct pprof_bytes profile, struct pprof_bytes ids, struct buf *out)
{
    struct pprof_field location, line, function;
    uint32_t depth = 0;

    for (; ids.len_bytes; depth++) {
        assert_true(pprof_find(profile, 4, pprof_varint(&ids) - 1, &location));
        assert_true(pprof_find(location.inside, 4, 0, &line));
        assert_true(pprof_find(profile, 5, pprof_value(line.inside, 1) - 1, &function));
        pprof_put_string(profile, pprof_value(function.inside, 2), out);
        buf_put_u8(out, ';');
    }
    return depth;
}

/* Adds up the rows of a profile; returns their samples. */
static uint64_t add_profile(struct sums *sums, struct pprof_bytes profile, const struct emit_chunk *chunk)
{
    uint64_t samples = 0, rows = 0;
    struct pprof_field row, f;
    struct buf stack = {0};

    for (; pprof_find(profile, 2, rows, &row); rows++) {
        buf_clear(&stack);
        assert_true(pprof_find(row.inside, 1, 0, &f));
        uint32_t depth = put_stack(profile, f.inside, &stack);
        uint32_t id = intern_id(&sums->stacks, stack.data, (uint32_t)stack.len_bytes, NULL);
        assert_true(VEC_EXTEND_ZERO(&sums->samples, id + 1) && VEC_EXTEND_ZERO(&sums->values, id + 1));
        assert_true(pprof_find(row.inside, 2, 0, &f));
        uint64_t n = pprof_varint(&f.inside);
        sums->samples.data[id] += n;
        sums->values.data[id] += pprof_varint(&f.inside);
        samples += n;
        sums->deepest = depth > sums->deepest ? depth : sums->deepest;
    }
    assert_int_equal(chunk->rows, rows);
    assert_int_equal(chunk->samples, samples);
    assert_int_equal(chunk->raw_bytes, profile.len_bytes);
    sums->profiles++;
    sums->most_rows = rows > sums->most_rows ? (uint32_t)rows : sums->most_rows;
    sums->most_bytes = profile.len_bytes > sums->most_bytes ? profile.len_bytes : sums->most_bytes;
    buf_deinit(&stack);
    return samples;
}

/* Emits the samples as one part; what was written is added up. Returns how many samples' stacks were cut. */
static uint64_t emit_part(const struct synthetic *s, struct emit_most most, struct limits *limits, struct sums *sums)
{
    const struct emitter *pprof = emitter_find("pprof");
    const struct emit_part part = {.process = EMIT_PART_ALL, .thread = EMIT_PART_ALL, .most = most};
    struct emit_options options = {.name = "test", .exporter = "pysym test", .merge = EMIT_MERGE_ALL, .full_paths = true,
                                   .no_comments = true, .part = &part, .limits = limits};
    struct emit_model model = s->model;
    struct emit_chunk chunk = {.more = true};
    char *bytes = NULL;
    size_t len;
    FILE *out = open_memstream(&bytes, &len);
    uint64_t cut = 0;
    void *state;

    model.filters = "";
    OK(pprof->begin(&model, &options, out, &state));
    for (size_t i = 0; i < s->samples.count; i++)
        OK(pprof->sample(state, &s->samples.data[i]));
    while (chunk.more) {
        rewind(out);
        OK(pprof->end(state));
        pprof->chunk(state, &chunk);
        assert_int_equal(fflush(out), 0);
        struct buf raw = pprof_unzip(bytes, len);
        add_profile(sums, (struct pprof_bytes){raw.data, raw.len_bytes}, &chunk);
        buf_deinit(&raw);
        cut += chunk.cut_samples;
    }
    pprof->destroy(state);
    fclose(out);
    free(bytes);
    return cut;
}

static void assert_equal(const struct sums *a, const struct sums *b)
{
    assert_int_equal(a->stacks.count, b->stacks.count);
    for (uint32_t i = 0; i < a->stacks.count; i++) {
        const struct intern_entry *e = intern_get(&a->stacks, i);
        uint32_t id = intern_find(&b->stacks, e->data, e->len_bytes);
        assert_true(id != INTERN_NONE);
        assert_int_equal(a->samples.data[i], b->samples.data[id]);
        assert_int_equal(a->values.data[i], b->values.data[id]);
    }
}

/* A function name of some length, which lives on. */
static const char *name_of(uint32_t number)
{
    static char names[1 << 17];
    static size_t used;
    char *name = names + used;

    used += (size_t)snprintf(name, sizeof names - used, "function_%u_of_many_that_have_long_names", number) + 1;
    assert_true(used < sizeof names);
    return name;
}

/* 500 stacks below 10 callers, each three times and not in a row. */
static void setup_many(struct synthetic *s)
{
    uint32_t callers[10];

    setup_one(s);
    for (uint32_t i = 0; i < 10; i++)
        callers[i] = synthetic_stack(s, EMIT_NO_STACK, synthetic_python(s, name_of(i), "/srv/a.py", 1, 0, 1));
    for (uint32_t i = 0; i < 500; i++)
        synthetic_stack(s, callers[i % 10], synthetic_python(s, name_of(10 + i), "/srv/b.py", i, 0, i));
    for (uint32_t i = 0; i < 1500; i++)
        sample(s, 0, 10 + i * 7 % 500);
}

TEST(rows)
{
    struct limits limits = {.memory_max = UINT64_MAX, .work_max = UINT64_MAX};
    struct sums whole = {0}, sums = {0};
    struct synthetic s = {0};

    setup_many(&s);
    assert_int_equal(emit_part(&s, (struct emit_most){0}, &limits, &whole), 0);
    assert_int_equal(whole.profiles, 1);
    assert_int_equal(whole.most_rows, 500);
    emit_part(&s, (struct emit_most){.rows = 33}, &limits, &sums);
    assert_int_equal(sums.profiles, 16);
    assert_int_equal(sums.most_rows, 33);
    assert_equal(&whole, &sums);
    sums_deinit(&sums);
    sums = (struct sums){0};
    emit_part(&s, (struct emit_most){.rows = 100}, &limits, &sums); /* no profile without rows at the end */
    assert_int_equal(sums.profiles, 5);
    assert_equal(&whole, &sums);
    assert_int_equal(limits.memory_used, 0);
    sums_deinit(&whole);
    sums_deinit(&sums);
    synthetic_deinit(&s);
}

/* The row with which the size is reached is the last; names of callers stand in each profile. */
TEST(bytes)
{
    struct sums whole = {0};
    struct synthetic s = {0};

    setup_many(&s);
    emit_part(&s, (struct emit_most){0}, NULL, &whole);
    for (uint64_t most = 2000; most < 20000; most += 999) {
        struct sums sums = {0};
        emit_part(&s, (struct emit_most){.raw_bytes = most}, NULL, &sums);
        assert_true(sums.most_bytes < most + 200);
        assert_in_range(sums.profiles, whole.most_bytes / most, 3 * whole.most_bytes / most);
        assert_equal(&whole, &sums);
        sums_deinit(&sums);
    }
    struct sums sums = {0};
    emit_part(&s, (struct emit_most){.raw_bytes = 1}, NULL, &sums); /* a row for each, but never none */
    assert_int_equal(sums.profiles, 500);
    assert_equal(&whole, &sums);
    sums_deinit(&sums);
    sums_deinit(&whole);
    synthetic_deinit(&s);
}

/* A stack of so many frames, named by letters from the outermost. */
static uint32_t deep_stack(struct synthetic *s, uint32_t depth)
{
    static const char *const letters[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
    uint32_t stack = EMIT_NO_STACK;

    for (uint32_t i = 0; i < depth; i++)
        stack = synthetic_stack(s, stack, synthetic_python(s, letters[i], "/srv/a.py", i + 1, 0, 1));
    return stack;
}

static void assert_has(const struct sums *sums, const char *stack, uint64_t samples)
{
    uint32_t id = intern_find(&sums->stacks, stack, (uint32_t)strlen(stack));

    assert_true(id != INTERN_NONE);
    assert_int_equal(sums->samples.data[id], samples);
}

/* Both ends of a deep stack stay: time is that of the function that spent it, below the root that it has. */
TEST(depth)
{
    struct sums sums = {0}, whole = {0};
    struct synthetic s = {0};

    setup_one(&s);
    uint32_t six = deep_stack(&s, 6), seven = deep_stack(&s, 7), nine = deep_stack(&s, 9);
    sample(&s, 0, six);
    sample(&s, 0, seven);
    sample(&s, 0, nine);
    sample(&s, 0, nine);
    assert_int_equal(emit_part(&s, (struct emit_most){.depth = 6}, NULL, &sums), 3);
    assert_int_equal(sums.deepest, 6);
    assert_has(&sums, "f;e;d;c;b;a;", 1);
    assert_has(&sums, "g;f;[truncated];c;b;a;", 1);
    assert_has(&sums, "i;h;[truncated];c;b;a;", 2);
    assert_int_equal(emit_part(&s, (struct emit_most){.depth = 9}, NULL, &whole), 0);
    assert_has(&whole, "i;h;g;f;e;d;c;b;a;", 2);
    sums_deinit(&sums);
    sums_deinit(&whole);
    synthetic_deinit(&s);
}

TEST(losses)
{
    const struct emit_loss losses[] = {{.name = "ring_full", .meaning = "", .event = "cpu-clock", .count = 7, .is_sample = true},
                                       {.name = "string_cut", .meaning = "", .event = "", .count = 2},
                                       {.name = "tick_skipped", .meaning = "", .event = "cpu-clock", .count = UINT64_MAX, .is_sample = true}};
    const struct emit_part part = {.window_begin_ns = 30, .window_end_ns = 45, .begin_ns = 33, .end_ns = 45};
    struct limits limits = {.memory_max = UINT64_MAX, .work_max = UINT64_MAX};
    struct buf text = {0};
    char *bytes = NULL;
    uint64_t raw_bytes;
    size_t len;

    FILE *out = open_memstream(&bytes, &len);
    OK(pprof_losses_write(&part, losses, 3, &limits, out, &raw_bytes));
    fclose(out);
    struct buf raw = pprof_unzip(bytes, len);
    assert_int_equal(raw.len_bytes, raw_bytes);
    pprof_put_profile((struct pprof_bytes){raw.data, raw.len_bytes}, &text);
    assert_string_equal(buf_cstr(&text),
                        "type lost/count\n"
                        "type incomplete/count\n"
                        "period lost/count\n"
                        "default \n"
                        "every 1 from 33 for 12\n"
                        "sample 1 2: 7 0\n"
                        "sample 3: 0 2\n"
                        "sample 4 2: 9223372036854775807 0\n"
                        "mapping 1 [pycap]  F---\n"
                        "location 1 M1 0 F1:0:0\n"
                        "location 2 M1 0 F2:0:0\n"
                        "location 3 M1 0 F3:0:0\n"
                        "location 4 M1 0 F4:0:0\n"
                        "function 1 ring_full :0\n"
                        "function 2 cpu-clock :0\n"
                        "function 3 string_cut :0\n"
                        "function 4 tick_skipped :0\n");
    assert_int_equal(limits.memory_used, 0);
    buf_deinit(&raw);
    buf_deinit(&text);
    free(bytes);
}
