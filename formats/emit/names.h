/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spells frames, threads and processes, for every output format.
 *
 * A frame has two spellings. The *shown* one is for people (folded, speedscope, top):
 *
 *     C.run (app.py:42)   Python; with the column when asked for
 *     r_object (marshal)  native, of a built-in module of the interpreter
 *     PyObject_Call       other native; [libfoo.so] when the function is unknown, [jit] in code made at run time
 *     do_syscall_64_[k]   kernel
 *     [torn]              a mark
 *
 * The *perf* one is for programs that read the text of `perf script`, see perf_script.c.
 *
 * Whatever a target calls its functions, files and threads, the text from here is valid UTF-8 on one line, has no
 * separator of the format in it, and does not end in a space and a number, which readers of folded stacks would take for
 * a count.
 */
#ifndef FORMATS_EMIT_NAMES_H
#define FORMATS_EMIT_NAMES_H

#include <string.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "formats/base/intern.h"
#include "formats/emit/emit.h"

/* The only frame of a sample without frames. Some readers would lose a sample that has none. */
#define NAME_NO_FRAMES "[no frames]"
/* The module of code made at run time. */
#define NAME_GENERATED "[jit]"

enum name_detail {
    NAME_AS_ASKED, /* with the frame's line, in Python */
    NAME_FUNCTION, /* one text for all lines of a function */
    NAME_LINE,     /* with the line, native frames too */
};

/*
 * The short names of the model's Python files. A short name begins with the package if the path shows it (behind
 * site-packages or the standard library's folder), else it is the last component; it is longer where two files would
 * have the same. Under own_paths it is the whole path instead of the last component. This depends on all frames, so it is made after the last sample.
 */
struct names {
    const struct emit_model *model;
    const struct emit_options *options;
    struct intern paths;
    uint32_t *starts; /* by path: where its short name begins; NULL under full_paths */
};

/* `model` and `options` must outlive `n`, which the caller deinits, also after an error. */
struct error *names_init(struct names *n, const struct emit_model *model, const struct emit_options *options);
void names_deinit(struct names *n);
/* The file of a frame as it is shown; it lives as long as the model. */
const char *names_file(const struct names *n, const struct emit_frame *frame);
/* The part of a path that an import names, as far as the path alone shows it. */
const char *names_import_path(const char *path);
/* The path behind site-packages or the standard library's folder; all of it, if it shows neither. */
const char *names_package_path(const char *path);
/* The length of a binary's path, without " (deleted)", which the kernel adds when the file is gone. */
static inline size_t name_path_len(const char *path)
{
    static const char deleted[] = " (deleted)";
    size_t len = strlen(path), end = sizeof deleted - 1;

    return len > end && !strcmp(path + len - end, deleted) ? len - end : len;
}
/* The last component of a path. */
static inline const char *name_base(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

/*
 * Spells all frames. (*ids)[frame] is the id of the frame's text in `texts`; equal texts have equal ids. One more entry,
 * at frame_count, is NAME_NO_FRAMES. The caller frees *ids.
 */
struct error *names_spell(const struct names *n, enum name_detail detail, struct intern *texts, uint32_t **ids);

/* These append to `out`. A process without its number: its name, and its title if it has one: gunicorn "shop: worker". */
void name_process_plain(const struct emit_process *process, struct buf *out);
/* The same and its number, never empty: gunicorn-26037, gunicorn "shop: worker"-26041. */
void name_process(const struct emit_process *process, struct buf *out);
/* "name-tid": */
void name_thread(const struct emit_thread *thread, struct buf *out);
/*
 * For people: "gunicorn 26037", or of a thread "gunicorn 26037 · worker 26041"; a title stands before the number of its
 * process. A main thread's number is that of its process. `owner` is the index of a process (EMIT_MERGE_PROCESS) or a thread (EMIT_MERGE_THREAD).
 */
void name_owner(const struct emit_model *model, enum emit_merge merge, uint32_t owner, struct buf *out);
/* A name alone, of a thread or a file; may be "": */
void name_plain(const char *name, struct buf *out);
/*
 * A Python function for a reader who may not see its file: <module shop/app>, else the qualified name. With `by_module` all
 * begin with their module: shop.cart.Cart.add, app.py:<module>.
 */
void names_put_python(const struct names *n, const struct emit_frame *frame, bool by_module, struct buf *out);
/*
 * The function of any frame, for tables of functions that have files and lines in columns of their own: as above, a native
 * or kernel function with its built-in module behind it, or its binary if it is unknown; of a mark its text.
 */
void names_put_function(const struct names *n, const struct emit_frame *frame, bool by_module, struct buf *out);
/* The binary of a frame without a function: [libfoo.so], NAME_GENERATED, [unknown]. */
void name_module(const struct emit_frame *frame, struct buf *out);
/* Is it the module of code made at run time? That has the path of its table of symbols: /tmp/perf-PID.map. */
bool name_is_generated(const char *module);
/* A name without spaces, never empty: comm and event of a `perf script` header. */
void name_word(const char *name, struct buf *out);
/* A sum of weights of an event, for people: "12.3 s", "840 ms", "64.0 KiB", "32 switches". */
void name_weight(const struct emit_event *event, uint64_t weight, struct buf *out);
/* What percentages of an event are of: "time", "bytes", "switches". */
void name_unit(const struct emit_event *event, struct buf *out);
/* A `perf script` frame line behind the address: "SYMBOL+0xOFFSET (BINARY)". */
void name_perf(const struct emit_frame *frame, const struct emit_options *options, struct buf *out);
/*
 * A symbol for perf, which stands for all lines of a function: "py::C.run:views.py" with the short name of the file, the
 * name of a native function, or its module as above if that is unknown.
 */
void names_symbol(const struct names *n, const struct emit_frame *frame, struct buf *out);
/* The path of a source file in full, for programs that open it; never empty. */
void name_path(const char *path, struct buf *out);
/* The line and column in the shown spelling; 0: it has none. */
void name_position(const struct emit_frame *frame, const struct emit_options *options, enum name_detail detail,
                   uint32_t *line, uint32_t *column);

#endif
