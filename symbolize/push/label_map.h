/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels by names that only the cluster knows: a file of lines
 *
 *     pod:UID|container:ID|unit:NAME|host:NAME  label=value label=value ...
 *
 * A container's ID may be whole or cut to 12 characters, and have a prefix such as containerd://; a unit may have its
 * ".service". Several lines of one pod add up. Remarks begin with # (formats/base/lines.h).
 */
#ifndef SYMBOLIZE_PUSH_LABEL_MAP_H
#define SYMBOLIZE_PUSH_LABEL_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/base/limits.h"

/* What a line is about; if several are about one process, the first of these counts. */
enum label_map_kind { LABEL_MAP_CONTAINER, LABEL_MAP_POD, LABEL_MAP_UNIT, LABEL_MAP_HOST, LABEL_MAP_KINDS };

struct label_map_entry {
    const char *name, *value; /* value: printable, never empty */
    uint32_t next;            /* LABEL_MAP_END: none */
};
#define LABEL_MAP_END UINT32_MAX

struct label_map;
/* An empty map. `limits` (borrowed): of memory. */
struct error *label_map_create(struct limits *limits, struct label_map **out);
void label_map_destroy(struct label_map *m);
/* ERROR_USAGE says what is wrong in which line; ERROR_LIMIT: the file is too long. */
struct error *label_map_read(struct label_map *m, const char *path);
/* Takes one line, without a remark. `origin` is "names.txt:3", for messages. */
struct error *label_map_add(struct label_map *m, const char *line, const char *origin);
/*
 * The labels of a pod's UID, a container's short ID or name, a unit's name without ".service", or a host's name: the index
 * of the first, or LABEL_MAP_END.
 */
uint32_t label_map_find(const struct label_map *m, enum label_map_kind kind, const char *text);
const struct label_map_entry *label_map_entry(const struct label_map *m, uint32_t index);
/* How many different names labels have, and their texts: by number from 0. */
uint32_t label_map_name_count(const struct label_map *m);
const char *label_map_name(const struct label_map *m, uint32_t number);

#endif
