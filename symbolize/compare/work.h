/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much work each run did, for the time per unit of work: from the file of --work, which says it for some runs, or from
 * what the program wrote into PYCAP_NOTE.
 */
#ifndef SYMBOLIZE_COMPARE_WORK_H
#define SYMBOLIZE_COMPARE_WORK_H

#include "formats/base/err.h"
#include "formats/compare/run_set.h"

/*
 * Reads lines of a run's name, a blank and a number. The name is that of the recording, with or without its folders as the
 * command line has them: paths[i] is that of run i; runs behind path_count are of baselines and have none. Fails if a name
 * fits several runs, and if the file names none of the runs.
 */
struct error *work_read_file(const char *path, struct run_set *set, const char *const *paths, size_t path_count);
/* Takes the value of the note `key` of every run that has it, if it is a number over 0. */
void work_take_notes(struct run_set *set, const char *key);

#endif
