/* SPDX-License-Identifier: Apache-2.0 */
/* Written under a temporary name, which becomes the real one when all is in. */
#include "capture/output/archive_file.h"

#include <errno.h>
#include <string.h>

#include "capture/output/file_rights.h"

struct error *archive_file_open(const char *path, const gid_t *group, struct archive_file *f)
{
    TRY(output_open(strcmp(path, "-") ? path : NULL, &f->output));
    if (!f->output.temporary)
        return NULL; /* a pipe or a device stays as it is */
    return file_rights_set(fileno(f->output.file), f->output.name, group);
}

struct error *archive_file_write(struct archive_file *f, const void *data, size_t len_bytes)
{
    errno = 0;
    if (fwrite(data, 1, len_bytes, f->output.file) == len_bytes)
        return NULL;
    return error_file(errno ? errno : EIO, f->output.name, "could not be written");
}

struct error *archive_file_finish(struct archive_file *f)
{
    return output_finish(&f->output);
}

void archive_file_deinit(struct archive_file *f)
{
    output_deinit(&f->output);
}

static struct error *sink_write(void *ctx, const void *data, size_t len_bytes)
{
    return archive_file_write(ctx, data, len_bytes);
}

static struct error *sink_finish(void *ctx)
{
    return archive_file_finish(ctx);
}

struct archive_sink archive_file_sink(struct archive_file *f)
{
    return (struct archive_sink){.write = sink_write, .finish = sink_finish, .ctx = f};
}
