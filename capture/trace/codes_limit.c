/* SPDX-License-Identifier: Apache-2.0 */
/* Contents are shared by processes. So the notes of processes are given up one by one, and contents that none has left. */
#include "capture/trace/codes_limit.h"

#include <stdlib.h>

/* What a process has of code objects, in bytes. What it shares with others counts for each. */
static uint64_t bytes_of_note(const struct codes *c, const struct process_note *n)
{
    uint64_t bytes = trace_note_codes_bytes(n);

    for (size_t i = 0; i < n->codes.index.count; i++)
        bytes += n->codes.index.data[i] == CODES_NONE ? 0 : codes_bytes_of(c, n->codes.index.data[i]);
    return bytes;
}

/* Forgets the contents that no process has, and tells the others their new indexes. */
static struct error *drop_unused(struct codes *c, struct trace_notes *notes)
{
    uint32_t count = codes_count(c);
    bool *wanted = calloc(count + 1, sizeof *wanted);
    uint32_t *moved = calloc(count + 1, sizeof *moved);
    struct error *err = wanted && moved ? NULL : error_no_memory();

    for (size_t i = 0; !err && i < notes->processes.count; i++) {
        const struct process_note *n = notes->processes.data[i];
        for (size_t k = 0; n && k < n->codes.index.count; k++) {
            if (n->codes.index.data[k] != CODES_NONE)
                wanted[n->codes.index.data[k]] = true;
        }
    }
    if (!err)
        err = codes_retain(c, wanted, moved);
    for (size_t i = 0; !err && i < notes->processes.count; i++) {
        struct process_note *n = notes->processes.data[i];
        for (size_t k = 0; n && k < n->codes.index.count; k++) {
            if (n->codes.index.data[k] != CODES_NONE)
                n->codes.index.data[k] = moved[n->codes.index.data[k]];
        }
    }
    free(wanted);
    free(moved);
    return err;
}

/* Forgets what the process knows that has most. Returns how many bytes that was; 0: no process knows any. */
static uint64_t forget_most(const struct codes *c, struct trace_notes *notes)
{
    struct process_note *most = NULL;
    uint64_t most_bytes = 0;

    for (size_t i = 0; i < notes->processes.count; i++) {
        struct process_note *n = notes->processes.data[i];
        uint64_t bytes = n ? bytes_of_note(c, n) : 0;
        if (bytes > most_bytes) {
            most = n;
            most_bytes = bytes;
        }
    }
    if (most)
        trace_note_forget_codes(most);
    return most_bytes;
}

struct error *codes_limit(struct codes *c, struct trace_notes *notes, uint64_t most)
{
    for (;;) {
        TRY(drop_unused(c, notes));
        uint64_t bytes = codes_bytes(c) + trace_notes_codes_bytes(notes), gone = 0;
        while (bytes > most && gone < bytes - most) {
            uint64_t more = forget_most(c, notes);
            if (!more)
                break;
            gone += more;
        }
        if (!gone)
            return NULL;
    }
}
