/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which source files of different runs are one. Checkouts, virtual environments and releases lie in folders of their own,
 * so a file that a run has and the runs before it do not is matched by the end of its path: with the one file that it has
 * most folders in common with, if both say so.
 *
 * What lies before a package in site-packages, or in the folder of the standard library, does not count. Where a folder
 * still holds files that stayed, a file that went is not taken to have moved with it: then a/util.py and b/util.py are two
 * files, of which each run has one by chance.
 */
#ifndef FORMATS_COMPARE_MATCH_FILES_H
#define FORMATS_COMPARE_MATCH_FILES_H

#include "formats/compare/sides.h"

struct file_class {
    uint32_t path; /* text: as the last run had it that has it */
    size_t last_run;
};

struct file_match {
    struct map of_text; /* by text: the number of its class */
    VEC(struct file_class) classes;
};

/* Matches the files of functions that have time. The caller deinits `m`, also after an error. */
struct error *file_match_init(struct file_match *m, const struct sides *s);
void file_match_deinit(struct file_match *m);
/* The class of a file; RUN_SET_NONE: no function of it has time. */
uint32_t file_match_class(const struct file_match *m, uint32_t text);

#endif
