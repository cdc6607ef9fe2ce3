/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command says about itself in the file that PYCAP_NOTE names: lines KEY=VALUE, such as "work=20000".
 *
 * KEY is a letter or "_", then up to 63 letters, digits, "_", "." and "-"; VALUE is up to 256 bytes of printable ASCII.
 * Units of work (the key "work", and each that begins with "work.") are whole numbers and add up, so that each of several
 * processes may write its own line. Of any other key the last line counts.
 *
 * The file is hostile: its beginning is read, and what is not such a line is left out and counted. A sum that may lack
 * something is no sum: where the file is longer than what is read, or a line of the key is no number, it has no value.
 */
#ifndef CAPTURE_SESSION_COMMAND_NOTE_H
#define CAPTURE_SESSION_COMMAND_NOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NOTE_KEY_MAX 64
/* How much of the file is read. */
#define NOTE_BYTES_MAX 4096
/* Lines with more keys than these are left out. */
#define NOTE_FACTS_MAX 64

struct note_fact {
    const char *key, *value; /* in the note's text; `value` of the last line */
    bool adds_up;
    bool has_value; /* false: a sum that may lack something */
    uint64_t sum;   /* where it adds up */
};

struct command_note {
    struct note_fact facts[NOTE_FACTS_MAX]; /* in the order in which their keys came */
    uint32_t fact_count;
    uint32_t refused_lines; /* not KEY=VALUE as above, or of too many keys */
    uint64_t cut_bytes;     /* of the file, that were not read */
    char text[NOTE_BYTES_MAX + 1];
};

/*
 * Takes the `len_bytes` (NOTE_BYTES_MAX at most) that were read of the file, which has `cut_bytes` more. The last line needs
 * no newline, unless it was cut. `out` must not be moved.
 */
void command_note_parse(const void *bytes, size_t len_bytes, uint64_t cut_bytes, struct command_note *out);

#endif
