/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the command line of pysym.
 */
#ifndef SYMBOLIZE_OPTIONS_H
#define SYMBOLIZE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "formats/base/err.h"
#include "formats/base/options.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"
#include "symbolize/pass/sample_filter.h"
#include "symbolize/stack/merge.h"
#include "symbolize/stack/stack_map.h"
#include "symbolize/summary/strict.h"

enum output_kind { OUTPUT_EMITTER, OUTPUT_SUMMARY, OUTPUT_DUMP, OUTPUT_UNWIND_CHECK };

/* Texts are borrowed from argv. */
struct options {
    bool help, version;
    VEC(const char *) inputs; /* "-" is standard input */
    const char *output;       /* NULL: standard output */
    enum output_kind kind;
    const struct emitter *emitter; /* of OUTPUT_EMITTER */
    const char *format;            /* as given; NULL: by the output's name */
    struct option_texts archives, symfs; /* each ends with NULL */
    const char *sysroot;
    uint64_t max_memory_bytes;     /* of what traces unpack to; 0: by their size */
    uint64_t max_output_bytes;     /* 0: by the format, see options_max_output() */
    bool debuginfod, no_host, python_only, verbose;
    struct strict strict;
    enum merge_interpreter interpreter;
    struct emit_options emit;
    struct stack_map_options stacks;      /* how stacks are shown; the member `interpreters` is set later */
    struct sample_filter_options filters; /* which samples are shown */
};

/* Fails with ERROR_USAGE, whose text says what is wrong with the command line. */
struct error *options_parse(int argc, char **argv, struct options *o);
void options_deinit(struct options *o);
/* How long the output may get. */
uint64_t options_max_output(const struct options *o);
void options_help(FILE *out);

#endif
