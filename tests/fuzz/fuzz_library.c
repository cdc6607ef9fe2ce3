/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces whose records were changed behind correct checksums (trace_mutator.h), through the library of the trace: all that it
 * says of them is looked at.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolize/library/pycap_trace.h"
#include "tests/fuzz/trace_mutator.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t len_bytes, size_t max_bytes, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data, size_t len_bytes, const uint8_t *other, size_t other_len_bytes,
                                 uint8_t *out, size_t max_bytes, unsigned seed);

static volatile size_t seen; /* so that nothing is left out for being of no use */

static void look(struct pycap_trace *t, const struct pycap_sample *s)
{
    const struct pycap_process *p = s->thread->process;
    uint64_t offset;

    seen += strlen(s->event->name) + strlen(s->event->unit) + strlen(s->thread->name);
    seen += strlen(p->name) + strlen(p->comm) + strlen(p->exe) + strlen(p->cgroup);
    for (uint32_t i = 0; i < s->python_count; i++)
        seen += strlen(s->python[i]->function) + strlen(s->python[i]->file) + s->python[i]->line + s->python[i]->column;
    for (uint32_t i = 0; i < s->native_count; i++)
        seen += s->native[i]->module ? strlen(s->native[i]->module->path) : 1;
    for (uint32_t i = 0; i < s->kernel_count; i++)
        seen += strlen(s->kernel[i]->function) + strlen(s->kernel[i]->module);
    for (uint32_t i = 0; i < s->label_count; i++)
        seen += strlen(s->labels[i].key) + strlen(s->labels[i].value);
    const struct pycap_module *m = pycap_trace_find(t, p, s->time_ns, s->native_count ? s->native[0]->offset : 4096, &offset);
    seen += m ? strlen(m->path) + (m->build_id ? m->build_id[m->build_id_len - 1] : 0) : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    char path[64], why[PYCAP_MESSAGE_MAX];
    const struct pycap_sample *s;
    int fd = memfd_create("fuzz", MFD_CLOEXEC), more = 0;

    if (write(fd, data, len_bytes) != (ssize_t)len_bytes)
        __builtin_trap();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct pycap_trace *t = pycap_trace_open(path, why, sizeof why);
    while (t && (more = pycap_trace_next(t, &s)) > 0)
        look(t, s);
    if (t && ((more < 0) != (*pycap_trace_error(t) != 0) || pycap_trace_next(t, &s) != more))
        __builtin_trap();
    pycap_trace_close(t);
    close(fd);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t len_bytes, size_t max_bytes, unsigned seed)
{
    struct mutator m;

    mutator_open(&m, data, len_bytes, seed);
    mutator_change(&m);
    size_t written = mutator_write(&m, data, max_bytes);
    mutator_close(&m);
    return written ? written : len_bytes;
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *data, size_t len_bytes, const uint8_t *other, size_t other_len_bytes,
                                 uint8_t *out, size_t max_bytes, unsigned seed)
{
    struct mutator m, with;

    mutator_open(&m, data, len_bytes, seed);
    mutator_open(&with, other, other_len_bytes, seed);
    mutator_cross(&m, &with);
    size_t written = mutator_write(&m, out, max_bytes);
    mutator_close(&m);
    mutator_close(&with);
    return written;
}
