/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps text from commanding the CI runner whose log it is printed to. Runners read what a job prints, and obey lines in
 * it: Azure Pipelines "##vso[" and "##[" wherever they stand, as does GitHub Actions with "##["; GitHub "::" at the beginning
 * of a line, behind blanks too, and TeamCity "##teamcity[". A function, a file or a thread may have such a name. So the last
 * character of each is written in another way: in plain text as an escape, "##vso\x5b", which everybody sees, in JSON and XML
 * by its number, which programs read as the character.
 *
 * It is the same wherever the text goes, so that an output does not depend on that: one that is in a file now may be printed
 * later. No decision needs bytes that are yet to come, so text can be given in pieces.
 *
 * Runners compare text as .NET does, which ignores characters that are invisible, and some that are hardly visible. So bytes
 * that are no printable ASCII neither end such a word nor the blanks before it: more is escaped than has to be.
 */
#ifndef FORMATS_BASE_JOB_TEXT_H
#define FORMATS_BASE_JOB_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "formats/base/buf.h"

/* How a character may be written in another way. */
enum job_text_syntax {
    JOB_TEXT_PLAIN,
    JOB_TEXT_COMMANDS, /* the same, but lines that begin with "::" are ours */
    JOB_TEXT_JSON,
    JOB_TEXT_XML,
    JOB_TEXT_AS_IS,    /* not at all: it is no text for a log */
};

/* {.syntax = ...} stands at the beginning of a text. */
struct job_text {
    enum job_text_syntax syntax;
    /* private */
    bool within;             /* a line has begun: something else than blanks was there */
    bool colon;              /* its first character was one */
    unsigned escape;         /* in an escape sequence, as colours are: so many bytes of it were seen, 2 at most */
    unsigned hashes;         /* two at most */
    const char *word;        /* what is left of the word that may follow them; NULL: it has not begun */
};

/* How many of the bytes may be written as they are. If not all, *instead is to be written for the one behind them. */
size_t job_text_pass(struct job_text *t, const char *text, size_t len_bytes, const char **instead);
/* Appends a text as it may be written. */
void job_text_put(struct job_text *t, const char *text, size_t len_bytes, struct buf *out);
/* Prints a message, which begins a line. Without memory it is lost. */
void job_text_print(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
