/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the records that other records refer to by id: events, modules, processes, threads, mappings. Each is written the
 * first time that an epoch refers to it. Calling again in the same epoch returns the same id.
 */
#ifndef CAPTURE_TRACE_TRACE_DEFINE_H
#define CAPTURE_TRACE_TRACE_DEFINE_H

#include "capture/trace/trace_parts.h"

/* Writes an event that was asked for, by its index; its period is what samples stand for from here on. */
void trace_define_event(struct trace_builder *b, uint32_t event);
/* Returns the module's id in this epoch; 0 when `m` is NULL. */
uint32_t trace_define_module(struct trace_builder *b, struct module *m);
/* Returns the process's id in this epoch, for records that say something about it but have no stacks. */
uint32_t trace_name_process(struct trace_builder *b, struct process_note *n);
/* Returns the process's id in this epoch. Writes its mappings, too. */
uint32_t trace_define_process(struct trace_builder *b, struct process_note *n);
/*
 * Stores in `*id` the id of a thread in this epoch, and updates the thread's Python name from the sample `m`. The
 * process must be defined in this epoch already.
 */
struct error *trace_define_thread(struct trace_builder *b, struct process_note *n, struct thread *t,
                                  const struct wire_sample *m, uint32_t *id);
/* Writes a mapping, unless its process has written more of them than its quota allows. The process must be defined in this epoch already. */
void trace_define_mapping(struct trace_builder *b, struct process_note *n, const struct code_mapping *m);

/*
 * Whether the mapping holds code that the program generated at run time. The vdso and ELF files in memory do not count.
 */
static inline bool code_mapping_is_generated(const struct code_mapping *m)
{
    return code_mapping_is_anonymous(m) && (!m->module || m->module->kind == TRACE_MODULE_OTHER);
}

#endif
