/* SPDX-License-Identifier: Apache-2.0 */
/* The live view as text: what stands where on screens of all sizes, and what keys do. */
#include "tests/unit/live_model.h"

#include "formats/base/utf8.h"
#include "symbolize/live/page.h"

/* The page as one text. */
static const char *text_of(const struct live_page *p)
{
    static struct buf all;

    buf_clear(&all);
    for (size_t i = 0; i < p->used; i++) {
        buf_put(&all, p->lines.data[i].text.data, p->lines.data[i].text.len_bytes);
        buf_put_str(&all, "\n");
    }
    return buf_cstr(&all);
}

static struct live_tally *busy_tally(void)
{
    struct live_tally *t = new_tally();

    for (uint64_t ms = 0; ms < 1000; ms += 10)
        add_sample(t, ms, LIVE_EVENT_CPU, ms % 40 ? 1 : 0, ms % 20 ? STACK_COMPUTE : STACK_WORK);
    add_sample(t, 999, LIVE_EVENT_WAITS, 2, STACK_WAITS);
    live_tally_recorded(t, "web1: host");
    pass_time(t, 1000);
    return t;
}

static void press(struct live_view *v, const struct live_page *p, uint32_t key)
{
    live_view_key(v, key, &p->pick, p->table_rows);
}

TEST(page)
{
    struct live_tally *t = busy_tally();
    struct live_view v = {.interval_ns = NS_PER_S};
    struct live_page p = {0};

    assert_true(live_page_make(&p, t, &v, 24, 80));
    const char *text = text_of(&p);
    assert_non_null(strstr(text, "100 samples/s   1.00 CPUs   lost 0   GIL held 25 %\n"));
    assert_non_null(strstr(text, "waiting:  lock 0.01\n"));
    assert_non_null(strstr(text, "web1: host   1 s\n"));
    assert_non_null(strstr(text, "  50.0   50.0      0.50      0.50 compute [libfast.so]\n"));
    assert_non_null(strstr(text, "  50.0  100.0      0.50      1.00 work (app.py:10)\n"));
    assert_non_null(strstr(text, "        100.0      0.00      1.00 main (app.py:1)\n"));
    assert_int_equal(p.used, 24);

    press(&v, &p, 'w');
    assert_true(live_page_make(&p, t, &v, 24, 80));
    assert_non_null(strstr(text_of(&p), " 100.0  100.0      0.01      0.01 work (app.py:10)\n"));
    press(&v, &p, 'w');
    press(&v, &p, 't');
    assert_true(live_page_make(&p, t, &v, 24, 80));
    text = text_of(&p);
    assert_non_null(strstr(text, " 75.0                                    0.75 worker 101, shop 100\n"));
    assert_non_null(strstr(text, " 25.0  25.0                              0.25 MainThread 100, shop 100\n"));
    assert_non_null(strstr(text, "                    1.0                  0.00 MainThread 200, mail 200\n"));
    live_page_deinit(&p);
    live_tally_destroy(t);
}

/* Where there is no room for a field of the head it is left out whole. */
TEST(narrow_head)
{
    struct live_tally *t = busy_tally();
    struct live_view v = {.interval_ns = NS_PER_S};
    struct live_page p = {0};

    assert_true(live_page_make(&p, t, &v, 24, 50));
    assert_non_null(strstr(text_of(&p), "100 samples/s   1.00 CPUs   lost 0   GIL held 25 %\n"));
    assert_true(live_page_make(&p, t, &v, 24, 49));
    assert_non_null(strstr(text_of(&p), "100 samples/s   1.00 CPUs   lost 0  \xe2\x80\xa6\n"));
    assert_true(live_page_make(&p, t, &v, 24, 36));
    assert_non_null(strstr(text_of(&p), "100 samples/s   1.00 CPUs  \xe2\x80\xa6\n"));
    live_page_deinit(&p);
    live_tally_destroy(t);
}

/* What is no CPU time is shown in its own unit, and named. */
TEST(other_events)
{
    static const struct {
        struct emit_event event;
        const char *head, *row;
    } shown[] = {
        {{.name = "page-faults", .unit = "faults", .kind = EVENT_MEMORY}, "2 samples/s   19.1 MiB/s of page-faults   lost 0\n",
         "9.5 MiB  19.1 MiB work (app.py:10)\n"},
        {{.name = "syscalls:sys_enter_write", .unit = ""}, "2 samples/s   20,000,000/s of syscalls:sys_enter_write   lost 0\n",
         " 10000000  20000000 work (app.py:10)\n"},
        {{.name = "task-wait", .unit = "ns", .kind = EVENT_TASK_WAIT},
         "2 samples/s   0.02 tasks wait   lost 0\n", "0.01      0.02 work (app.py:10)\n"},
    };
    struct live_view v = {.interval_ns = NS_PER_S};
    struct live_page p = {0};

    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        struct emit_model model = live_model;
        struct live_tally *t = new_tally();
        model.events = &shown[i].event;
        model.event_count = 1;
        assert_null(live_tally_model(t, &model));
        add_sample(t, 100, 0, 0, STACK_WORK);
        add_sample(t, 200, 0, 0, STACK_COMPUTE);
        pass_time(t, 1000);
        assert_true(live_page_make(&p, t, &v, 24, 80));
        const char *text = text_of(&p);
        assert_non_null(strstr(text, shown[i].head));
        assert_non_null(strstr(text, shown[i].row));
        assert_null(strstr(text, "running"));
        live_tally_destroy(t);
    }
    live_page_deinit(&p);
}

TEST(selection)
{
    struct live_tally *t = busy_tally();
    struct live_view v = {.interval_ns = NS_PER_S};
    struct live_page p = {0};

    press(&v, &p, 't');
    assert_true(live_page_make(&p, t, &v, 24, 80));
    press(&v, &p, LIVE_KEY_DOWN);
    assert_true(live_page_make(&p, t, &v, 24, 80));
    press(&v, &p, LIVE_KEY_ENTER);
    assert_true(live_page_make(&p, t, &v, 24, 80));
    assert_non_null(strstr(text_of(&p), "thread MainThread 100 of shop 100, running"));
    assert_non_null(strstr(text_of(&p), " 100.0  100.0      0.25      0.25 work"));
    assert_null(strstr(text_of(&p), "compute"));
    press(&v, &p, 'a');
    press(&v, &p, 'p');
    assert_true(live_page_make(&p, t, &v, 24, 80));
    press(&v, &p, LIVE_KEY_ENTER);
    assert_int_equal(v.pid, 100);
    assert_int_equal(v.tid, 0);
    press(&v, &p, LIVE_KEY_ESCAPE);
    assert_int_equal(v.pid, 0);

    for (const char *key = "/COMP"; *key; key++)
        press(&v, &p, (uint32_t)*key);
    assert_true(live_page_make(&p, t, &v, 24, 80));
    assert_non_null(strstr(text_of(&p), "compute"));
    assert_null(strstr(text_of(&p), "work ("));
    press(&v, &p, 'q'); /* it is typed */
    assert_false(v.quit);
    press(&v, &p, LIVE_KEY_BACK);
    assert_string_equal(v.search, "COMP");
    press(&v, &p, LIVE_KEY_ENTER);
    press(&v, &p, LIVE_KEY_ESCAPE);
    assert_string_equal(v.search, "");
    press(&v, &p, 'q');
    assert_true(v.quit);
    live_page_deinit(&p);
    live_tally_destroy(t);
}

/* On screens of any size it fits, and a view that went too far comes back. */
TEST(sizes)
{
    struct live_tally *t = busy_tally();
    struct live_view v = {.interval_ns = NS_PER_S};
    struct live_page p = {0};

    for (int table = LIVE_FUNCTIONS; table <= LIVE_PROCESSES; table++) {
        for (size_t rows = 0; rows < 40; rows++) {
            for (size_t columns = 1; columns < 200; columns += 13) {
                v.table = (enum live_table)table;
                v.cursor = 1000;
                v.help = rows % 5 == 4;
                assert_true(live_page_make(&p, t, &v, rows, columns));
                assert_true(p.used <= (rows ? rows : 1));
                assert_true(rows < 3 || columns < 20 || v.help || v.cursor < 5);
            }
        }
    }
    v = (struct live_view){.interval_ns = NS_PER_S};
    assert_true(live_page_make(&p, t, &v, 6, 80));
    assert_non_null(strstr(text_of(&p), "samples/s")); /* the most important line, and three functions */
    assert_int_equal(p.table_rows, 3);
    press(&v, &p, LIVE_KEY_END);
    assert_true(live_page_make(&p, t, &v, 5, 80));
    assert_int_equal(p.table_rows, 2);
    assert_int_equal(v.top, 1);
    live_page_deinit(&p);
    live_tally_destroy(t);
}

/* Names that would control the terminal do not reach it. */
TEST(hostile_names)
{
    static const char evil[] = "\x1b[2J\x1b]0;title\x07\r\n\xc2\x9b" "31m\xff\xe2\x80\xae";
    static const struct emit_frame frame = {.kind = EMIT_PYTHON, .function = evil, .file = evil, .module = evil, .line = 1};
    static const struct emit_stack stack = {EMIT_NO_STACK, 0, 1};
    char many[sizeof evil + 600]; /* behind it three bytes a character, in which a text that is too long is not to be cut */
    const struct emit_process process = {.pid = 1, .name = evil, .comm = evil};
    const struct emit_thread thread = {0, 1, evil};
    const struct emit_event event = {.name = many, .unit = evil};
    struct live_view v = {.interval_ns = NS_PER_S};
    struct emit_model model = live_model;
    struct live_page p = {0};
    struct live_tally *t;

    memcpy(many, evil, sizeof evil);
    for (size_t i = 0; i < 600; i++)
        many[sizeof evil - 1 + i] = "\xe6\x97\xa5"[i % 3];
    many[sizeof many - 1] = 0;
    model.frames = &frame;
    model.stacks = &stack;
    model.processes = &process;
    model.threads = &thread;
    model.events = &event;
    model.frame_count = model.stack_count = model.process_count = model.thread_count = model.event_count = 1;
    assert_null(live_tally_create(NS_PER_S, &t));
    assert_null(live_tally_model(t, &model));
    live_tally_time(t, 1000 * NS_PER_S);
    add_sample(t, 100, 0, 0, 0);
    live_tally_recorded(t, many + sizeof evil - 1); /* these two come printable */
    pass_time(t, 1000);
    assert_null(live_tally_end(t, many + sizeof evil - 1));
    for (int table = LIVE_FUNCTIONS; table <= LIVE_PROCESSES; table++) {
        v.table = (enum live_table)table;
        v.pid = table == LIVE_THREADS;
        assert_true(live_page_make(&p, t, &v, 24, 80));
        for (size_t i = 0; i < p.used; i++)
            assert_true(utf8_is_printable((const char *)p.lines.data[i].text.data, p.lines.data[i].text.len_bytes));
    }
    live_page_deinit(&p);
    live_tally_destroy(t);
}

/* What tells extension modules of several Pythons apart takes no room, and binaries without names are told apart. */
TEST(binaries)
{
    static const struct emit_frame frames[] = {
        {.kind = EMIT_NATIVE, .function = "scan", .file = "", .module = "/usr/lib/_json.cpython-313-x86_64-linux-gnu.so"},
        {.kind = EMIT_NATIVE, .function = "", .file = "", .module = "/usr/lib/_json.cpython-313-x86_64-linux-gnu.so"},
        {.kind = EMIT_NATIVE, .function = "", .file = "", .module = "/usr/lib/x.cpython-313"},
        {.kind = EMIT_NATIVE, .function = "", .file = "", .module = ""},
    };
    static const struct emit_stack stacks[] = {{EMIT_NO_STACK, 0, 1}, {EMIT_NO_STACK, 1, 1}, {EMIT_NO_STACK, 2, 1}, {EMIT_NO_STACK, 3, 1}};
    struct live_view v = {.interval_ns = NS_PER_S};
    struct emit_model model = live_model;
    struct live_page p = {0};
    struct live_tally *t;

    model.frames = frames;
    model.stacks = stacks;
    model.frame_count = model.stack_count = 4;
    assert_null(live_tally_create(NS_PER_S, &t));
    assert_null(live_tally_model(t, &model));
    live_tally_time(t, 1000 * NS_PER_S);
    for (uint32_t i = 0; i < 4; i++)
        add_sample(t, 100, LIVE_EVENT_CPU, 0, i);
    pass_time(t, 1000);
    assert_true(live_page_make(&p, t, &v, 24, 80));
    const char *text = text_of(&p);
    assert_non_null(strstr(text, "0.01 scan [_json.so]\n"));
    assert_non_null(strstr(text, "0.01 [_json.so]\n"));
    assert_non_null(strstr(text, "0.01 [x.cpython-313]\n"));
    assert_non_null(strstr(text, "0.01 [unknown]\n"));
    live_page_deinit(&p);
    live_tally_destroy(t);
}

TEST(keys)
{
    struct live_view v = {.interval_ns = NS_PER_S};
    const struct live_pick none = {0};

    live_view_key(&v, '4', &none, 10);
    assert_int_equal(v.sort, LIVE_SORT_ALL_TOTAL);
    live_view_key(&v, 's', &none, 10);
    assert_int_equal(v.sort, LIVE_SORT_SELF);
    for (int i = 0; i < 20; i++)
        live_view_key(&v, '+', &none, 10);
    assert_int_equal(v.interval_ns, 60 * NS_PER_S);
    for (int i = 0; i < 20; i++)
        live_view_key(&v, '-', &none, 10);
    assert_int_equal(v.interval_ns, NS_PER_S);
    live_view_key(&v, '/', &none, 10);
    for (int i = 0; i < 100; i++)
        live_view_key(&v, 0x65e5, &none, 10); /* three bytes each */
    assert_true(strlen(v.search) < LIVE_SEARCH_BYTES);
    assert_true(utf8_is_printable(v.search, strlen(v.search)));
    for (int i = 0; i < 100; i++)
        live_view_key(&v, LIVE_KEY_BACK, &none, 10);
    assert_string_equal(v.search, "");
    live_view_key(&v, LIVE_KEY_ENTER, &none, 10);
    live_view_key(&v, LIVE_KEY_DOWN, &none, 10);
    live_view_fit(&v, 100, 10);
    assert_int_equal(v.top, 1); /* of functions the first key is seen, too */
    live_view_key(&v, LIVE_KEY_END, &none, 10);
    live_view_fit(&v, 100, 10);
    assert_int_equal(v.top, 90);
    live_view_key(&v, 't', &none, 10);
    live_view_key(&v, LIVE_KEY_DOWN, &none, 10);
    live_view_fit(&v, 100, 10);
    assert_int_equal(v.top, 0);
    assert_int_equal(v.cursor, 1);
    live_view_key(&v, '/', &none, 10);
    live_view_key(&v, 3, &none, 10); /* Ctrl-C ends it there, too */
    assert_true(v.quit);
}
