/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of labels and lines of a label map, of any text. What is taken keeps the rules of stores: names are words, values
 * printable; and pieces of a rule lie in it.
 */
#include <stdlib.h>
#include <string.h>

#include "formats/base/utf8.h"
#include "symbolize/push/label_map.h"
#include "symbolize/push/label_rule.h"
#include "symbolize/push/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

static void check_name(const char *name)
{
    if (!*name || strpbrk(name, " .-\"\\{}=,|\n") || (*name >= '0' && *name <= '9') || strlen(name) > PROFILE_LABEL_NAME_MAX)
        abort();
}

static void check_rule(const char *line, bool maps)
{
    struct label_rule rule;
    struct error *err = label_rule_parse(line, maps, &rule);

    for (size_t i = 0; !err && i < rule.pieces.count; i++) {
        const struct label_piece *piece = &rule.pieces.data[i];
        if (piece->text < rule.text || piece->text + piece->len > rule.text + strlen(line) || !piece->len ||
            (piece->is_alternative && !piece->is_field) || (piece->is_field && piece->field == FIELD_OF_MAP && !maps))
            abort();
    }
    if (!err)
        check_name(rule.name);
    label_rule_deinit(&rule);
    error_destroy(err);
}

/* Of one host, which the seeds name. */
static void check_map(const struct label_map *m)
{
    for (uint32_t i = label_map_find(m, LABEL_MAP_HOST, "web"); i != LABEL_MAP_END; i = label_map_entry(m, i)->next) {
        const struct label_map_entry *entry = label_map_entry(m, i);
        check_name(entry->name);
        if (!*entry->value || !utf8_is_printable(entry->value, strlen(entry->value)))
            abort();
    }
    for (uint32_t i = 0; i < label_map_name_count(m); i++)
        check_name(label_map_name(m, i));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct limits limits = {.memory_max = 16 << 20, .work_max = UINT64_MAX};
    char *text = malloc(len_bytes + 1); /* nothing behind it, so that reading on is seen */
    struct label_map *map;

    if (!text || label_map_create(&limits, &map))
        abort();
    memcpy(text, data, len_bytes);
    text[len_bytes] = 0;
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
        check_rule(line, false);
        check_rule(line, true);
        error_destroy(label_map_add(map, line, "names.txt:1"));
    }
    check_map(map);
    label_map_destroy(map);
    if (limits.memory_used)
        abort();
    free(text);
    return 0;
}
