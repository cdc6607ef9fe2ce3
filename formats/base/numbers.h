/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers for people: digits in groups of three, counts with their noun, shares in percent. */
#ifndef FORMATS_BASE_NUMBERS_H
#define FORMATS_BASE_NUMBERS_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

struct number {
    char text[64];
};

/* 1234567 as "1,234,567". Returns n->text, as all functions here do. */
static inline const char *grouped(uint64_t v, struct number *n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, v), to = 0;

    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            n->text[to++] = ',';
        n->text[to++] = digits[i];
    }
    n->text[to] = 0;
    return n->text;
}

/* "1 sample", "1,234 samples". The nouns are short words. */
static inline const char *counted(uint64_t count, const char *one, const char *many, struct number *n)
{
    struct number digits;

    snprintf(n->text, sizeof n->text, "%.30s %.30s", grouped(count, &digits), count == 1 ? one : many);
    return n->text;
}

/* For two decimals: 99.999 % does not round to 100. */
static inline double percent(uint64_t part, uint64_t whole)
{
    double share = whole ? 100.0 * (double)part / (double)whole : 0;

    return part < whole && share > 99.99 ? 99.99 : share;
}

/* "62.5 %", for people: what is not all is never "100 %", and what is not nothing never "0 %". */
static inline const char *share_text(uint64_t part, uint64_t whole, struct number *n)
{
    double share = whole ? 100.0 * (double)part / (double)whole : 0;

    if (part && share < 0.05)
        snprintf(n->text, sizeof n->text, "under 0.1 %%");
    else if (!part || part == whole)
        snprintf(n->text, sizeof n->text, "%.0f %%", share);
    else
        snprintf(n->text, sizeof n->text, "%.1f %%", share > 99.9 ? 99.9 : share);
    return n->text;
}

#endif
