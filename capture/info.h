/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `pycap info`: what this host offers and which Python processes it runs.
 */
#ifndef CAPTURE_INFO_H
#define CAPTURE_INFO_H

#include <stdio.h>

#include "formats/base/err.h"

struct error *info_print(FILE *out);

#endif
