/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/stack/fingerprint.h"

#include "formats/base/bytes.h"
#include "formats/base/sha1.h"

static void add_number(struct sha1 *sha, uint32_t number)
{
    const uint8_t bytes[] = {(uint8_t)number, (uint8_t)(number >> 8), (uint8_t)(number >> 16), (uint8_t)(number >> 24)};

    sha1_add(sha, bytes, sizeof bytes);
}

uint64_t fingerprint_of_code(const struct trace_code *code)
{
    struct sha1 sha;
    uint8_t hash[SHA1_BYTES];

    if (!code->line_table_form || !code->code_len_bytes || code->line_table.len_bytes < code->line_table_len)
        return 0;
    sha1_init(&sha);
    add_number(&sha, code->code_len_bytes);
    add_number(&sha, code->co_flags);
    sha1_add(&sha, code->line_table.data, code->line_table.len_bytes);
    sha1_end(&sha, hash);
    struct bytes first = bytes_of(hash, sizeof hash);
    uint64_t fingerprint = bytes_u64(&first);
    return fingerprint ? fingerprint : 1;
}
