/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds source files for emitters, only in the folders that --source names. The paths in a trace are a stranger's: they
 * are looked for below those folders and opened by nothing else (formats/base/open_regular.h), so neither "..", nor a
 * link, nor an absolute path leads out. Of several files the one that ran is taken, as far as that can be told
 * (source_match.h), else the one with the longest part of the recorded path.
 */
#ifndef SYMBOLIZE_SOURCE_SOURCES_H
#define SYMBOLIZE_SOURCE_SOURCES_H

#include "formats/base/err.h"
#include "formats/base/options.h"
#include "formats/emit/emit.h"

/* Larger files are not read, and no more than so many bytes of text in all. */
#define SOURCE_FILE_MAX_BYTES (UINT64_C(4) << 20)
#define SOURCES_MAX_BYTES (UINT64_C(256) << 20)

struct sources;

/*
 * The folder or the notebook that an argument of --source names: DIR of "DIR", "=DIR" and "FROM=TO". The pointer lies in the argument;
 * FROM, `*from_len` bytes of the beginning, is empty where there is none.
 */
const char *source_folder(const char *argument, size_t *from_len);

/* `arguments` are those of --source. Fails when a folder or a notebook (notebook.h) cannot be read. `limits` (NULL: none) is borrowed. */
struct error *sources_create(const struct option_texts *arguments, struct limits *limits, struct sources **out);
void sources_destroy(struct sources *s);
/* For emit_options.sources. */
struct emit_sources *sources_for_emitters(struct sources *s);

#endif
