/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a comparison is made of: which are traces and which baselines, and that none is named twice. */
#ifndef SYMBOLIZE_COMPARE_INPUTS_H
#define SYMBOLIZE_COMPARE_INPUTS_H

#include "formats/base/err.h"
#include "symbolize/compare/request.h"

/*
 * Moves the baselines among paths[*count], told by how they begin, into the request, and lowers *count and
 * request->old_count to the traces that are left. What cannot be opened stays: who reads it says why. ERROR_USAGE if a
 * file is named twice.
 */
struct error *compare_sort_inputs(struct compare_request *request, const char **paths, size_t *count);

#endif
