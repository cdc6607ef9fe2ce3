/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. Each of the four variables is learnt when a thread waits on it; what lies between them is theirs, too. */
#include "capture/process/gil_learn.h"

#include <elf.h>

#include "bpf/native_unwind.h"

#define FUTEX_BYTES 4
#define LIBRARY_FRAMES_MAX 16 /* of the C library, within the interpreter's */

static bool takes_gil(const struct py_image *image, uint64_t vaddr)
{
    return py_range_has(image->restore_thread, vaddr) || py_image_in_eval(image, vaddr);
}

/* The frame's place in the interpreter's file; 0: it is another file's. */
static uint64_t vaddr_of(const struct process *p, const struct native_frame *frame)
{
    uint64_t address = native_frame_code(frame);
    const struct code_mapping *m = code_mappings_find(&p->mappings, address);

    return m && m->module == p->python ? address - p->python_bias : 0;
}

static bool waits_for_gil(const struct process *p, const struct wire_sample *m)
{
    const struct native_frame *frames =
        (const void *)((const char *)(m + 1) + m->kernel_count * 8 + m->python_count * sizeof(struct wire_python));
    uint32_t at = 0;

    while (at < m->native_count && at < LIBRARY_FRAMES_MAX && !vaddr_of(p, &frames[at]))
        at++;
    if (!at || at + 1 >= m->native_count)
        return false;
    return takes_gil(&p->python->python, vaddr_of(p, &frames[at])) ||
           takes_gil(&p->python->python, vaddr_of(p, &frames[at + 1]));
}

static bool is_variable(const struct process *p, uint64_t address)
{
    const struct elf_segments *segments = &p->python->identity.segments;

    for (size_t i = 0; i < segments->count; i++) {
        const struct elf_segment *s = &segments->data[i];
        if (s->flags & PF_W && address - p->python_bias - s->vaddr < s->mem_size)
            return true;
    }
    return false;
}

bool gil_learn(struct process *p, const struct wire_sample *m)
{
    if (m->wait_kind != WIRE_WAIT_LOCK || !m->futex || !p->glibc || !process_has_python(p) ||
        p->python->python.gil.kind != PY_GIL_LEARN || p->start_boottime_ns != m->start_boottime_ns ||
        p->exec_generation != m->exec_generation)
        return false;
    uint64_t start = p->gil_len && p->gil < m->futex ? p->gil : m->futex, end = m->futex + FUTEX_BYTES;
    if (p->gil_len && p->gil + p->gil_len > end)
        end = p->gil + p->gil_len;
    if ((p->gil_len && start == p->gil && end == p->gil + p->gil_len) || end - start > PY_GIL_STATICS_MAX_BYTES)
        return false; /* known already, or elsewhere */
    if (!is_variable(p, m->futex) || !waits_for_gil(p, m))
        return false;
    p->gil = start;
    p->gil_len = (uint16_t)(end - start);
    return true;
}
