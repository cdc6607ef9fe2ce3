/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes every byte string that a trace holds to standard output, one after the other: what may be read in it by
 * somebody who looks for a secret.
 */
#include <stdio.h>

#include "formats/trace/trace.h"

int main(int argc, char **argv)
{
    struct trace_reader *reader;
    struct trace_record rec;
    bool more = true;
    struct error *err = argc == 2 ? trace_reader_open(argv[1], &reader) : error_create(ERROR_USAGE, "trace_bytes TRACE");

    if (err) {
        fprintf(stderr, "%s\n", error_text(err));
        return 1;
    }
    while (!err && more) {
        err = trace_reader_next(reader, &rec, &more);
        const struct trace_record_type *type = err || !more ? NULL : trace_record_type(rec.type);
        for (uint32_t i = 0; type && i < type->field_count; i++) {
            const struct trace_bytes *b = (const void *)((const char *)&rec.epoch + type->fields[i].struct_offset);
            if (type->fields[i].type == TRACE_F_BYTES) {
                fwrite(b->data, 1, b->len_bytes, stdout);
                putchar('\n');
            }
        }
    }
    trace_reader_close(reader);
    if (err) {
        fprintf(stderr, "%s\n", error_text(err));
        return 1;
    }
    return 0;
}
