/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/session/settings.h"

#include <inttypes.h>
#include <string.h>

#include "capture/process/filter.h"
#include "formats/base/buf.h"

void settings_add(struct settings *s, const char *key, const char *value)
{
    static const char ellipsis[] = "...";

    if (s->count == SETTINGS_MAX)
        return;
    struct setting *setting = &s->list[s->count++];
    setting->key = key;
    if (snprintf(setting->value, sizeof setting->value, "%s", value) >= (int)sizeof setting->value)
        memcpy(setting->value + sizeof setting->value - sizeof ellipsis, ellipsis, sizeof ellipsis);
}

static void add_number(struct settings *s, const char *key, uint64_t number)
{
    char text[32];

    snprintf(text, sizeof text, "%" PRIu64, number);
    settings_add(s, key, text);
}

/* Takes the text; none is no setting. */
static void add_text(struct settings *s, const char *key, struct buf *text)
{
    if (text->len_bytes && !text->bad)
        settings_add(s, key, buf_cstr(text));
    buf_deinit(text);
}

static void add_list(struct settings *s, const char *key, char *const *list, size_t count)
{
    struct buf text = {0};

    for (size_t i = 0; i < count; i++)
        buf_printf(&text, "%s%s", i ? "," : "", list[i]);
    add_text(s, key, &text);
}

static void add_cpus(struct settings *s, const int *cpus, uint32_t count)
{
    struct buf text = {0};

    for (uint32_t i = 0; i < count; i++)
        buf_printf(&text, "%s%d", i ? "," : "", cpus[i]);
    add_text(s, "cpus", &text);
}

void settings_of_options(const struct session_options *o, bool by_proc, struct settings *out)
{
    char percent[32];

    *out = (struct settings){0};
    settings_add(out, "backend", backend_names[by_proc ? BACKEND_PROC : BACKEND_BPF]);
    settings_add(out, "scope", o->command ? "command" : o->pid_count ? "pids" : "all");
    if (!o->follow)
        settings_add(out, "children", "no");
    if (o->filter) {
        add_list(out, "comm", o->filter->comms.data, o->filter->comms.count);
        add_list(out, "cgroup", o->filter->cgroups.data, o->filter->cgroups.count);
    }
    add_cpus(out, o->cpus, o->cpu_count);
    add_number(out, "frequency", o->frequency_hz);
    settings_add(out, "unwind", unwind_mode_names[by_proc ? UNWIND_NO : o->unwind]);
    if (!by_proc && session_takes_snapshots(o))
        add_number(out, "stack-size", o->stack_bytes);
    settings_add(out, "kernel", o->kernel && !by_proc ? "yes" : "no");
    if (o->max_cpu > 0) {
        snprintf(percent, sizeof percent, "%g%%", 100 * o->max_cpu);
        settings_add(out, "max-cpu", percent);
    }
    if (o->max_bytes)
        add_number(out, "max-size", o->max_bytes);
    if (o->max_memory)
        add_number(out, "max-memory", o->max_memory);
}
