/* SPDX-License-Identifier: Apache-2.0 */
/* What a command says of itself: whatever it wrote, keys and values are text of the alphabets that they may have. */
#include <stdlib.h>
#include <string.h>

#include "capture/session/command_note.h"

static void check(const struct command_note *n)
{
    if (n->fact_count > NOTE_FACTS_MAX || n->refused_lines > NOTE_BYTES_MAX)
        abort();
    for (uint32_t i = 0; i < n->fact_count; i++) {
        const struct note_fact *f = &n->facts[i];
        if (!*f->key || strlen(f->key) > NOTE_KEY_MAX || strpbrk(f->key, " =\n\r\t\x1b"))
            abort();
        if (f->adds_up && n->cut_bytes && f->has_value)
            abort(); /* the sum may lack something */
        for (const char *c = f->adds_up ? "" : f->value; *c; c++) {
            if (*c < ' ' || *c > '~')
                abort();
        }
        for (uint32_t k = 0; k < i; k++) {
            if (!strcmp(n->facts[k].key, f->key))
                abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    size_t len = len_bytes < NOTE_BYTES_MAX ? len_bytes : NOTE_BYTES_MAX;
    uint8_t *bytes = malloc(len ? len : 1); /* nothing behind it, so that reading on is seen */
    static struct command_note note;

    if (!bytes)
        abort();
    if (len)
        memcpy(bytes, data, len);
    command_note_parse(bytes, len, len_bytes - len, &note);
    check(&note);
    free(bytes);
    return 0;
}
