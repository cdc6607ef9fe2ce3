/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of our own (fopencookie) in front of the output's: it sees what stdio flushes, some 100 KiB at a time. */
#include "symbolize/output_limit.h"

#include <errno.h>
#include <string.h>

#include "formats/base/size_text.h"

enum { BUFFER_BYTES = 1 << 18 };

static size_t up_to_a_line_end(const char *data, size_t len_bytes)
{
    const char *end = memrchr(data, '\n', len_bytes);

    return end ? (size_t)(end - data) + 1 : len_bytes;
}

static ssize_t pass_on(void *cookie, const char *data, size_t len_bytes)
{
    struct output_limit *l = cookie;
    size_t n = len_bytes;

    if (l->reached || n >= l->left_bytes) {
        n = l->reached ? 0 : up_to_a_line_end(data, (size_t)l->left_bytes);
        l->reached = true;
    }
    if (n && fwrite(data, n, 1, l->to) != 1)
        return 0; /* errno says why, and glibc makes an error of 0 */
    l->left_bytes -= n;
    if (!l->reached)
        return (ssize_t)n;
    errno = EFBIG;
    return 0;
}

struct error *output_limit_open(FILE *to, uint64_t max_bytes, struct output_limit *out)
{
    *out = (struct output_limit){.to = to, .left_bytes = max_bytes, .max_bytes = max_bytes};
    out->file = fopencookie(out, "w", (cookie_io_functions_t){.write = pass_on});
    if (!out->file)
        return error_no_memory();
    setvbuf(out->file, NULL, _IOFBF, BUFFER_BYTES);
    return NULL;
}

struct error *output_limit_close(struct output_limit *l, struct error *err)
{
    struct size_text size;
    bool bad = ferror(l->file);

    if (fclose(l->file) != 0)
        bad = true;
    if (l->reached) {
        error_destroy(err);
        return error_create(ERROR_LIMIT, "the output would be larger than %s and ends there; --max-output allows more",
                            size_text(l->max_bytes, &size));
    }
    return err || !bad ? err : error_os(errno, "the output could not be written");
}
