/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/binary/table_wants.h"

#include <stdlib.h>
#include <string.h>

void table_wants_deinit(struct table_wants *w)
{
    map_deinit(&w->lacking);
    for (int i = 0; i < TABLES_LEFT_OUT; i++)
        free(w->left_out[i].name);
}

static void note_left_out(struct table_wants *w, const char *path, uint64_t words, bool more)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int at = TABLES_LEFT_OUT;

    for (int i = 0; i < TABLES_LEFT_OUT; i++) {
        const struct table_left_out *l = &w->left_out[i];
        if (l->name && l->words == words && !strcmp(l->name, name))
            return;
        if (at == TABLES_LEFT_OUT && (!l->name || l->words < words))
            at = i;
    }
    char *copy = at < TABLES_LEFT_OUT ? strdup(name) : NULL;
    if (!copy)
        return;
    free(w->left_out[TABLES_LEFT_OUT - 1].name);
    memmove(w->left_out + at + 1, w->left_out + at, (size_t)(TABLES_LEFT_OUT - 1 - at) * sizeof *w->left_out);
    w->left_out[at] = (struct table_left_out){copy, words, more};
}

void table_wants_lack(struct table_wants *w, uint64_t hash, uint64_t words, uint64_t had, const char *path, bool more)
{
    const uint64_t *before = map_get(&w->lacking, hash);
    uint64_t copies = before ? *before : 0;

    if (!map_set(&w->lacking, hash, copies + 1))
        return; /* what is said at the end is a little less */
    if (!copies)
        w->lacking_words += words;
    if (w->lacking_words + had > w->most) {
        w->most = w->lacking_words + had;
        w->most_had = had;
    }
    note_left_out(w, path, words, more);
}

void table_wants_forget(struct table_wants *w, uint64_t hash, uint64_t words)
{
    const uint64_t *before = map_get(&w->lacking, hash);

    if (!before)
        return;
    if (*before > 1) {
        map_set(&w->lacking, hash, *before - 1);
        return;
    }
    map_remove(&w->lacking, hash);
    w->lacking_words -= words < w->lacking_words ? words : w->lacking_words;
}
