/* SPDX-License-Identifier: Apache-2.0 */
/* What was probably meant by a mistyped word. See nearest.h. */
#include "formats/base/nearest.h"

#include <stdint.h>
#include <string.h>

#define WORD_MAX_LEN 24

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How many letters have to be added, left out or changed to make one word the other (Levenshtein). */
static size_t distance(const char *a, size_t a_len, const char *b)
{
    size_t row[WORD_MAX_LEN + 1], len = strlen(b);

    if (len > WORD_MAX_LEN || a_len > WORD_MAX_LEN)
        return SIZE_MAX;
    for (size_t j = 0; j <= len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= len; j++) {
            size_t change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = least(change, least(row[j], row[j - 1]) + 1);
        }
    }
    return row[len];
}

struct nearest nearest_to(const char *word, size_t len)
{
    return (struct nearest){.word = word, .len = len, .letters = SIZE_MAX};
}

void nearest_consider(struct nearest *n, const char *name)
{
    size_t letters = n->len && !strncmp(name, n->word, n->len) ? 0 : distance(n->word, n->len, name);

    if (letters <= 2 && letters < strlen(name) / 2 && letters < n->letters) {
        n->letters = letters;
        n->name = name;
    }
}
