/* SPDX-License-Identifier: Apache-2.0 */
/* A number of bytes for people: "64.3 MiB". */
#ifndef FORMATS_BASE_SIZE_TEXT_H
#define FORMATS_BASE_SIZE_TEXT_H

#include <stdint.h>
#include <stdio.h>

struct size_text {
    char text[32];
};

/* Returns out->text. */
static inline const char *size_text(uint64_t bytes, struct size_text *out)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)bytes;
    int unit = 0;

    while (v >= 1024 && unit < 4) {
        v /= 1024;
        unit++;
    }
    snprintf(out->text, sizeof out->text, unit ? "%.1f %s" : "%.0f %s", v, units[unit]);
    return out->text;
}

#endif
