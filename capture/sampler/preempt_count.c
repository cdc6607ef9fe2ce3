/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's types (BTF) say where in the section of such variables each lies. Where the tool that made them (pahole) was
 * older than 1.18, as for Debian's 5.10, /proc/kallsyms does.
 */
#include "capture/sampler/preempt_count.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum variable { QUEUE, COUNT, HOT, VARIABLES };
static const char *const names[VARIABLES] = {[QUEUE] = "runqueues", [COUNT] = "__preempt_count", [HOT] = "pcpu_hot"};

/* Each one's place in the section; `known` where it was found. */
struct places {
    long long at[VARIABLES];
    bool known[VARIABLES];
};

static void note(struct places *out, const char *name, size_t name_len, long long at)
{
    for (int i = 0; i < VARIABLES; i++) {
        if (strlen(names[i]) == name_len && !memcmp(names[i], name, name_len)) {
            out->at[i] = at;
            out->known[i] = true;
        }
    }
}

static void read_types(const struct btf *btf, struct places *out)
{
    int id = btf__find_by_name_kind(btf, ".data..percpu", BTF_KIND_DATASEC);
    const struct btf_type *section = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;

    for (uint16_t i = 0; section && i < btf_vlen(section); i++) {
        const struct btf_var_secinfo *variable = &btf_var_secinfos(section)[i];
        const char *name = btf__name_by_offset(btf, btf__type_by_id(btf, variable->type)->name_off);
        note(out, name, strlen(name), variable->offset);
    }
}

/* Lines are "0000000000017c00 A name", where addresses are hidden with 0 for each. */
static void read_symbols(FILE *f, struct places *out)
{
    char line[512], *rest;

    while (fgets(line, sizeof line, f)) {
        long long at = strtoll(line, &rest, 16);
        if (at && *rest == ' ' && rest[1] && rest[2] == ' ')
            note(out, rest + 3, strcspn(rest + 3, "\n"), at);
    }
}

static bool is_enough(const struct places *p)
{
    return p->known[QUEUE] && (p->known[COUNT] || p->known[HOT]);
}

struct error *preempt_count_find(long long *from_queue)
{
    struct places p = {0};
    struct btf *btf = btf__load_vmlinux_btf();

    if (!btf)
        return error_os(errno, "the kernel's types (BTF) cannot be read");
    read_types(btf, &p);
    btf__free(btf);
    FILE *f = is_enough(&p) ? NULL : fopen("/proc/kallsyms", "re");
    if (f) {
        read_symbols(f, &p);
        fclose(f);
    }
    if (!is_enough(&p))
        return error_create(ERROR_UNSUPPORTED, "--waker cannot be used: this kernel does not say where it notes that it is in "
                                               "an interrupt");
    *from_queue = p.at[p.known[COUNT] ? COUNT : HOT] - p.at[QUEUE];
    return NULL;
}
