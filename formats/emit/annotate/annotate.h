/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of source files with their time: what the parts of the emitter `annotate` share. A section is a file, or a
 * function of one; its lines are those that ran.
 *
 * A sample belongs to a line of Python, the innermost one on its stack, and there to one of three columns: to `self` if
 * Python itself ran, or its interpreter; to `native` if C code that the line called ran; to `kernel` if the kernel did. In a
 * native file the line is that of the innermost native function. `total` counts each sample once in each line on its stack.
 * Of a wait the time is `self` of the line that waits, whatever it called for it, as in top.
 */
#ifndef FORMATS_EMIT_ANNOTATE_ANNOTATE_H
#define FORMATS_EMIT_ANNOTATE_ANNOTATE_H

#include "formats/base/err.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "formats/emit/counts.h"
#include "formats/emit/emit.h"
#include "formats/emit/names.h"

struct annotate_weights {
    uint64_t self, native, kernel, total; /* in the event's unit */
};
static inline uint64_t annotate_own(const struct annotate_weights *w)
{
    return w->self + w->native + w->kernel;
}

struct annotate_line {
    uint32_t section, line; /* 0: not known */
    uint32_t frame; /* one of the model's at this line */
    struct annotate_weights weights;
};

struct annotate_section {
    const char *file;     /* as in frames */
    uint32_t function;    /* in annotate_view.texts; INTERN_NONE: the section is the file */
    bool is_python;
    uint32_t first_line, last_line; /* of a function's code; 0: unknown */
    struct annotate_weights weights; /* total: of samples with any of its lines on their stack */
    size_t line_begin, line_end;     /* in annotate_view.lines */
};

struct annotate_view {
    const struct emit_model *model;
    struct emit_options options;
    FILE *out;
    struct counts counts;
    struct names names;
    struct intern texts;
    VEC(struct annotate_section) sections;
    VEC(struct annotate_line) lines; /* by section, then by number; the weights are those of one event at a time */
    uint32_t *line_of_frame; /* ANNOTATE_NOWHERE: it is in no section */
    uint64_t taken_bytes;    /* of lines and line_of_frame, from the limits */
};
#define ANNOTATE_NOWHERE UINT32_MAX

/* An event, with the sections in the order in which they are shown. */
struct annotate_event {
    uint32_t event;
    struct count all;
    const uint32_t *order; /* numbers of sections; those that have nothing of the event are left out */
    uint32_t section_count; /* all of them, though options.top_count may show fewer */
};
static inline uint32_t annotate_shown(const struct annotate_view *v, uint32_t count)
{
    return v->options.top_count && v->options.top_count < count ? v->options.top_count : count;
}

/*
 * Makes the sections and lines of what options.annotate names. Without a name they are all files of Python, or of native
 * code if there is none. Fails with ERROR_NOT_FOUND, and what was probably meant, when nothing has that name, but for parts of an output.
 */
struct error *annotate_select(struct annotate_view *v);
/* Fills in the weights of lines and sections for one event. */
struct error *annotate_count(struct annotate_view *v, uint32_t event, struct count *all);
/* The section's text; NULL: none was found, or none was asked for. */
struct error *annotate_source(const struct annotate_view *v, const struct annotate_section *section, const struct emit_source **out);

/* Called in this order. A failed write is found by whoever closes the file. */
struct annotate_writer {
    struct error *(*begin)(const struct annotate_view *v);
    struct error *(*begin_event)(const struct annotate_view *v, const struct annotate_event *e, bool first);
    struct error *(*section)(const struct annotate_view *v, const struct annotate_event *e, const struct annotate_section *s, bool first);
    struct error *(*end_event)(const struct annotate_view *v, const struct annotate_event *e);
    struct error *(*end)(const struct annotate_view *v, bool empty);
};
extern const struct annotate_writer annotate_text_writer, annotate_json_writer;

#endif
