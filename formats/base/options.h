/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line as a table. A row is an option: how it is spelled, its line of --help,
 * what its argument has to be, which other options it goes with, and where its value is
 * stored. getopt_long() reads the command line; the table gives it its rows.
 */
#ifndef FORMATS_BASE_OPTIONS_H
#define FORMATS_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "formats/base/vec.h"

struct option_row {
    const char *name;         /* without dashes; NULL: there is a letter only */
    char letter;              /* the short one; 0: none. A row with neither is a heading above those that follow */
    const char *argument;     /* as --help calls it; NULL: the option takes none */
    const char *help;         /* "\n" begins another line; NULL: accepted, but not shown */
    struct error *(*set)(const struct option_row *row, const char *argument, void *target);
    size_t offset;            /* for the setters below: of the member of the target that they write */
    uint64_t min, max;        /* of the value: a number, bytes, nanoseconds */
    const char *wants;        /* what the argument has to be, behind "--name wants "; NULL: any text */
    const char *const *names; /* for option_set_choice(); ends with NULL */
    const char *with;         /* options one of which has to be given too: "rotate rotate-size" */
    const char *without;      /* options none of which may be given too */
    /* Remembered with the result under `setting`: appends the value, nothing where it says nothing. NULL: not remembered. */
    const char *setting;
    void (*tell)(const struct option_row *row, const void *target, struct buf *out);
};

/* {NULL}, a row with nothing in it, ends a table. */
#define OPTION_HEADING(text) {.help = (text)}
#define OPTIONS_MAX 96

/*
 * Reads argv[1...]: calls the setters in order, then checks `with` and `without`. `*rest` is the index in argv of the
 * first word that is no option. `stop_early`: the first such word ends the options, for what is a command with options of
 * its own; otherwise options may stand anywhere. ERROR_USAGE names the option and says what it wants.
 */
struct error *options_read(const struct option_row *rows, int argc, char **argv, bool stop_early, void *target, int *rest);
/* Prints the rows as --help has them. */
void options_print(const struct option_row *rows, FILE *out);
/* The error that the setters below give: "--name wants WANTS, not 'argument'". */
struct error *option_refuse(const struct option_row *row, const char *argument);

/* Setters. Of the member: bool; const char *; uint32_t, uint64_t, int; an enum counted as `names` is. */
struct error *option_set_true(const struct option_row *row, const char *argument, void *target);
struct error *option_set_false(const struct option_row *row, const char *argument, void *target);
struct error *option_set_text(const struct option_row *row, const char *argument, void *target);
struct error *option_set_u32(const struct option_row *row, const char *argument, void *target);
struct error *option_set_u64(const struct option_row *row, const char *argument, void *target);
struct error *option_set_choice(const struct option_row *row, const char *argument, void *target);
/* uint32_t or uint64_t: bytes, also as 64k, 64M, 1G. */
struct error *option_set_size_u32(const struct option_row *row, const char *argument, void *target);
struct error *option_set_size(const struct option_row *row, const char *argument, void *target);
/* uint64_t: nanoseconds, of seconds or of 90s, 10m, 6h, 1d. */
struct error *option_set_duration(const struct option_row *row, const char *argument, void *target);

/* A VEC of borrowed texts, or of numbers given as N,N,...; an option of this kind may be repeated. */
struct option_texts {
    const char **data;
    size_t count, cap;
};
struct option_numbers {
    uint32_t *data;
    size_t count, cap;
};
struct error *option_add_text(const struct option_row *row, const char *argument, void *target);
/* A number that is there already is not added again. */
struct error *option_add_numbers(const struct option_row *row, const char *argument, void *target);

/* Tellers: of a choice its name, of a uint64_t its number, 0 saying nothing. */
void option_tell_choice(const struct option_row *row, const void *target, struct buf *out);
void option_tell_u64(const struct option_row *row, const void *target, struct buf *out);

#endif
