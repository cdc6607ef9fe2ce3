/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code with which a stack begins although something lies above it. greenlet runs each greenlet on a piece of the thread's
 * stack, copies the piece away when another greenlet runs, and lets others use the stack above it meanwhile: what an
 * unwinder would find there belongs to somebody else, and may look right. So the unwinders stop where a greenlet begins,
 * and its stack is complete.
 */
#ifndef FORMATS_ELF_STACK_START_H
#define FORMATS_ELF_STACK_START_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/elf/file.h"

/* Virtual addresses [start, end) of code that runs only as the outermost frame of such a stack; 0, 0: the file has none. */
struct stack_start {
    uint64_t start, end;
};

/*
 * Finds that code by symbol. Only an extension module of greenlet's has it; it is exported, so stripped files have the
 * symbol, too. Another file with a symbol of that name is believed: it can only cut its own stacks short.
 */
struct stack_start stack_start_find(const struct elf_file *f);
bool stack_start_holds(struct stack_start s, uint64_t vaddr);

#endif
