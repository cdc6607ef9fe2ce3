/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Baselines: any bytes, as they are and with their checksums set right, which would keep a fuzzer out of the decoder. What is
 * read must come out of a file that is written of it, byte by byte.
 */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "formats/base/buf.h"
#include "formats/compare/baseline.h"
#include "formats/compare/baseline_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

static void seal(uint8_t *data, size_t len_bytes)
{
    uint32_t crc = (uint32_t)crc32(0, data, (uInt)len_bytes);

    memcpy(data + len_bytes, &crc, sizeof crc);
}

/* Sets right all checksums, as far as sections fit into the file. */
static void seal_all(uint8_t *data, size_t len_bytes)
{
    uint32_t section;

    if (len_bytes < BASELINE_HEADER_BYTES)
        return;
    seal(data, BASELINE_HEADER_BYTES - sizeof section);
    for (size_t at = BASELINE_HEADER_BYTES; len_bytes - at >= BASELINE_SECTION_BYTES; at += section + BASELINE_SECTION_BYTES) {
        memcpy(&section, data + at + 1, sizeof section);
        if (section > len_bytes - at - BASELINE_SECTION_BYTES)
            break;
        seal(data + at, 1 + sizeof section + section);
    }
}

static bool decode(const void *data, size_t len_bytes, struct run_set *out)
{
    if (!run_set_init(out, NULL))
        abort();
    struct error *err = baseline_decode("fuzz", data, len_bytes, out);
    bool ok = !err;
    error_destroy(err);
    return ok;
}

static void encode(const struct run_set *set, struct buf *out)
{
    struct baseline_written what;
    struct error *err = baseline_encode(set, UINT64_MAX, out, &what);

    if (err)
        abort();
}

static void check(const void *data, size_t len_bytes)
{
    struct run_set first, second;
    struct buf once = {0}, twice = {0};

    if (decode(data, len_bytes, &first)) {
        encode(&first, &once);
        if (!decode(once.data, once.len_bytes, &second))
            abort();
        encode(&second, &twice);
        if (once.len_bytes != twice.len_bytes || memcmp(once.data, twice.data, once.len_bytes) != 0)
            abort();
        run_set_deinit(&second);
    }
    run_set_deinit(&first);
    buf_deinit(&once);
    buf_deinit(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    uint8_t *sealed = malloc(len_bytes + 1);

    if (!sealed)
        abort();
    memcpy(sealed, data, len_bytes);
    check(sealed, len_bytes);
    seal_all(sealed, len_bytes);
    check(sealed, len_bytes);
    free(sealed);
    return 0;
}
