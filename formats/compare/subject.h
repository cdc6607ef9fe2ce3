/* SPDX-License-Identifier: Apache-2.0 */
/* What is compared: a function of the old runs and what it is in the new ones. */
#ifndef FORMATS_COMPARE_SUBJECT_H
#define FORMATS_COMPARE_SUBJECT_H

#include "formats/compare/comparison.h"
#include "formats/compare/sides.h"

struct subject {
    uint32_t file;                 /* class of files: that of the new runs, if they have it */
    uint32_t function[SIDE_COUNT]; /* of the set; RUN_SET_NONE: no run of that side has it. Neither: it became part of another */
    enum compare_match match;
    enum compare_code code;
};

#endif
