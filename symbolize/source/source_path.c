/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/source/source_path.h"

#include <limits.h>
#include <string.h>

#include "formats/base/code_file.h"

/* Takes back the last part, if there is one behind `root_len` bytes. */
static void drop_part(struct buf *out, size_t from, size_t root_len)
{
    while (out->len_bytes > from + root_len && out->data[out->len_bytes - 1] != '/')
        out->len_bytes--;
    if (out->len_bytes > from + root_len)
        out->len_bytes--;
}

bool source_path_clean(const char *path, struct buf *out)
{
    size_t from = out->len_bytes, root_len = *path == '/';

    if (!code_file_is_path(path) || strlen(path) >= PATH_MAX)
        return false;
    if (root_len)
        buf_put_u8(out, '/');
    while (*path && !out->bad) {
        size_t len = strcspn(path, "/");
        if (len == 2 && !memcmp(path, "..", 2)) {
            drop_part(out, from, root_len);
        } else if (len && !(len == 1 && *path == '.')) {
            if (out->len_bytes > from + root_len)
                buf_put_u8(out, '/');
            buf_put(out, path, len);
        }
        path += len + (path[len] == '/');
    }
    return out->bad || out->len_bytes > from + root_len;
}

const char *source_path_in(const char *path, const char *folder)
{
    size_t len = strlen(folder);

    if (strncmp(path, folder, len))
        return NULL;
    if (len && folder[len - 1] == '/')
        return path[len] ? path + len : NULL;
    return path[len] == '/' && path[len + 1] ? path + len + 1 : NULL;
}

const char *source_path_shorter(const char *path)
{
    const char *slash = strchr(*path == '/' ? path + 1 : path, '/');

    return slash ? slash + 1 : NULL;
}
