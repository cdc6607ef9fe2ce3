/* SPDX-License-Identifier: Apache-2.0 */
/* The series of samples: rules, the label map, hostile names, and how many series a window may have. */
#include "tests/unit/test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "formats/base/utf8.h"
#include "symbolize/push/label_map.h"
#include "symbolize/push/series.h"
#include "tests/tools/emit_synthetic.h"

#define ID "4f2c8e1b7a90d3c65b18e7f20a94c3d1b6e85f709a2c4d1e3b5f6a7089c1d2e3"
#define UID "3f0c1f3a-1111-2222-3333-444455556666"
#define WINDOW UINT64_C(15000000000)

static const struct emit_capture web = {.hostname = "web-1"};

/* A host with one process in a systemd service, thread 0, and one in a pod, thread 1; events cpu-clock and off-cpu. */
static void setup(struct synthetic *s)
{
    uint32_t shop = synthetic_process(s, 100, "gunicorn: worke"), pod = synthetic_process(s, 200, "python3");

    s->processes.data[shop].name = "gunicorn";
    s->processes.data[shop].cgroup = "/system.slice/shop@eu.service";
    s->processes.data[shop].python_version = 0x030c04f0;
    s->processes.data[pod].cgroup = "/kubepods/pod" UID "/" ID;
    s->processes.data[pod].container = "4f2c8e1b7a90";
    s->processes.data[pod].python_version = 0x030d00f0;
    s->processes.data[pod].free_threaded = true;
    synthetic_thread(s, shop, 101, "MainThread");
    synthetic_thread(s, pod, 200, "worker");
    synthetic_event(s, "cpu-clock", "ns", true);
    synthetic_event(s, "off-cpu", "ns", true);
    s->model.captures = &web;
    s->model.capture_count = 1;
}

struct world {
    struct synthetic s;
    struct push_request request;
    struct limits limits;
    struct series *series;
    char map[64];
};

/* `rules`: ends with NULL. `map`: what stands in the label map; NULL: there is none. */
static struct error *begin(struct world *w, const char *const *rules, const char *map)
{
    *w = (struct world){.request = {.max_series = 100}, .limits = {.memory_max = 64 << 20, .work_max = UINT64_MAX}};
    setup(&w->s);
    for (; rules && *rules; rules++)
        assert_true(VEC_PUSH(&w->request.labels, *rules));
    if (map) {
        strcpy(w->map, "/tmp/pysym-labels-XXXXXX");
        int fd = mkstemp(w->map);
        assert_true(fd >= 0 && write(fd, map, strlen(map)) == (ssize_t)strlen(map));
        close(fd);
        w->request.label_map = w->map;
    }
    struct error *err = series_check_rules(&w->request);
    return err ? err : series_create(&w->request, &w->limits, &w->series);
}

static void finish(struct world *w)
{
    series_destroy(w->series);
    assert_int_equal(w->limits.memory_used, 0);
    if (*w->map)
        unlink(w->map);
    VEC_DEINIT(&w->request.labels);
    synthetic_deinit(&w->s);
}

static uint32_t find(struct world *w, uint32_t thread, uint32_t event, uint64_t window)
{
    const struct emit_sample sample = {.thread = thread, .event = event};
    uint32_t number = UINT32_MAX;

    OK(series_find(w->series, &w->s.model, &sample, window * WINDOW, &number));
    return number;
}

/* The labels of a series as "name=value name=value". */
static const char *text_of(const struct world *w, uint32_t number)
{
    static char text[8192];
    uint32_t count;
    const struct profile_label *labels = series_labels(w->series, number, &count);
    size_t len = 0;

    for (uint32_t i = 0; i < count; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s=%s", i ? " " : "", labels[i].name, labels[i].value);
    return text;
}

static const char *labels_of(struct world *w, uint32_t thread, uint32_t event)
{
    return text_of(w, find(w, thread, event, 1));
}

TEST(defaults)
{
    struct world w;
    uint32_t lost;

    OK(begin(&w, NULL, NULL));
    assert_string_equal(labels_of(&w, 0, 0), "__name__=process_cpu host=web-1 python_version=3.12 service_name=shop@eu");
    assert_string_equal(labels_of(&w, 0, 1), "__name__=off_cpu host=web-1 python_version=3.12 service_name=shop@eu");
    assert_string_equal(labels_of(&w, 1, 0), "__name__=process_cpu container_id=4f2c8e1b7a90 host=web-1 pod_uid=" UID
                                             " python_version=3.13t service_name=python3");
    OK(series_of_losses(w.series, &w.s.model, 0, &lost));
    assert_string_equal(text_of(&w, lost), "__name__=pycap_lost host=web-1 service_name=pycap");
    finish(&w);
}

/* Events whose names a store spells alike have profiles of their own; and none is taken for that of losses. */
TEST(events_spelled_alike)
{
    static const char *const names[] = {"a:b", "a_b", "a-b_2", "a.b", "task-clock", "pycap_lost"};
    static const char *const series[] = {"a_b", "a_b_2", "a_b_2_2", "a_b_3", "process_cpu_2", "pycap_lost_2"};
    enum { COUNT = sizeof names / sizeof *names };
    struct world w;
    char want[64];

    OK(begin(&w, NULL, NULL));
    for (size_t i = 0; i < COUNT; i++)
        synthetic_event(&w.s, names[i], "hits", false);
    for (uint32_t i = COUNT; i--;) {
        int len = snprintf(want, sizeof want, "__name__=%s ", series[i]);
        assert_memory_equal(labels_of(&w, 0, 2 + i), want, (size_t)len);
    }
    assert_memory_equal(labels_of(&w, 0, 0), "__name__=process_cpu ", 21);
    finish(&w);
}

/* Equal labels are one series: of the threads of a process, and of processes. */
TEST(numbers)
{
    struct world w;

    OK(begin(&w, NULL, NULL));
    synthetic_thread(&w.s, 0, 102, "other thread");
    uint32_t again = synthetic_process(&w.s, 300, "gunicorn: worke");
    w.s.processes.data[again] = w.s.processes.data[0];
    w.s.processes.data[again].pid = 300;
    synthetic_thread(&w.s, again, 300, "MainThread");
    assert_int_equal(find(&w, 0, 0, 1), 0);
    assert_int_equal(find(&w, 1, 0, 1), 1);
    assert_int_equal(find(&w, 2, 0, 1), 0);
    assert_int_equal(find(&w, 3, 0, 1), 0);
    assert_int_equal(find(&w, 0, 0, 2), 0);
    w.s.processes.data[0].name = "celery"; /* not what its service is called by */
    assert_int_equal(find(&w, 0, 0, 2), 0);
    w.s.processes.data[0].cgroup = "/";
    assert_string_equal(text_of(&w, find(&w, 0, 0, 2)), "__name__=process_cpu host=web-1 python_version=3.12 service_name=celery");
    finish(&w);
}

TEST(rules)
{
    static const char *const rules[] = {"service_name={comm}-{pid}", "host=", "cluster=eu {{1}}", "t={thread}/{tid}/{event}", "pod={pod_uid}",
                                        "what={pod_uid|unit}: {program}", "python_version=", "container_id=", "pod_uid=", NULL};
    struct world w;
    uint32_t lost;

    OK(begin(&w, rules, NULL));
    assert_string_equal(labels_of(&w, 0, 0), "__name__=process_cpu cluster=eu {1} service_name=gunicorn: worke-100 t=MainThread/101/cpu-clock "
                                             "what=shop@eu: gunicorn");
    assert_string_equal(labels_of(&w, 1, 1), "__name__=off_cpu cluster=eu {1} pod=" UID " service_name=python3-200 t=worker/200/off-cpu "
                                             "what=" UID ": python3");
    OK(series_of_losses(w.series, &w.s.model, 0, &lost));
    assert_string_equal(text_of(&w, lost), "__name__=pycap_lost cluster=eu {1} service_name=pycap");
    finish(&w);
}

/* There is always a service_name. */
TEST(service_name)
{
    static const char *const rules[] = {"service_name={pod_uid}", "host=", "python_version=", NULL};
    struct world w;

    OK(begin(&w, rules, NULL));
    assert_string_equal(labels_of(&w, 0, 0), "__name__=process_cpu service_name=gunicorn");
    w.s.processes.data[0].name = "-m http.server";
    assert_string_equal(labels_of(&w, 0, 0), "__name__=process_cpu service_name=http.server");
    w.s.processes.data[0].name = "-c";
    assert_string_equal(labels_of(&w, 0, 0), "__name__=process_cpu service_name=gunicorn: worke");
    w.s.processes.data[0].name = "";
    assert_string_equal(labels_of(&w, 0, 0), "__name__=process_cpu service_name=gunicorn: worke");
    w.s.processes.data[0].comm = "";
    assert_string_equal(labels_of(&w, 0, 0), "__name__=process_cpu service_name=unknown");
    finish(&w);
}

TEST(map)
{
    static const char map[] = "# what the cluster knows\n"
                              "pod:" UID "   service_name=shop  namespace=prod # and a remark\n"
                              "pod:" UID " node=n1\n"
                              "container:containerd://" ID " node=n2 image=shop:1.2=x\n"
                              "unit:shop@eu.service service_name=shop-eu host=no\n"
                              "host:web-1 zone=a namespace=none\n"
                              "host:web-2 zone=b\n";
    static const char *const rules[] = {"ns={namespace}", "python_version=", "container_id=", "pod_uid=", "node={node}.local", NULL};
    struct world w;
    uint32_t lost;

    OK(begin(&w, rules, map));
    /* The container counts before the pod, and that before the host; a rule before all of them. */
    assert_string_equal(labels_of(&w, 1, 0), "__name__=process_cpu host=web-1 image=shop:1.2=x namespace=prod node=n2.local ns=prod "
                                             "service_name=shop zone=a");
    assert_string_equal(labels_of(&w, 0, 0), "__name__=process_cpu host=web-1 namespace=none ns=none service_name=shop-eu zone=a");
    OK(series_of_losses(w.series, &w.s.model, 0, &lost));
    assert_string_equal(text_of(&w, lost), "__name__=pycap_lost host=web-1 namespace=none ns=none service_name=pycap zone=a");
    finish(&w);
}

TEST(hostile)
{
    static const char *const rules[] = {"service_name={program}", "both={comm}{cgroup}", "long={cgroup}{cgroup}", NULL};
    char *longest = calloc(1, 5001);
    struct world w;
    uint32_t count;

    for (int i = 0; i < 5000; i += 2)
        memcpy(longest + i, "\xc3\xa9", 2); /* of two bytes: one too long begins at an odd place behind one letter */
    OK(begin(&w, rules, NULL));
    w.s.processes.data[0].name = "\x1b[2J\xff \xe2\x80\xae evil\n";
    w.s.processes.data[0].comm = "x";
    w.s.processes.data[0].cgroup = longest;
    const struct profile_label *labels = series_labels(w.series, find(&w, 0, 0, 1), &count);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(utf8_is_printable(labels[i].value, strlen(labels[i].value)));
        if (!strcmp(labels[i].name, "service_name"))
            assert_string_equal(labels[i].value, "\\x1b[2J\\xff \\xe2\\x80\\xae evil\\x0a");
        else if (!strcmp(labels[i].name, "both"))
            assert_int_equal(strlen(labels[i].value), PROFILE_LABEL_VALUE_MAX - 1);
        else if (!strcmp(labels[i].name, "long"))
            assert_int_equal(strlen(labels[i].value), PROFILE_LABEL_VALUE_MAX);
    }
    finish(&w);
    free(longest);
}

/* Of two windows at once, as samples come. */
TEST(most)
{
    static const char *const rules[] = {"service_name={pid}", "zone=a", NULL};
    struct world w;

    OK(begin(&w, rules, NULL));
    series_destroy(w.series);
    w.request.max_series = 2;
    OK(series_create(&w.request, &w.limits, &w.series));
    for (uint32_t pid = 300; pid < 310; pid++)
        synthetic_thread(&w.s, synthetic_process(&w.s, pid, "many"), pid, "many");
    uint32_t first = find(&w, 2, 0, 1), second = find(&w, 3, 0, 1), other = find(&w, 4, 0, 1);
    assert_string_equal(text_of(&w, other), "__name__=process_cpu host=web-1 service_name=other zone=a");
    assert_int_equal(find(&w, 5, 0, 1), other);
    assert_string_equal(text_of(&w, find(&w, 5, 1, 1)), "__name__=off_cpu host=web-1 service_name=other zone=a");
    assert_int_equal(series_folded_count(w.series), 3);
    uint32_t late = find(&w, 5, 0, 2);
    assert_string_equal(text_of(&w, late), "__name__=process_cpu host=web-1 service_name=303 zone=a");
    assert_int_equal(find(&w, 2, 0, 1), first);
    assert_int_equal(find(&w, 3, 0, 1), second);
    assert_int_equal(find(&w, 5, 0, 1), other);
    assert_int_equal(find(&w, 2, 0, 2), first);
    assert_int_equal(find(&w, 3, 0, 2), other);
    assert_int_equal(series_folded_count(w.series), 4);
    for (uint64_t window = 3; window < 3 + SERIES_WINDOWS_MAX; window++)
        assert_int_equal(find(&w, 11, 0, window), find(&w, 11, 0, 3));
    assert_int_equal(series_folded_count(w.series), 4);
    finish(&w);
}

/* Memory is counted: a trace with many names ends with an error, not with the host's memory. */
TEST(memory)
{
    static const char *const rules[] = {"service_name={program}", NULL};
    struct world w;
    struct error *err = NULL;
    char names[2][40];

    OK(begin(&w, rules, NULL));
    w.limits.memory_max = w.limits.memory_used + (1 << 20);
    for (uint32_t i = 0; !err && i < 1000000; i++) {
        const struct emit_sample sample = {.thread = 0};
        uint32_t number;
        snprintf(names[i % 2], sizeof names[0], "name %u", i);
        w.s.processes.data[0].name = names[i % 2];
        err = series_find(w.series, &w.s.model, &sample, WINDOW, &number);
    }
    assert_non_null(err);
    assert_int_equal(err->code, ERROR_NO_MEMORY);
    assert_true(w.limits.exceeded);
    error_destroy(err);
    finish(&w);
}

TEST(refused_rules)
{
    static const char many[] = "a=1;b=1;c=1;d=1;e=1;f=1;g=1;h=1;i=1;j=1;k=1;l=1;m=1;n=1;o=1;p=1;q=1;r=1;s=1;t=1;u=1;v=1;w=1;x=1;y=1";
    static const struct {
        const char *rules, *map, *error; /* several rules: with ';' between them */
    } cases[] = {
        {"app", NULL, "--label wants NAME=RULE, such as app={comm}, not 'app'"},
        {"=x", NULL, "--label: '' cannot be the name of a label"},
        {"a-b=x", NULL, "--label: 'a-b' cannot be the name of a label: letters, digits and _ make one, with no digit first"},
        {"1a=x", NULL, "'1a' cannot be"},
        {"caf\xc3\xa9=x", NULL, "cannot be the name"},
        {"__name__=x", NULL, "--label: __name__: names that begin with __ are the store's own"},
        {"a={nope}", NULL, "--label a={nope}: there is no field nope, unless a --label-map gives it: fields are host, program"},
        {"a={comm", NULL, "--label a={comm: a { has no } behind it"},
        {"a={comm|", NULL, "a field is a word in braces"},
        {"a={}", NULL, "a field is a word in braces"},
        {"a={comm{x}}", NULL, "a { has no } behind it"},
        {"a=x}", NULL, "--label a=x}: a } has no { before it; }} stands for a brace"},
        {"a=\x1b[2J", NULL, "holds characters that cannot be shown"},
        {"a=1;a=2", NULL, "--label a=2: a label of that name was given already"},
        {"service_name=", NULL, "--label service_name=: stores take no profile without a service_name"},
        {many, NULL, "series would have 31 labels: stores take 30; --label NAME= leaves one out"},
        {"", "pods:x a=1\n", ":1: a line begins with pod:UID, container:ID, unit:NAME or host:NAME, not 'pods:x'"},
        {"", "\npod: a=1\n", ":2: a line begins with"},
        {"", "host:a b\n", "labels are written label=value, not 'b'"},
        {"", "host:a b=\n", "a label lacks its value"},
        {"", "host:a =b\n", "'' cannot be the name of a label"},
        {"", "host:a __x=b\n", "names that begin with __"},
        {"", "host:a b=1\nhost:b b=1\nhost:a b=2\n", ":3: it has the label b already"},
        {"", "host:a b=\xff\n", "a label holds characters that cannot be shown"},
        {"a=1;b=1;c=1;d=1;e=1;f=1;g=1;h=1;i=1;j=1;k=1;l=1;m=1;n=1;o=1;p=1;q=1;r=1;s=1;t=1;u=1;v=1;w=1;x=1", "host:a zone=1\n",
         "series would have 31 labels, with those of the label map: stores take 30"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *rules[32] = {NULL};
        char *copy = strdup(cases[i].rules), *rest = copy;
        struct world w;
        for (size_t count = 0; *copy && rest && count < 31; count++)
            rules[count] = strsep(&rest, ";");
        struct error *err = begin(&w, rules, cases[i].map);
        if (!err || err->code != ERROR_USAGE || !strstr(error_text(err), cases[i].error))
            fail_msg("%s: %s", cases[i].rules, err ? error_text(err) : "accepted");
        error_destroy(err);
        finish(&w);
        free(copy);
    }
}

/* A map that is not there is named. */
TEST(no_map)
{
    struct push_request request = {.label_map = "/nowhere/names.txt", .max_series = 1};
    struct limits limits = {.memory_max = 1 << 20, .work_max = UINT64_MAX};
    struct series *series;

    struct error *err = series_create(&request, &limits, &series);
    assert_non_null(err);
    assert_int_equal(err->code, ERROR_NOT_FOUND);
    assert_non_null(strstr(error_text(err), "/nowhere/names.txt"));
    error_destroy(err);
}
