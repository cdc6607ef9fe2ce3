/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the command line of pysym.
 */
#ifndef SYMBOLIZE_OPTIONS_H
#define SYMBOLIZE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "formats/base/options.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"
#include "symbolize/compare/request.h"
#include "symbolize/format_choice.h"
#include "symbolize/pass/parts.h"
#include "symbolize/pass/sample_filter.h"
#include "symbolize/push/request.h"
#include "symbolize/stack/merge.h"
#include "symbolize/stack/stack_map.h"
#include "symbolize/summary/strict.h"

enum options_command { COMMAND_CONVERT, COMMAND_DIFF, COMMAND_BASELINE, COMMAND_PUSH };

/* Texts are borrowed from argv. */
struct options {
    enum options_command command;
    bool help, version;
    struct option_texts inputs; /* "-" is standard input */
    const char *input_at;     /* where the only input is read instead, /proc/self/fd/N; NULL: by its name */
    const char *output;       /* NULL: standard output */
    const char *format;       /* as given; NULL: by the output's name */
    struct format_choice choice;
    struct option_texts archives, symfs; /* each ends with NULL */
    struct option_texts sources;         /* as given: sources.h */
    const char *sysroot;
    enum parts_by split;           /* --split; PARTS_BY_NOTHING: not given */
    uint64_t window_ns;            /* --window; 0: not given */
    uint64_t max_memory_bytes;     /* of what traces unpack to; 0: by their size */
    uint64_t max_output_bytes;     /* 0: by the format, see options_max_output() */
    bool debuginfod, no_host, python_only, verbose, quiet;
    struct strict strict;
    enum merge_interpreter interpreter;
    struct emit_options emit;
    struct stack_map_options stacks;      /* how stacks are shown; the member `interpreters` is set later */
    struct sample_filter_options filters; /* which samples are shown */
    struct given given;                   /* the options that filter, as they were given */
    struct buf filter_text;
    const char *filters_given;            /* the same as one text */
    struct compare_request compare;       /* of COMMAND_DIFF and COMMAND_BASELINE */
    struct push_request push;             /* of COMMAND_PUSH */
    struct buf push_state;                /* the path of its state, where no argument has it */
};

/* Fails with ERROR_USAGE, whose text says what is wrong with the command line. *o refers to itself: it must stay in place. */
struct error *options_parse(int argc, char **argv, struct options *o);
void options_deinit(struct options *o);
/* Is the output split into several? Then it has an emitter, and `output` is not NULL. */
static inline bool options_split(const struct options *o)
{
    return o->split != PARTS_BY_NOTHING || o->window_ns;
}
/*
 * How long the output may get: as asked for, else by its format, and by the size of what is read, 0 where that is not known. *by_size:
 * that is less.
 */
uint64_t options_max_output(const struct options *o, uint64_t input_bytes, bool *by_size);
/* How text in it is written. */
enum job_text_syntax options_syntax(const struct options *o);
/* May it say on a terminal how far it is? Not between the lines of an output that is written there meanwhile. */
bool options_shows_progress(const struct options *o);
void options_help(const struct options *o, FILE *out);
/* "pysym", or "pysym diff": whose --help helps. */
const char *options_command_name(const struct options *o);

/*
 * Setters (formats/base/options.h) for the table of options, of those that choose samples or change stacks. Their target is
 * a struct options. Each notes the option as it was given, in `given`. The type of the member that each writes is:
 */
/* bool */
struct error *filter_set_true(const struct option_row *row, const char *argument, void *target);
/* struct option_numbers: N,N,... */
struct error *filter_add_numbers(const struct option_row *row, const char *argument, void *target);
/* struct number_ranges: 0,4-7 */
struct error *filter_add_ranges(const struct option_row *row, const char *argument, void *target);
/* struct option_texts: one text that is not empty */
struct error *filter_add_text(const struct option_row *row, const char *argument, void *target);
/* struct patterns: a regular expression, one for names, and one for frames */
struct error *filter_add_pattern(const struct option_row *row, const char *argument, void *target);
struct error *filter_add_name_pattern(const struct option_row *row, const char *argument, void *target);
struct error *filter_add_frame_pattern(const struct option_row *row, const char *argument, void *target);
/* struct time_range */
struct error *filter_set_time(const struct option_row *row, const char *argument, void *target);
/* unsigned: a set of layers, python,native,kernel */
struct error *filter_add_layers(const struct option_row *row, const char *argument, void *target);
/* double: a percentage as a fraction */
struct error *filter_set_share(const struct option_row *row, const char *argument, void *target);
/* enum stack_group */
struct error *filter_set_group(const struct option_row *row, const char *argument, void *target);

/* The commands (options_commands.c). */

/* The command that the first word names. */
enum options_command options_command_of(int argc, char **argv);

/*
 * The rows of pysym's own options and those of commands, as `command` takes them. An option that it does not take is left
 * out of --help, and refused with what to do instead.
 */
struct option_table {
    struct option_row rows[OPTIONS_MAX + 1];
    size_t count;
};
void options_table_init(struct option_table *table, const struct option_row *own, enum options_command command);
/* ERROR_USAGE if a word that is no file was probably meant as a command. */
struct error *options_check_word(const char *word);

/* The command line of `pysym diff` and `pysym baseline` (options_compare.c). */

/* The options that only comparisons have. */
extern const struct option_row options_compare_rows[];
/* Reads the options and words of a comparison: o->command is set. Options may stand behind "--", too. */
struct error *options_compare_read(struct options *o, const struct option_row *own, int argc, char **argv);
/* What the words and options of a comparison mean together: chooses the format. */
struct error *options_compare_check(struct options *o);
void options_compare_help(const struct option_row *own, enum options_command command, FILE *out);

/* The command line of `pysym push` (options_push.c). */

extern const struct option_row options_push_rows[];
struct error *options_push_read(struct options *o, const struct option_row *own, int argc, char **argv);
/* Completes o->push, and chooses the format of profiles. Opens no file. */
struct error *options_push_check(struct options *o);
void options_push_help(const struct option_row *own, FILE *out);

#endif
