/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a frame is spelled: the one place that knows it, for every output format.
 *
 * There are two spellings. The *shown* one is for people (folded, speedscope, top):
 *
 *     C.run (app.py:42)   Python; with the column when asked for
 *     PyObject_Call       native; [libfoo.so] when the function is unknown, [jit] in code made at run time
 *     do_syscall_64_[k]   kernel
 *     [torn]              a mark
 *
 * The *perf* one is for what reads the text of `perf script`, see perf_script.c.
 *
 * Whatever a target called its functions, files and threads, all text that leaves here is valid UTF-8 on one line,
 * has no separator of the format in it, and does not end in a space and a number, which tools that read folded
 * stacks would take for a count.
 */
#ifndef FORMATS_EMIT_NAMES_H
#define FORMATS_EMIT_NAMES_H

#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "formats/base/intern.h"
#include "formats/emit/emit.h"

/* Stands for a sample that has no frames at all. Without it some consumers lose such samples. */
#define NAME_NO_FRAMES "[no frames]"

enum name_detail {
    NAME_AS_ASKED, /* with the frame's line, in Python */
    NAME_FUNCTION, /* one text for all lines of a function */
    NAME_LINE,     /* with the line, native frames too */
};

/*
 * The model's Python files under their short names: from the package on where the path shows where that begins
 * (behind site-packages or the standard library's folder), else the last component; longer where that would not tell
 * two files apart. That takes all frames, so it is made when the last sample has come.
 */
struct names {
    const struct emit_model *model;
    const struct emit_options *options;
    struct intern paths;
    uint32_t *starts; /* by path: where its short name begins; NULL under full_paths */
};

struct error *names_init(struct names *n, const struct emit_model *model, const struct emit_options *options);
void names_deinit(struct names *n);
/*
 * Spells all frames. Equal texts get one id in `texts`; (*ids)[frame] is the frame's. One more entry, at frame_count,
 * is NAME_NO_FRAMES. The caller frees `*ids`.
 */
struct error *names_spell(const struct names *n, enum name_detail detail, struct intern *texts, uint32_t **ids);

/* "comm-pid", without spaces. */
void name_process(const struct emit_process *process, struct buf *out);
/* "name-tid". */
void name_thread(const struct emit_thread *thread, struct buf *out);
/* A thread's name alone, or "". */
void name_plain(const char *name, struct buf *out);
/* Without spaces and never empty: comm and event of a `perf script` header. */
void name_word(const char *name, struct buf *out);
/* The rest of a `perf script` frame line behind the address: "SYMBOL+0xOFFSET (BINARY)". */
void name_perf(const struct emit_frame *frame, const struct emit_options *options, struct buf *out);
/* The line and column that the shown spelling carries; 0 where it carries none. */
void name_position(const struct emit_frame *frame, const struct emit_options *options, enum name_detail detail,
                   uint32_t *line, uint32_t *column);

#endif
