/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does this ELF file hold a CPython interpreter, and where are its parts?
 *
 * Symbols and sections decide (`_PyRuntime`, `.PyRuntime`, `Py_Version`, `PyCode_Type` …),
 * never the file's name. Addresses are virtual addresses of the file (add the load bias).
 */
#ifndef FORMATS_CPYTHON_IMAGE_H
#define FORMATS_CPYTHON_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/cpython/gil.h"
#include "formats/cpython/layout.h"
#include "formats/cpython/machine_code.h"
#include "formats/cpython/tls.h"
#include "formats/cpython/version.h"
#include "formats/elf/file.h"

/* Where asyncio of 3.14+ keeps its running task, by its own table of offsets; running_task 0: it has no such table. */
struct py_asyncio {
    uint16_t running_task;         /* in the thread state */
    uint16_t task_name, task_is_task; /* in a task: its name, an object; a byte that is 1 */
    uint16_t task_size;
    /* All tasks; task_coroutine 0: the table does not have it right. */
    uint16_t task_coroutine;
    uint16_t task_awaited_by;     /* NULL, what awaits it, or with awaited_by_is_set a set of that */
    uint16_t task_awaited_by_is_set; /* a byte */
    uint16_t task_node;           /* of a list of tasks: next and previous node */
    uint16_t thread_tasks;        /* in the thread state: head of the list of its tasks */
    uint32_t interpreter_tasks;   /* in the interpreter state: the same for tasks of threads that have ended */
};

struct py_image {
    bool is_python;
    uint32_t version_hex;
    const struct py_behaviour *behaviour; /* of this version; NULL: the version is unknown. Static */
    struct py_layout layout;  /* valid when `refused` is NULL */
    uint64_t runtime_vaddr;   /* _PyRuntime; up to 3.6 _PyThreadState_Current */
    uint64_t code_type_vaddr; /* PyCode_Type */
    struct py_tls tls_tstate;   /* _Py_tss_tstate, 3.12+ */
    struct py_tls tls_gilstate; /* _Py_tss_gilstate, 3.15+: set while the GIL is released, too */
    uint32_t eval_range_count;
    struct py_range eval_ranges[8]; /* the eval loop: _PyEval_EvalFrameDefault, up to 3.5 PyEval_EvalFrameEx, and
                                       the parts that the compiler split off */
    uint64_t interpreters_vaddr; /* up to 3.6: interp_head, 0 unknown */
    uint64_t str_type_vaddr, int_type_vaddr; /* PyUnicode_Type and PyLong_Type, in 2.7 PyString_Type and PyInt_Type; 0 unknown */
    uint64_t thread_key_vaddr;   /* 3.3 to 3.6: autoTLSkey, 0 unknown. 2.7 has no pthread key */
    uint64_t code_counter_vaddr; /* 3.12: the number that the next code object gets as its co_version; 0 unknown */
    struct py_gil gil;           /* where threads wait for the GIL; known where `refused` is NULL */
    struct py_range restore_thread; /* PyEval_RestoreThread(), which waits for the GIL; known where that is to be learnt */
    struct py_asyncio asyncio; /* of an interpreter, or of the extension module _asyncio */
    bool switches_stacks; /* the extension module greenlet, which runs Python on stacks of its own; is_python is false */
    bool all_python;      /* there is nothing but the interpreter in the file, as far as what it exports tells */
    char *refused; /* why this interpreter cannot be profiled, or NULL; owned */
};

static inline bool py_range_has(struct py_range r, uint64_t vaddr)
{
    return vaddr >= r.start && vaddr < r.end;
}

/* Whether code of the image's eval loop lies there. */
static inline bool py_image_in_eval(const struct py_image *image, uint64_t vaddr)
{
    for (uint32_t i = 0; i < image->eval_range_count; i++) {
        if (py_range_has(image->eval_ranges[i], vaddr))
            return true;
    }
    return false;
}

/*
 * Inspects an open file. One that is not ELF, or holds no interpreter, is not an error: is_python is false then, and
 * only switches_stacks and asyncio may be set. An interpreter that cannot be profiled has is_python and `refused` set.
 * The caller deinits *out.
 */
struct error *py_image_of(const struct elf_file *f, struct py_image *out);
/* Opens the file, inspects it and closes it, keeping `fd`; `path` is for messages. */
struct error *py_image_read(int fd, const char *path, struct py_image *out);
void py_image_deinit(struct py_image *img);
/* Copies what is known of a file into an empty struct. The caller deinits *to, also after an error: out of memory. */
struct error *py_image_copy(const struct py_image *from, struct py_image *to);

#endif
