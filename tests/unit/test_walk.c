/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Python frame walk, built for the host, over recorded address spaces of every
 * CPython version (testdata/spaces), and with a fault at every read in turn.
 */
#include "tests/unit/test.h"

#include <glob.h>

#include "bpf/python_retry.h"
#include "formats/base/buf.h"
#include "formats/cpython/code.h"
#include "formats/cpython/thread_name.h"
#include "formats/cpython/version.h"
#include "tests/tools/space.h"

#define SPACES "testdata/spaces/"

struct played {
    struct space *space;
    uint32_t reads, fail_at; /* the read of that number fails; 0: none */
    const uint64_t *registers; /* NULL: not known */
};

/*
 * A thread state is read as a whole, up to the thread's handle. Recordings have of it the fields that the walk read
 * one by one when they were made: the rest is zero.
 */
static bool play_state(const struct space *space, void *out, uint32_t len, uint64_t address)
{
    const struct py_layout *l = &space->layout;

    memset(out, 0, len);
    space_read(space, address + l->tstate_frame, (char *)out + l->tstate_frame, 8);
    if (l->tstate_cframe)
        space_read(space, address + l->tstate_cframe, (char *)out + l->tstate_cframe, 8);
    space_read(space, address + l->tstate_interp, (char *)out + l->tstate_interp, 8);
    return space_read(space, address + l->tstate_thread_id, (char *)out + l->tstate_thread_id, 8);
}

static int play(void *ctx, void *out, uint32_t len, uint64_t address)
{
    struct played *p = ctx;

    if (++p->reads == p->fail_at)
        return 1;
    return !space_read(p->space, address, out, len) &&
           !(len == p->space->layout.tstate_thread_id + 8u && play_state(p->space, out, len, address));
}

static bool play_code(void *ctx, uint64_t address, void *out, uint64_t len)
{
    return space_read(ctx, address, out, len);
}

static struct py_walk walk;
static struct wire_python entries[WIRE_PYTHON_MAX], truth[WIRE_PYTHON_MAX];

static void configure(struct played *p)
{
    memset(&walk, 0, sizeof walk);
    walk.config.layout = p->space->layout;
    walk.config.process = p->space->process;
    walk.config.thread_pointer = p->space->thread_pointer;
    walk.config.stack_pointer = p->space->stack_pointer;
    walk.memory = (struct walk_memory){.read = play, .ctx = p};
    p->reads = 0;
}

/* As the sampler does it. Returns the loss reason, 0 when no thread state was found. */
static uint32_t run(struct played *p)
{
    configure(p);
    if (!walk_find_tstate(&walk) && !walk_list_begin(&walk, 4096)) {
        while (!walk_list_step(&walk)) {
        }
    }
    if (!walk.result.tstate)
        return 0;
    walk_all(&walk, p->registers, entries);
    return walk.result.end;
}

static void load(const char *name, struct space *space)
{
    char path[512];

    snprintf(path, sizeof path, "%s", name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    *space = (struct space){0};
    assert_true(space_load(space, f));
    fclose(f);
}

static void for_each(void (*check)(const char *path, struct space *space))
{
    glob_t found;

    assert_int_equal(glob(SPACES "*.space", 0, NULL, &found), 0);
    assert_true(found.gl_pathc >= 16);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct space space;
        load(found.gl_pathv[i], &space);
        check(found.gl_pathv[i], &space);
        space_deinit(&space);
    }
    globfree(&found);
}

/* ---- frames as the interpreter itself had them ---- */

/*
 * Whether a thread without the GIL finds its state elsewhere than in the list. 2.7 keeps it in no other place; where
 * musl keeps the values of pthread keys is not known.
 */
static bool has_quick_way(const struct space *space)
{
    const struct wire_process *p = &space->process;

    return p->gilstate_kind || (p->key_slots && (p->thread_key || space->layout.runtime_tss_key != PY_NONE));
}

static void check_frames(const char *path, struct space *space)
{
    struct played p = {.space = space};
    struct py_code_limits limits = {.string_max_bytes = 65536, .line_table_max_bytes = 1 << 20};
    struct buf text = {0}, storage = {0};
    char expected_path[512], *expected;

    bool only_listed = !has_quick_way(space);
    buf_put_str(&text, only_listed ? "# thread state not found quickly; list finds it\n"
                                   : "# thread state found quickly; list agrees\n");
    configure(&p);
    assert_int_equal(walk_find_tstate(&walk), !only_listed);
    assert_int_equal(run(&p), LOSS_complete);
    for (uint32_t i = 0; i < walk.result.entry_count; i++) {
        struct py_code code;
        bool exact;
        if (entries[i].address & WIRE_RUN) {
            buf_put_str(&text, "--\n");
            continue;
        }
        assert_true(py_code_read(&walk.config.layout, play_code, space, entries[i].address & WIRE_ADDRESS, &limits, &storage, &code));
        assert_true(py_code_complete(&code));
        py_string_text(space->layout.code_qualname != PY_NONE ? &code.qualname : &code.name, &text);
        buf_printf(&text, "\t%d\n", py_code_position(&code, entries[i].offset, &exact).line);
    }
    buf_put_str(&text, "# complete\n");
    snprintf(expected_path, sizeof expected_path, "%.*s.expected", (int)(strlen(path) - strlen(".space")), path);
    FILE *f = fopen(expected_path, "rb");
    assert_non_null(f);
    expected = calloc(1, 65536);
    assert_true(fread(expected, 1, 65535, f) > 0);
    fclose(f);
    assert_string_equal(buf_cstr(&text), expected);
    free(expected);
    buf_deinit(&text);
    buf_deinit(&storage);
}

TEST(frames)
{
    for_each(check_frames);
}

/* ---- the list of thread states finds the same one as the quick ways ---- */

static void check_list(const char *path, struct space *space)
{
    struct played p = {.space = space};

    (void)path;
    configure(&p);
    uint64_t quick = has_quick_way(space);
    assert_int_equal(walk_find_tstate(&walk), quick);
    if (quick) {
        quick = walk.result.tstate;
        assert_true(quick != 0);
    }
    walk.result.tstate = 0;
    assert_int_equal(walk_list_begin(&walk, 4096), 0);
    while (!walk_list_step(&walk)) {
    }
    assert_true(walk.result.tstate == quick || (!quick && walk.result.tstate));
    /* Another thread's pointer: never somebody else's state. */
    walk.config.thread_pointer += 64;
    walk.result.tstate = 0;
    walk_find_tstate(&walk);
    assert_int_equal(walk.result.tstate, 0);
    assert_int_equal(walk_list_begin(&walk, 4096), 0);
    while (!walk_list_step(&walk)) {
    }
    assert_int_equal(walk.result.tstate, 0);
}

TEST(list)
{
    for_each(check_list);
}

/* ---- a fault at every read in turn ---- */

static void check_faults(const char *path, struct space *space)
{
    struct played p = {.space = space};
    uint32_t count, reads, unread = 0, cut = 0, same = 0, lineless = 0;

    (void)path;
    assert_int_equal(run(&p), LOSS_complete);
    count = walk.result.entry_count;
    reads = p.reads;
    memcpy(truth, entries, count * sizeof *truth);
    for (uint32_t n = 1; n <= reads; n++) {
        p.fail_at = n;
        uint32_t end = run(&p);
        bool whole = true;
        uint32_t skipped = 0;
        /* Taken for an activation that is half made: what is shown begins with the one before it. */
        if (walk.result.restarts && end == LOSS_complete)
            skipped = count - walk.result.entry_count;
        for (uint32_t i = 0; i < walk.result.entry_count && end; i++) {
            const struct wire_python *expected = &truth[skipped + i];
            /* What is there is true and in its place, or says that it could not be read. */
            if (space->layout.tstate_cframe && entries[i].address == WIRE_RUN) {
                assert_true(expected->address & WIRE_RUN); /* the records are not known from here on */
                whole = false;
                continue;
            }
            assert_int_equal(entries[i].address & ~WIRE_UNREAD & ~WIRE_GENERATOR, expected->address & ~WIRE_GENERATOR);
            if (entries[i].address & WIRE_UNREAD) {
                /* Its line is known all the same, but where that takes the code object. */
                assert_int_equal(entries[i].offset, space->layout.code_tlbc ? WIRE_OFFSET_UNKNOWN : expected->offset);
                whole = false;
                unread++;
            } else if (entries[i].offset == WIRE_OFFSET_UNKNOWN) {
                assert_true(space->layout.code_tlbc);
                /* Where the thread's bytecode begins could not be read. */
                assert_int_equal(entries[i].fingerprint, expected->fingerprint);
                whole = false;
                lineless++;
            } else {
                assert_memory_equal(&entries[i], expected, sizeof *expected);
            }
        }
        if (skipped) {
            assert_true(truth[skipped - 1].address & WIRE_RUN);
        } else if (end == LOSS_complete) {
            assert_int_equal(walk.result.entry_count, count);
            same += whole;
        } else {
            assert_true(walk.result.entry_count <= count);
            cut += walk.result.entry_count < count;
        }
    }
    /* All three happen: a fault that another way makes good, one that costs a name, one that costs the rest. */
    assert_true(same > 0);
    assert_true(unread > 0);
    assert_true(cut > 0);
    assert_true((lineless > 0) == (space->layout.code_tlbc != 0));
}

static void put(struct space *space, uint64_t address, uint64_t value)
{
    assert_true(space_add(space, address, &value, 8));
}

/* ---- 3.11: coroutines that an exception was thrown through ---- */

/* A frame, and the record of the activation that the walk takes it for one of. */
struct placed {
    uint64_t frame, record;
};

/*
 * Leaves the frames of a walk in `placed`, the newest first, and adds to the recording what it lacks of 3.11's records: which
 * frame each was running. Returns how many frames there are.
 */
static uint32_t place_frames(struct space *space, struct placed *placed, uint32_t max)
{
    struct played p = {.space = space};
    const struct py_layout *l = &space->layout;
    uint32_t count = 0;
    bool begins = true;
    int ended;

    assert_int_equal(run(&p), LOSS_complete);
    uint64_t tstate = walk.result.tstate;
    configure(&p);
    walk.result.tstate = tstate;
    assert_int_equal(walk_begin(&walk), 0);
    do {
        assert_true(count < max);
        placed[count++] = (struct placed){walk.cursor.frame, walk.cursor.cframe};
        if (l->frame_kind == PY_FRAMES_ENTRY && begins)
            assert_true(space_add(space, walk.cursor.cframe + l->cframe_current_frame, &walk.cursor.frame, 8));
        ended = walk_step(&walk, entries);
        begins = walk.cursor.run_ended;
    } while (!ended);
    assert_int_equal(walk.result.end, LOSS_complete);
    return count;
}

/*
 * Takes the activations of each run of one generator away, as throw() has none, from the newest on: the activation before
 * is then said to run that generator. The frames stay, and the generator's is in the run of what it waits for.
 */
static void check_thrown(const char *path, struct space *space)
{
    struct placed placed[64];
    struct played p = {.space = space};
    const struct py_layout *l = &space->layout;
    uint32_t thrown = 0;

    if (l->frame_kind != PY_FRAMES_ENTRY)
        return;
    uint32_t count = place_frames(space, placed, sizeof placed / sizeof *placed);
    assert_int_equal(run(&p), LOSS_complete);
    uint32_t entry_count = walk.result.entry_count;
    memcpy(truth, entries, entry_count * sizeof *truth);
    for (uint32_t i = 1; i + 1 < count; i++) {
        uint64_t newer = placed[i - 1].record, record = placed[i].record, older = placed[i + 1].record;
        uint8_t owner = 0;
        assert_true(space_read(space, placed[i].frame + l->frame_owner, &owner, 1));
        if (owner != PY_OWNER_GENERATOR || newer == record || older == record)
            continue;
        put(space, newer + l->cframe_previous, older);
        put(space, older + l->cframe_current_frame, placed[i].frame);
        placed[i].record = newer;
        thrown++;
        /* [frames] [newer's end] [generator] [its end]: the last goes, the two before change places. */
        for (uint32_t k = 2; k < entry_count; k++) {
            if (truth[k].address == (record | WIRE_RUN)) {
                struct wire_python generator = truth[k - 1];
                truth[k - 1] = truth[k - 2];
                truth[k - 2] = generator;
                memmove(&truth[k], &truth[k + 1], (entry_count - k - 1) * sizeof *truth);
                entry_count--;
            }
        }
        assert_int_equal(run(&p), LOSS_complete);
        assert_int_equal(walk.result.entry_count, entry_count);
        assert_memory_equal(entries, truth, entry_count * sizeof *truth);
        assert_int_equal(walk.result.restarts, 0);
    }
    if (!thrown)
        fail_msg("%s: no generator that waits for another activation", path);
}

TEST(thrown)
{
    for_each(check_thrown);
}

/* ---- frames of which nothing has to be read ---- */

static struct live_stack live;
static struct walk_codes known_codes;

/* The part of the stack that holds the records and shims of `count` entries of `truth`, as far as it was recorded. */
static void read_stack(const struct space *space, uint32_t count)
{
    uint64_t first = UINT64_MAX, last = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t record = truth[i].address & WIRE_ADDRESS;
        /* The outermost record of 3.11 lies in the thread's state. */
        if (!(truth[i].address & WIRE_RUN) || record - space->stack_pointer > LIVE_STACK_MASK)
            continue;
        first = record < first ? record : first;
        last = record > last ? record : last;
    }
    assert_true(first <= last);
    live = (struct live_stack){.start = first, .len_bytes = last - first + 128};
    assert_true(live.len_bytes <= LIVE_STACK_MASK);
    for (uint64_t at = 0; at < live.len_bytes; at += 8)
        space_read(space, first + at, live.bytes + at, 8);
}

/* What a walk came to where the code objects are those in `known_codes`. */
struct known_walk {
    uint32_t end, count, steps, slow, reads; /* `slow`: frames that walk_fast() left alone */
    struct wire_python entries[WIRE_PYTHON_MAX];
};

/* `counter` as in walk_codes; `stack` may be NULL; without `fast` walk_step() makes each step. */
static void run_known(struct space *space, uint32_t counter, const struct live_stack *stack, bool fast, struct known_walk *out)
{
    struct played p = {.space = space};
    uint64_t tstate = walk.result.tstate;
    int stepped;

    configure(&p);
    walk.codes = known_codes;
    walk.codes.counter = counter;
    walk.live = stack;
    walk.result.tstate = tstate;
    out->slow = 0;
    if (!walk_begin(&walk)) {
        do {
            stepped = fast && walk_fast(&walk, out->entries);
            out->slow += !stepped;
        } while (stepped || !walk_step(&walk, out->entries));
    }
    out->end = walk.result.end;
    out->count = walk.result.entry_count;
    out->steps = walk.cursor.steps;
    out->reads = p.reads;
}

static void assert_same_walk(const struct known_walk *a, const struct known_walk *b)
{
    assert_int_equal(a->end, b->end);
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->steps, b->steps);
    assert_memory_equal(a->entries, b->entries, a->count * sizeof *a->entries);
}

/* Leaves the frames of the newest `steps` in `frames`, the newest first. */
static uint32_t list_frames(struct space *space, uint64_t tstate, uint64_t *frames, uint32_t max)
{
    struct played p = {.space = space};
    uint32_t count = 0;

    configure(&p);
    walk.result.tstate = tstate;
    assert_int_equal(walk_begin(&walk), 0);
    do {
        assert_true(count < max);
        frames[count++] = walk.cursor.frame;
    } while (!walk_step(&walk, entries));
    assert_int_equal(walk.result.end, LOSS_complete);
    return count;
}

/* Whatever a frame holds, walk_fast() makes of it what walk_step() does. Returns how many of the changes ended the walk. */
static uint32_t check_changes(struct space *space, const struct known_walk *whole, const uint64_t *frames, uint32_t count, uint32_t at)
{
    static struct known_walk fast, slow;
    const struct py_layout *l = &space->layout;
    const uint32_t fields[] = {l->frame_code, l->frame_previous, l->frame_instr, l->frame_owner,
                               l->frame_is_entry != PY_NONE ? l->frame_is_entry : l->frame_owner};
    const uint64_t values[] = {0, 1, 2, 3, 4, 5, ~0ull, 1ull << 63, frames[at], frames[at / 2], frames[count - 1],
                               frames[at] + 8, whole->entries[0].address & WIRE_ADDRESS,
                               (whole->entries[0].address & WIRE_ADDRESS) + l->code_bytecode - 2};
    uint32_t ended = 0;

    for (size_t f = 0; f < sizeof fields / sizeof *fields; f++) {
        uint64_t word = 0, lies = frames[at] + fields[f];
        size_t len = fields[f] == l->frame_owner || fields[f] == l->frame_is_entry ? 1 : 8;
        assert_true(space_read(space, lies, &word, len));
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            assert_true(space_add(space, lies, &values[v], len));
            read_stack(space, whole->count);
            for (int again = 0; again < 2; again++) {
                run_known(space, again ? UINT32_MAX : 0, &live, false, &slow);
                run_known(space, again ? UINT32_MAX : 0, &live, true, &fast);
                assert_same_walk(&fast, &slow);
                ended += slow.end != LOSS_complete;
            }
        }
        assert_true(space_add(space, lies, &word, len));
    }
    return ended;
}

/* Code objects of which it is known that they could not be read, and that they are none. */
static void check_states(struct space *space)
{
    static struct known_walk fast, slow;
    const uint8_t states[] = {LOSS_code_fault, LOSS_bad_code};

    for (uint32_t i = 0; i < WALK_CODES * 2; i++) {
        struct walk_code *code = &known_codes.seen[i / 2];
        if (!code->address)
            continue;
        code->state = states[i % 2];
        run_known(space, UINT32_MAX, &live, false, &slow);
        run_known(space, UINT32_MAX, &live, true, &fast);
        assert_same_walk(&fast, &slow);
        code->state = 0;
    }
}

/* Each frame in the window, and each record and shim on the stack, is stepped over by walk_fast(), to the same entries. */
static void check_known(const char *path, struct space *space)
{
    static struct known_walk first, slow, fast;
    struct played p = {.space = space};
    struct placed placed[64];
    const struct py_layout *l = &space->layout;
    uint64_t frames[64], tstate;
    uint32_t reads = UINT32_MAX, ended = 0;

    (void)path;
    if (l->frame_kind == PY_FRAMES_OBJECT || l->code_tlbc)
        return;
    place_frames(space, placed, sizeof placed / sizeof *placed);
    assert_int_equal(run(&p), LOSS_complete);
    tstate = walk.result.tstate;
    memcpy(truth, entries, walk.result.entry_count * sizeof *truth);
    read_stack(space, walk.result.entry_count);
    memset(&known_codes, 0, sizeof known_codes);
    run_known(space, 0, NULL, false, &first);
    assert_int_equal(first.end, LOSS_complete);
    assert_memory_equal(first.entries, truth, first.count * sizeof *truth);
    known_codes = walk.codes;
    for (int stack = 0; stack < 2; stack++) {
        run_known(space, UINT32_MAX, stack ? &live : NULL, false, &slow);
        run_known(space, UINT32_MAX, stack ? &live : NULL, true, &fast);
        assert_same_walk(&slow, &first);
        assert_same_walk(&fast, &first);
        assert_int_equal(fast.reads, slow.reads);
        assert_true(fast.reads < reads && slow.slow == slow.steps + 1);
        reads = fast.reads < first.reads ? fast.reads : first.reads;
        /* Left alone are those that cost a read, the outermost, and where a record is checked. */
        assert_true(fast.slow <= fast.reads + 1);
    }
    assert_true(3 * fast.slow <= fast.steps);
    /* Once the counter is another one, all are read again. */
    run_known(space, 0, NULL, true, &fast);
    assert_same_walk(&fast, &first);
    assert_int_equal(fast.reads, first.reads);
    known_codes = walk.codes;
    check_states(space);
    uint32_t count = list_frames(space, tstate, frames, sizeof frames / sizeof *frames);
    for (uint32_t i = 0; i < count; i++)
        ended += check_changes(space, &first, frames, count, i);
    assert_true(ended > 2 * count);
}

TEST(known)
{
    for_each(check_known);
}

TEST(faults)
{
    for_each(check_faults);
}

/* ---- an activation that is half made (3.11, 3.12) ---- */

/* A recording to which a half-made activation is added, and what is known of it. */
struct half_made {
    struct space *space;
    struct played p;
    uint64_t registers[ARCH_REGISTERS];
    uint64_t record, frame, shim; /* the new _PyCFrame, frame and, in 3.12, shim */
    uint64_t caller_record, caller;
    uint32_t count; /* of `truth`: what was there before */
};

/* Makes the memory from `start` on readable: zeros where there was none. */
static void fill(struct space *space, uint64_t start, uint64_t len)
{
    for (uint64_t at = start; at < start + len; at += 8) {
        uint64_t word = 0;
        space_read(space, at, &word, 8);
        put(space, at, word);
    }
}

/*
 * The newest _PyCFrame is published, and neither of its members written. False: this version has none. What it holds
 * leads into a ring: its frame is called by a shim, or an entry frame, which is called by that frame. The _PyCFrame
 * before it seems to lie where there is none.
 */
static bool half_make(struct half_made *h, struct space *space)
{
    const struct py_layout *l = &space->layout;

    *h = (struct half_made){.space = space, .p.space = space};
    assert_int_equal(run(&h->p), LOSS_complete);
    h->count = walk.result.entry_count;
    memcpy(truth, entries, h->count * sizeof *truth);
    if (l->tstate_root_cframe == PY_NONE || l->frame_kind == PY_FRAMES_OBJECT)
        return false;
    uint64_t newest = walk.result.tstate + l->tstate_frame;
    assert_true(space_read(space, newest, &h->caller_record, 8));
    assert_true(space_read(space, h->caller_record + l->cframe_current_frame, &h->caller, 8));
    h->record = h->caller_record - 1600;
    fill(space, h->record - 256, 1600 + 1024);
    h->shim = h->record + 112;
    h->frame = 0x7e0000000100;
    fill(space, h->frame - 64, 256);
    put(space, h->frame + l->frame_code, truth[0].address & WIRE_ADDRESS);
    put(space, h->frame + l->frame_instr, (truth[0].address & WIRE_ADDRESS) + l->code_bytecode - 2);
    put(space, h->shim + l->frame_owner, PY_OWNER_SHIM);
    put(space, h->frame + l->frame_previous, l->frame_kind == PY_FRAMES_SHIM ? h->shim : h->frame);
    put(space, h->shim + l->frame_previous, h->frame);
    put(space, h->record + l->cframe_current_frame, h->frame);
    put(space, h->record + l->cframe_previous, h->record + 512);
    put(space, newest, h->record);
    return true;
}

static void assert_truth(struct half_made *h, const uint64_t *registers)
{
    h->p.registers = registers;
    assert_int_equal(run(&h->p), LOSS_complete);
    assert_true(walk.result.restarts > 0);
    assert_int_equal(walk.result.entry_count, h->count);
    assert_memory_equal(entries, truth, h->count * sizeof *truth);
}

/* As with compilers that keep the order of the source: the _PyCFrame names the one before it. */
static void check_torn(const char *path, struct space *space)
{
    struct half_made h;

    (void)path;
    if (!half_make(&h, space))
        return;
    put(space, h.record + space->layout.cframe_previous, h.caller_record);
    assert_truth(&h, NULL); /* a ring */
    put(space, h.record + space->layout.cframe_current_frame, 0x123456789a);
    assert_truth(&h, NULL); /* no frame */
    /* A chain that is whole, but not the thread's: the frame of the caller's caller. */
    uint64_t outer = 0;
    assert_true(space_read(space, h.caller + space->layout.frame_previous, &outer, 8));
    put(space, h.record + space->layout.cframe_current_frame, outer);
    assert_truth(&h, NULL);
}

TEST(torn)
{
    for_each(check_torn);
}

/* Neither member was written: only registers tell. */
static void check_registers(const char *path, struct space *space)
{
    const struct py_layout *l = &space->layout;
    struct half_made h;

    (void)path;
    if (!half_make(&h, space))
        return;
    /* Nothing tells: no frame is made up, and the ring is not followed. */
    for (int known = 0; known < 2; known++) {
        h.p.registers = known ? h.registers : NULL;
        assert_int_equal(run(&h.p), LOSS_python_torn);
        assert_int_equal(walk.result.entry_count, 0);
        assert_true(h.p.reads < 200);
    }
    /* The first half: the _PyCFrame before it, beside things that are none. */
    h.registers[ARCH_SP] = h.record - 128;
    h.registers[0] = h.record;
    h.registers[1] = h.frame;
    h.registers[2] = h.record + 256;
    h.registers[3] = h.caller_record;
    assert_truth(&h, h.registers);
    /* The second half. 3.12: the frame, whose shim is made. 3.11: the caller's frame, which a record names, too. */
    h.registers[3] = 12345;
    if (l->frame_kind == PY_FRAMES_SHIM)
        put(space, h.shim + l->frame_previous, h.caller);
    else
        h.registers[3] = h.caller;
    put(space, h.record + l->cframe_current_frame, 0x123456789a);
    assert_truth(&h, h.registers);
}

TEST(registers)
{
    for_each(check_registers);
}

/* The outermost activation is being entered: the thread runs no Python code yet. */
static void check_first(const char *path, struct space *space)
{
    struct half_made h;

    (void)path;
    if (!half_make(&h, space))
        return;
    h.registers[3] = walk.result.tstate + space->layout.tstate_root_cframe;
    h.p.registers = h.registers;
    assert_int_equal(run(&h.p), LOSS_complete);
    assert_int_equal(walk.result.entry_count, 0);
}

TEST(first)
{
    for_each(check_first);
}

/* ---- 3.10: records and frames that differ in number ---- */

static void check_records(const char *path, struct space *space)
{
    struct played p = {.space = space};
    const struct py_layout *l = &space->layout;
    const uint64_t fresh[2] = {0x7fff00001000, 0x7fff00002000};
    uint64_t newest = 0, none = 0, second = 0;

    (void)path;
    if (!l->tstate_cframe)
        return;
    assert_int_equal(run(&p), LOSS_complete);
    uint32_t count = walk.result.entry_count;
    uint64_t tstate = walk.result.tstate;
    memcpy(truth, entries, count * sizeof *truth);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(!!(entries[i].address & WIRE_RUN), i % 2);
        /* on the native stack, each above the one before */
        if (i % 2)
            assert_true((entries[i].address & WIRE_ADDRESS) > (i > 1 ? entries[i - 2].address & WIRE_ADDRESS : space->stack_pointer));
    }
    assert_true(space_read(space, tstate + l->tstate_cframe, &newest, 8));
    /* The newest activation on its way in: a record without a frame. */
    assert_true(space_add(space, fresh[0] + l->cframe_previous, &newest, 8));
    assert_true(space_add(space, tstate + l->tstate_cframe, &fresh[0], 8));
    assert_int_equal(run(&p), LOSS_complete);
    assert_int_equal(walk.result.entry_count, count + 1);
    assert_int_equal(entries[1].address, fresh[0] | WIRE_RUN);
    assert_int_equal(entries[count].address, truth[count - 1].address);
    for (uint32_t i = 0; i < count; i += 2)
        assert_memory_equal(&entries[i], &truth[i], sizeof *truth);
    /* Two of them cannot be. */
    assert_true(space_add(space, fresh[1] + l->cframe_previous, &fresh[0], 8));
    assert_true(space_add(space, tstate + l->tstate_cframe, &fresh[1], 8));
    assert_int_equal(run(&p), LOSS_python_torn);
    /* On its way out: a frame without a record. */
    assert_true(space_read(space, newest + l->cframe_previous, &second, 8));
    assert_true(space_add(space, tstate + l->tstate_cframe, &second, 8));
    assert_int_equal(run(&p), LOSS_complete);
    assert_int_equal(walk.result.entry_count, count);
    assert_int_equal(entries[count - 1].address, WIRE_RUN);
    assert_int_equal(entries[1].address, truth[3].address);
    /* Neither frames nor records: a thread that runs no Python. */
    assert_true(space_add(space, tstate + l->tstate_frame, &none, 8));
    assert_int_equal(run(&p), LOSS_complete);
    assert_int_equal(walk.result.entry_count, 0);
}

TEST(records)
{
    for_each(check_records);
}

/* ---- up to 3.10: frames that have not begun, generators ---- */

static void check_objects(const char *path, struct space *space)
{
    struct played p = {.space = space};
    const struct py_layout *l = &space->layout;
    const uint32_t begun = UINT32_MAX;
    uint64_t frame = 0;
    uint32_t generators = 0, frames = 0;

    (void)path;
    if (l->frame_kind != PY_FRAMES_OBJECT)
        return;
    assert_int_equal(run(&p), LOSS_complete);
    for (uint32_t i = 0; i < walk.result.entry_count; i++) {
        frames += !(entries[i].address & WIRE_RUN);
        generators += !!(entries[i].address & WIRE_GENERATOR);
    }
    assert_int_equal(generators, 2);
    assert_int_equal(walk.result.entry_count, l->tstate_cframe ? 2 * frames : frames);
    assert_true(space_read(space, walk.result.tstate + l->tstate_frame, &frame, 8));
    assert_true(space_add(space, frame + l->frame_instr, &begun, 4));
    assert_int_equal(run(&p), LOSS_complete);
    assert_int_equal(entries[0].offset, -1);
}

TEST(objects)
{
    for_each(check_objects);
}

/* ---- up to 3.12: a state that names the thread that made it, not the one that runs it ---- */

static void check_maker(const char *path, struct space *space)
{
    struct played p = {.space = space};
    const struct py_layout *l = &space->layout;
    uint64_t tstate, other = 0x1000, record, root, far = 0x10;

    (void)path;
    if (l->tstate_root_cframe == PY_NONE || l->runtime_tstate_current == PY_NONE)
        return;
    assert_int_equal(run(&p), LOSS_complete);
    tstate = walk.result.tstate;
    uint32_t count = walk.result.entry_count, at = l->tstate_cframe ? l->tstate_cframe : l->tstate_frame;
    /* It has the GIL, and another thread's handle: the record on this stack says whose it is. */
    assert_true(space_add(space, space->process.runtime + l->runtime_tstate_current, &tstate, 8));
    assert_true(space_add(space, tstate + l->tstate_thread_id, &other, 8));
    assert_int_equal(run(&p), LOSS_complete);
    assert_int_equal(walk.result.tstate, tstate);
    assert_int_equal(walk.result.entry_count, count);
    assert_int_equal(walk.result.gil, WIRE_GIL_KNOWN | WIRE_GIL);
    /* This thread's handle, and a record on another stack: another thread runs it, unless it's the thread's first. */
    assert_true(space_add(space, tstate + l->tstate_thread_id, &space->thread_pointer, 8));
    assert_true(space_read(space, tstate + at, &record, 8));
    assert_true(space_add(space, tstate + at, &far, 8));
    configure(&p);
    walk.config.process.key_slots = 0;
    walk_find_tstate(&walk);
    assert_int_equal(walk.result.tstate, 0);
    /* No frames at all: then the handle decides. */
    root = tstate + l->tstate_root_cframe;
    assert_true(space_add(space, tstate + at, &root, 8));
    configure(&p);
    assert_int_equal(walk_find_tstate(&walk), 1);
    assert_int_equal(walk.result.tstate, tstate);
}

TEST(maker)
{
    for_each(check_maker);
}

/* ---- a chain that is a ring, and one that ends too early ---- */

static void check_ring(const char *path, struct space *space)
{
    struct played p = {.space = space};
    uint64_t frame;

    (void)path;
    run(&p);
    uint32_t count = walk.result.entry_count;
    uint64_t tstate = walk.result.tstate;
    configure(&p);
    walk.result.tstate = tstate;
    bool objects = space->layout.frame_kind == PY_FRAMES_OBJECT;
    assert_int_equal(objects ? walk_object_begin(&walk) : walk_begin(&walk), 0);
    frame = walk.cursor.frame;
    uint64_t previous, nothing = 0;
    assert_true(space_read(space, frame + space->layout.frame_previous, &previous, 8));
    assert_true(space_add(space, frame + space->layout.frame_previous, &frame, 8));
    assert_int_equal(run(&p), LOSS_python_torn);
    assert_int_equal(walk.result.entry_count, 0);
    assert_true(p.reads < 200);
    assert_true(space_add(space, frame + space->layout.frame_previous, &nothing, 8));
    /* Frames that are objects end like that when they end well; only in 3.10 the records say how many there are. */
    assert_int_equal(run(&p), objects && !space->layout.tstate_cframe ? LOSS_complete : LOSS_python_torn);
    assert_true(walk.result.entry_count < count);
}

/* A chain longer than there is room for: the newest frame over and over, at other addresses. */
static void check_deep(const char *path, struct space *space)
{
    enum { FRAMES = 5000, APART = 128 };
    struct played p = {.space = space};
    const uint64_t base = 0x7d0000000000;
    uint8_t *frames = calloc(FRAMES + 1, APART);
    uint64_t newest, next;

    (void)path;
    assert_non_null(frames);
    run(&p);
    next = walk.result.tstate;
    configure(&p);
    walk.result.tstate = next;
    assert_int_equal(space->layout.frame_kind == PY_FRAMES_OBJECT ? walk_object_begin(&walk) : walk_begin(&walk), 0);
    newest = walk.cursor.frame;
    assert_true(space->layout.frame_len_bytes <= APART);
    assert_true(space_read(space, newest, frames, space->layout.frame_len_bytes));
    for (uint64_t i = 0; i < FRAMES; i++) {
        memcpy(frames + i * APART, frames, space->layout.frame_len_bytes);
        next = base + (i + 1) * APART;
        memcpy(frames + i * APART + space->layout.frame_previous, &next, 8);
        if (space->layout.frame_is_entry != PY_NONE)
            frames[i * APART + space->layout.frame_is_entry] = 0;
    }
    assert_true(space_add(space, base, frames, (uint64_t)FRAMES * APART));
    free(frames);
    put(space, newest + space->layout.frame_previous, base);
    if (space->layout.frame_is_entry != PY_NONE)
        assert_true(space_add(space, newest + space->layout.frame_is_entry, "", 1));
    assert_int_equal(run(&p), LOSS_python_too_deep);
    assert_true(walk.result.entry_count <= WIRE_PYTHON_MAX);
    assert_true(walk.result.frame_count >= 2046);
}

TEST(deep)
{
    for_each(check_deep);
}

TEST(ring)
{
    for_each(check_ring);
}

/* ---- every way to reach a thread-local variable ---- */

static void check_tls(const char *path, struct space *space)
{
    struct played p = {.space = space};
    const uint64_t tp = space->thread_pointer, made = 0x7e0000000000, stray = 0x1000;
    const uint64_t offset = (uint64_t)-64, dynamic = made + 0x218;
    const struct {
        uint32_t kind;
        uint64_t offset, where, variable;
    } ways[] = {
        {PY_TLS_LOCAL_EXEC, offset, 0, tp - 64},
        {PY_TLS_MODULE, 0x18, made + 0x40, dynamic},
        {PY_TLS_SLOT, 0, made, tp - 64},
        {PY_TLS_DESCRIPTOR, 0, made + 0x10, tp - 64},
        {PY_TLS_DESCRIPTOR, 0, made + 0x20, dynamic},
    };

    run(&p);
    uint64_t tstate = walk.result.tstate;
    put(space, made, offset);
    put(space, made + 0x18, offset);
    put(space, made + 0x28, made + 0x40);
    put(space, made + 0x40, 3);
    put(space, made + 0x48, 0x18);
    put(space, tp + 8, made + 0x100);
    put(space, made + 0x100 + 3 * 16, made + 0x200);
    for (size_t i = 0; i < 2 * sizeof ways / sizeof *ways; i++) {
        size_t way = i / 2;
        bool gilstate = i % 2;
        for (int value = 0; value < 4; value++) {
            configure(&p);
            walk.config.layout.runtime_tstate_current = PY_NONE;
            walk.config.process.key_slots = walk.config.process.tls_kind = walk.config.process.gilstate_kind = 0;
            *(gilstate ? &walk.config.process.gilstate_kind : &walk.config.process.tls_kind) = ways[way].kind;
            *(gilstate ? &walk.config.process.gilstate_offset : &walk.config.process.tls_offset) = ways[way].offset;
            *(gilstate ? &walk.config.process.gilstate_module : &walk.config.process.tls_module) = ways[way].where;
            put(space, ways[way].variable, value == 1 ? 0 : value == 2 ? stray : tstate);
            if (value == 3) { /* the library's block is not made yet */
                put(space, made + 0x100 + 3 * 16, UINT64_MAX);
                put(space, made, stray);
                put(space, made + 0x18, stray);
            }
            int settled = walk_find_tstate(&walk);
            bool reached = value == 0 || (value == 3 && ways[way].kind == PY_TLS_LOCAL_EXEC);
            /* Null: only the variable that stays says that there is none. */
            if (settled != (reached || (value == 1 && gilstate)) || walk.result.tstate != (reached ? tstate : 0))
                fail_msg("%s: way %zu, %s, value %d", path, way, gilstate ? "gilstate" : "tstate", value);
            uint32_t gil = gilstate || space->layout.free_threaded ? 0
                           : reached                               ? WIRE_GIL_KNOWN | WIRE_GIL
                           : value == 1                            ? WIRE_GIL_KNOWN
                                                                   : 0;
            assert_int_equal(walk.result.gil, gil);
            put(space, made + 0x100 + 3 * 16, made + 0x200);
            put(space, made, offset);
            put(space, made + 0x18, offset);
        }
    }
}

TEST(tls)
{
    for_each(check_tls);
}

/* ---- what a sample says beside its stack ---- */

/* Up to 3.11 a variable names the state of the thread that holds the GIL. */
static void check_gil(const char *path, struct space *space)
{
    struct played p = {.space = space};
    const uint64_t stray = 0x1000;

    (void)path;
    run(&p);
    uint64_t tstate = walk.result.tstate;
    if (walk.config.layout.runtime_tstate_current == PY_NONE)
        return;
    uint64_t variable = walk.config.process.runtime + walk.config.layout.runtime_tstate_current;
    put(space, variable, tstate);
    run(&p);
    assert_true(walk.result.tstate == tstate);
    assert_int_equal(walk.result.gil, WIRE_GIL_KNOWN | WIRE_GIL);
    put(space, variable, stray);
    walk_find_tstate(&walk);
    assert_int_equal(walk.result.gil, WIRE_GIL_KNOWN);
    put(space, variable, 0);
    walk_find_tstate(&walk);
    assert_int_equal(walk.result.gil, WIRE_GIL_KNOWN);
    p.fail_at = p.reads + 1; /* the variable itself */
    walk_find_tstate(&walk);
    assert_int_equal(walk.result.gil, 0);
}

TEST(gil)
{
    for_each(check_gil);
}

static void check_interpreter(const char *path, struct space *space)
{
    struct played p = {.space = space};
    const struct py_layout *l = &space->layout;
    const uint64_t interp = 0x7e0000000000;

    (void)path;
    run(&p);
    uint64_t tstate = walk.result.tstate;
    put(space, tstate + l->tstate_interp, interp);
    if (l->interp_id != PY_NONE)
        put(space, interp + l->interp_id, 7);
    run(&p);
    assert_int_equal(walk_read_tstate(&walk, tstate), 0);
    p.reads = 0;
    walk_interpreter(&walk);
    assert_true(walk.result.interpreter == interp);
    assert_true(walk.result.interpreter_id == (l->interp_id == PY_NONE ? WIRE_INTERPRETER_ID_NONE : 7));
    assert_true(p.reads <= 1);
    p.fail_at = 1;
    p.reads = 0;
    walk_interpreter(&walk);
    assert_true(walk.result.interpreter_id == WIRE_INTERPRETER_ID_NONE);
    /* A thread state that cannot be read: nothing stays of the interpreter that was found before. */
    walk.tstate.address = 0;
    p.reads = 0;
    walk_interpreter(&walk);
    assert_true(!walk.result.interpreter && walk.result.interpreter_id == WIRE_INTERPRETER_ID_NONE);
}

TEST(interpreter)
{
    for_each(check_interpreter);
}

/* A made-up task in place of one, in the layouts of 3.14 and 3.15. */
static void check_task(const char *path, struct space *space)
{
    struct played p = {.space = space};
    const struct py_layout *l = &space->layout;
    const uint64_t task = 0x7e0000000000, type = task + 0x1000, name = task + 0x2000, str_type = 0x4000;
    uint8_t object[512] = {0}, *at = object;
    static const char text[] = "fetch-12345678901234567890";

    (void)path;
    if (!py_behaviour_of(l->version)->asyncio_offsets)
        return;
    run(&p);
    uint64_t tstate = walk.result.tstate;
    struct wire_process *process = &space->process;
    process->running_task = 872;
    process->task_name = 136;
    process->task_is_task = 108;
    process->task_size = 168;
    assert_true(space_add(space, task, object, 144));
    put(space, tstate + 872, 0);
    run(&p);
    p.reads = 0;
    walk_task(&walk);
    assert_int_equal(walk.result.task_len_bytes, 0);
    assert_int_equal(p.reads, 1); /* what it costs when none runs */

    uint32_t state = 1u << l->str_kind_shift | 1u << l->str_compact_shift | 1u << l->str_ascii_shift;
    uint64_t len = sizeof text - 1;
    memcpy(at + l->code_type, &str_type, 8);
    memcpy(at + l->str_length, &len, 8);
    memcpy(at + l->str_state, &state, 4);
    memcpy(at + l->str_ascii_data, text, len);
    assert_true(space_add(space, name, object, l->str_ascii_data + len));
    put(space, tstate + 872, task);
    put(space, task + l->code_type, type);
    put(space, type + l->code_type + 24, 168);
    put(space, task + 136, name);
    assert_true(space_add(space, task + 108, "\1", 1));
    run(&p);
    walk_task(&walk);
    assert_int_equal(walk.result.task_len_bytes, l->str_ascii_data + len);
    assert_memory_equal(walk.result.task, object, walk.result.task_len_bytes);
    struct buf scratch = {0}, out = {0};
    const struct py_names names = {.layout = l, .str_type = str_type, .int_type = 0x5000, .storage = &scratch};
    assert_true(py_task_name(&names, walk.result.task, walk.result.task_len_bytes, &out));
    assert_string_equal(buf_cstr(&out), text);
    /* Cut short anywhere, it is no name, or a shorter one. */
    for (uint32_t cut = 0; cut < walk.result.task_len_bytes; cut++) {
        buf_clear(&out);
        bool named = py_task_name(&names, walk.result.task, cut, &out);
        assert_int_equal(named, cut >= l->str_ascii_data);
    }
    /* Another type's object is no name. */
    const struct py_names others = {.layout = l, .str_type = 0x6000, .int_type = 0x5000, .storage = &scratch};
    assert_false(py_task_name(&others, walk.result.task, walk.result.task_len_bytes, &out));

    /* Any read that fails, a task of another kind: no name. */
    for (uint32_t fail = 1; fail <= 5; fail++) {
        p.reads = 0;
        p.fail_at = fail;
        walk_task(&walk);
        assert_int_equal(walk.result.task_len_bytes, 0);
    }
    p.fail_at = 0;
    put(space, type + l->code_type + 24, 32);
    walk_task(&walk);
    assert_int_equal(walk.result.task_len_bytes, 0);
    put(space, type + l->code_type + 24, 176);
    walk_task(&walk);
    assert_int_equal(walk.result.task_len_bytes, l->str_ascii_data + len);
    assert_true(space_add(space, task + 108, "\0", 1));
    walk_task(&walk);
    assert_int_equal(walk.result.task_len_bytes, 0);
    assert_true(space_add(space, task + 108, "\1", 1));

    /* A name that is longer than what is copied, and one that nobody has asked for. */
    len = 1 << 20;
    memcpy(at + l->str_length, &len, 8);
    assert_true(space_add(space, name, object, sizeof object));
    walk_task(&walk);
    assert_int_equal(walk.result.task_len_bytes, WIRE_TASK_MAX);
    buf_clear(&out);
    assert_true(py_task_name(&names, walk.result.task, walk.result.task_len_bytes, &out));
    assert_int_equal(out.len_bytes, WIRE_TASK_MAX - l->str_ascii_data + strlen("…"));
    const uint64_t number[2] = {0x5000, 1 << 3};
    memset(object, 0, sizeof object);
    memcpy(at + l->code_type, number, sizeof number);
    at[l->code_type + 16] = 42;
    assert_true(space_add(space, name, object, sizeof object));
    walk_task(&walk);
    buf_clear(&out);
    assert_true(py_task_name(&names, walk.result.task, walk.result.task_len_bytes, &out));
    assert_string_equal(buf_cstr(&out), "Task-42");
    buf_deinit(&out);
    buf_deinit(&scratch);
}

TEST(task)
{
    for_each(check_task);
}

/* ---- bytecode of each thread's own (free-threaded 3.14+) ---- */

/*
 * A walk of 3.14 made into one whose frames run the copy with the index 1, which is laid elsewhere: the same frames
 * with the same offsets come out. Then one that nobody knows: the frames stay.
 */
static void check_bytecode(const char *path, struct space *space)
{
    struct played p = {.space = space};
    struct py_layout *l = &space->layout;
    const uint64_t copies = 0x7e0000000000, moved = 0x100000;
    uint64_t frames[64];
    uint32_t count, frame_count = 0;

    if (l->version >> 16 != 0x030e || l->free_threaded)
        return;
    assert_int_equal(run(&p), LOSS_complete);
    count = walk.result.entry_count;
    memcpy(truth, entries, count * sizeof *truth);
    configure(&p);
    walk_find_tstate(&walk);
    walk_begin(&walk);
    do
        frames[frame_count++] = walk.cursor.frame;
    while (!walk_step(&walk, entries));
    l->frame_tlbc_index = 76; /* padding there */
    l->code_tlbc = 144;       /* co_weakreflist */
    for (uint32_t i = 0; i < frame_count; i++) {
        uint64_t code = 0, instr = 0, start = 0;
        uint32_t index = 1;
        assert_true(space_read(space, frames[i] + l->frame_code, &code, 8));
        code &= ~(uint64_t)l->code_tag_mask;
        assert_true(space_add(space, frames[i] + l->frame_tlbc_index, &index, 4));
        if (!space_read(space, code + l->code_type, &start, 8) || start != space->process.code_type)
            continue; /* a shim's */
        assert_true(space_read(space, frames[i] + l->frame_instr, &instr, 8));
        put(space, frames[i] + l->frame_instr, instr + moved);
        uint64_t array = copies + (code & 0xffffff);
        put(space, code + l->code_tlbc, array);
        put(space, array, 2);
        put(space, array + 8, code + l->code_bytecode);
        put(space, array + 16, code + l->code_bytecode + moved);
    }
    assert_int_equal(run(&p), LOSS_complete);
    assert_int_equal(walk.result.entry_count, count);
    assert_memory_equal(entries, truth, count * sizeof *truth);
    for (int broken = 0; broken < 3; broken++) {
        uint64_t first = truth[0].address & WIRE_ADDRESS, array = copies + (first & 0xffffff);
        uint32_t index = broken == 2 ? UINT32_MAX : 1;
        put(space, array + 16, broken == 1 ? 0 : 0x1000);
        assert_true(space_add(space, frames[0] + l->frame_tlbc_index, &index, 4));
        assert_int_equal(run(&p), LOSS_complete);
        assert_int_equal(walk.result.entry_count, count);
        assert_int_equal(entries[0].address, truth[0].address);
        assert_int_equal(entries[0].fingerprint, truth[0].fingerprint);
        if (entries[0].offset >= 0)
            fail_msg("%s: an instruction out of nowhere", path);
        assert_memory_equal(entries + 1, truth + 1, (count - 1) * sizeof *truth);
    }
}

TEST(bytecode)
{
    for_each(check_bytecode);
}

/* ---- a code object that is another one now ---- */

static void check_fingerprint(const char *path, struct space *space)
{
    struct played p = {.space = space};
    struct py_layout *l = &space->layout;
    static const char *const fields[] = {"name", "filename", "line table", "first line", "flags", "version or hash"};

    (void)path;
    run(&p);
    uint64_t code = entries[0].address & WIRE_ADDRESS, name = 0;
    uint32_t fingerprint = entries[0].fingerprint;
    assert_true(space_read(space, code + l->code_name, &name, 8));
    const uint64_t at[] = {code + l->code_name, code + l->code_filename, code + l->code_line_table,
                           code + l->code_first_line, code + l->code_flags,
                           l->code_version != PY_NONE ? code + l->code_version : name + l->str_hash};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        uint8_t byte, other;
        assert_true(space_read(space, at[i], &byte, 1));
        other = byte ^ 0x10;
        space_add(space, at[i], &other, 1);
        /* The name's hash is read through the name, which may now lead nowhere. */
        uint32_t end = run(&p);
        if (end == LOSS_complete && !(entries[0].address & WIRE_UNREAD) && entries[0].fingerprint == fingerprint)
            fail_msg("%s: a change of the %s goes unnoticed", path, fields[i]);
        space_add(space, at[i], &byte, 1);
    }
    run(&p);
    assert_int_equal(entries[0].fingerprint, fingerprint);
}

TEST(fingerprint)
{
    for_each(check_fingerprint);
}
