/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of source files as traces name them, which may hold anything, and what of them is looked for below a folder. */
#ifndef SYMBOLIZE_SOURCE_SOURCE_PATH_H
#define SYMBOLIZE_SOURCE_SOURCE_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "formats/base/buf.h"

/*
 * Appends the path without empty parts and ".", and with each ".." taken together with the part before it, as
 * os.path.normpath() does; a ".." that would lead above the beginning is left out. False: it is no path of a file, such as
 * "", "/", "<string>", or one that is longer than the kernel takes.
 */
bool source_path_clean(const char *path, struct buf *out);
/* What follows `folder` in `path`, both clean: "cart.py" of "/app/cart.py" in "/app". NULL: it does not lie there. */
const char *source_path_in(const char *path, const char *folder);
/* The path without its first part and slashes before it; NULL: it has but one. */
const char *source_path_shorter(const char *path);

#endif
