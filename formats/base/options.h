/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line as a table. A row is an option: how it is spelled, its line of --help,
 * what its argument must be, which other options it needs or excludes, and where its value is
 * stored. getopt_long() reads the command line, from rows made of this table.
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
    const char *argument;     /* its name in --help; NULL: the option takes none */
    const char *help;         /* "\n" begins another line; NULL: the option is accepted but not shown */
    struct error *(*set)(const struct option_row *row, const char *argument, void *target);
    size_t offset;            /* of the member of the target that the setters below write */
    uint64_t min, max;        /* of the value: a number, bytes or nanoseconds */
    const char *wants;        /* what the argument must be; completes "--name wants "; NULL: any text */
    const char *const *names; /* for option_set_choice(); ends with NULL */
    const char *with;         /* at least one of these must be given too: "rotate rotate-size" */
    const char *without;      /* none of these may be given too */
    /* The trace keeps the value under the name `setting`, or not if NULL; `remember` appends it, or nothing to leave it out. */
    const char *setting;
    void (*remember)(const struct option_row *row, const void *target, struct buf *out);
    bool may_be_bare; /* the argument, --name=ARGUMENT, may be left out; then `set` gets NULL for it */
};

/* An empty row, {NULL}, ends a table. */
#define OPTION_HEADING(text) {.help = (text)}
#define OPTIONS_MAX 128
/* Whether this is the row that ends a table. */
bool options_at_end(const struct option_row *row);
/* Is the name in the list, in which spaces divide names? */
bool options_list_has(const char *list, const char *name);

/*
 * Reads argv[1...]: calls the setters in order, then checks `with` and `without`. *rest is the index in argv of the
 * first word that is not an option. With `stop_early` that word ends the options, since it may begin a command that has
 * options of its own; otherwise options may stand anywhere. ERROR_USAGE names the option and says what it wants.
 */
struct error *options_read(const struct option_row *rows, int argc, char **argv, bool stop_early, void *target, int *rest);
/* Prints the rows as --help shows them. */
void options_print(const struct option_row *rows, FILE *out);
/* The error that the setters below return: "--name wants WANTS, not 'argument'". */
struct error *option_refuse(const struct option_row *row, const char *argument);

/* Setters, and the type of the member that each writes: bool. */
struct error *option_set_true(const struct option_row *row, const char *argument, void *target);
struct error *option_set_false(const struct option_row *row, const char *argument, void *target);
/* const char *, borrowed from argv. */
struct error *option_set_text(const struct option_row *row, const char *argument, void *target);
/* Decimal, from min to max. */
struct error *option_set_u32(const struct option_row *row, const char *argument, void *target);
struct error *option_set_u64(const struct option_row *row, const char *argument, void *target);
/* An enum that counts from 0 in the order of `names`. */
struct error *option_set_choice(const struct option_row *row, const char *argument, void *target);
/* uint32_t or uint64_t: bytes, given as 65536, 64k, 64M or 1G. */
struct error *option_set_size_u32(const struct option_row *row, const char *argument, void *target);
struct error *option_set_size(const struct option_row *row, const char *argument, void *target);
/* uint64_t: nanoseconds, given as seconds or as 500ms, 90s, 10m, 6h or 1d. */
struct error *option_set_duration(const struct option_row *row, const char *argument, void *target);
/* Reads such a duration, which is more than 0. Returns false, and leaves *time_ns as it is, if the text is none. */
bool option_duration_of(const char *text, uint64_t *time_ns);

/* Lists, for options that may be repeated: texts borrowed from argv, and numbers given as N,N,... Each is a VEC. */
struct option_texts {
    const char **data;
    size_t count, cap;
};
struct option_numbers {
    uint32_t *data;
    size_t count, cap;
};
struct error *option_add_text(const struct option_row *row, const char *argument, void *target);
/* Skips a number that the list has already. */
struct error *option_add_numbers(const struct option_row *row, const char *argument, void *target);

/* For `remember`: the name of a choice; a uint64_t in decimal, nothing for 0. */
void option_remember_choice(const struct option_row *row, const void *target, struct buf *out);
void option_remember_u64(const struct option_row *row, const void *target, struct buf *out);

#endif
