/* SPDX-License-Identifier: Apache-2.0 */
/* Records that others refer to by id: each is written when it is first referred to in an epoch. */
#ifndef CAPTURE_TRACE_TRACE_DEFINE_H
#define CAPTURE_TRACE_TRACE_DEFINE_H

#include "capture/trace/trace_parts.h"

/* The module's id in this epoch; 0 for NULL. */
uint32_t trace_define_module(struct trace_builder *b, struct module *m);
/* The process's id; its mappings are defined with it. */
uint32_t trace_define_process(struct trace_builder *b, struct process_note *n);
/* A thread of a process that is defined, with its name in Python as of the sample `m`. */
struct error *trace_define_thread(struct trace_builder *b, struct process_note *n, struct thread *t,
                                  const struct wire_sample *m, uint32_t *id);
/* A mapping of a process that is defined. */
void trace_define_mapping(struct trace_builder *b, struct process_note *n, const struct code_mapping *m);

/* Code that the program made at run time, which no file is behind; an ELF file in memory is a file. */
static inline bool code_mapping_is_generated(const struct code_mapping *m)
{
    return code_mapping_is_anonymous(m) && (!m->module || m->module->kind == TRACE_MODULE_OTHER);
}

#endif
