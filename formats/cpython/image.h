/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does this ELF file hold a CPython interpreter, and where are its parts?
 *
 * Decided by symbols and sections alone (`_PyRuntime`, `.PyRuntime`, `Py_Version`,
 * `PyCode_Type` …), never by the file's name. Addresses are virtual addresses of the
 * file (add the load bias).
 */
#ifndef FORMATS_CPYTHON_IMAGE_H
#define FORMATS_CPYTHON_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/cpython/layout.h"
#include "formats/cpython/machine_code.h"
#include "formats/cpython/tls.h"
#include "formats/cpython/version.h"
#include "formats/elf/file.h"

/* Where asyncio of 3.14+ keeps its running task, as its own table says; running_task 0: there is no such table. */
struct py_asyncio {
    uint16_t running_task;         /* in the thread state */
    uint16_t task_name, task_is_task; /* in a task: an object; a byte that is 1 */
    uint16_t task_size;
};

struct py_image {
    bool is_python;
    uint32_t version_hex;
    const struct py_behaviour *behaviour; /* what this version does; NULL when the version is not known. Static */
    struct py_layout layout;  /* valid when `refused` is NULL */
    uint64_t runtime_vaddr;   /* _PyRuntime; up to 3.6 _PyThreadState_Current */
    uint64_t code_type_vaddr; /* PyCode_Type */
    struct py_tls tls_tstate; /* _Py_tss_tstate, 3.12+ */
    struct py_tls tls_gilstate; /* _Py_tss_gilstate, 3.15+: set while the GIL is released too; likewise */
    uint32_t eval_range_count;
    struct py_range eval_ranges[8]; /* _PyEval_EvalFrameDefault, up to 3.5 PyEval_EvalFrameEx;
                                       its cold parts by the symbol table, up to 3.10 also by the code */
    uint64_t interpreters_vaddr; /* up to 3.6: interp_head, 0 unknown */
    uint64_t str_type_vaddr, int_type_vaddr; /* PyUnicode_Type and PyLong_Type, in 2.7 PyString_Type and PyInt_Type; 0 unknown */
    uint64_t thread_key_vaddr;   /* 3.3 to 3.6: autoTLSkey, 0 unknown. 2.7 has a list of its own in place of a pthread key */
    struct py_asyncio asyncio; /* of an interpreter, or of the extension module _asyncio */
    bool switches_stacks; /* no interpreter but the extension module greenlet, which runs Python on stacks of its own */
    char *refused; /* why it cannot be profiled, or NULL; owned */
};

/*
 * Inspects an open file. A file that is no ELF or holds no interpreter is no
 * error: is_python is false (and only switches_stacks and asyncio say more). An interpreter we cannot serve has is_python set and `refused`.
 */
struct error *py_image_of(const struct elf_file *f, struct py_image *out);
/* The same for who needs no more of the file; `path` is for messages. */
struct error *py_image_read(int fd, const char *path, struct py_image *out);
void py_image_deinit(struct py_image *img);

#endif
