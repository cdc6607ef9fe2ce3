/* SPDX-License-Identifier: Apache-2.0 */
/* Versions of CPython. A version is given as its PY_VERSION_HEX, such as 0x030b07f0 for 3.11.7. */
#ifndef FORMATS_CPYTHON_VERSION_H
#define FORMATS_CPYTHON_VERSION_H

#include <stdint.h>

/* "3.11.7", "3.13.0rc2"; into buf. */
const char *py_version_text(uint32_t version_hex, char buf[32]);
/* Versions known, for --help and pycap info: "3.11 3.12". Static. */
const char *py_versions_known(void);

#endif
