/* SPDX-License-Identifier: Apache-2.0 */
/* Places of lines in the source files of both sides, which --old-source and --new-source find: maps by pairs of files. */
#ifndef SYMBOLIZE_COMPARE_SOURCE_MAPS_H
#define SYMBOLIZE_COMPARE_SOURCE_MAPS_H

#include <stdint.h>

#include "formats/base/err.h"
#include "formats/base/limits.h"

struct source_maps;
/* Places as --source takes them (symbolize/source/sources.h). `limits` (NULL: none) is borrowed. */
struct error *source_maps_create(const char *old_place, const char *new_place, struct limits *limits, struct source_maps **out);
void source_maps_destroy(struct source_maps *s); /* accepts NULL */
/* As compare_options.new_line (formats/compare/comparison.h): files are named as recorded. */
uint32_t source_maps_line(struct source_maps *s, const char *old_file, const char *new_file, uint32_t old_line);
/* What went wrong in source_maps_line(), once; NULL: nothing. */
struct error *source_maps_error(struct source_maps *s);

#endif
