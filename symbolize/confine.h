/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Confines pysym to what it needs, before it reads the first byte of a trace: a trace, an archive or a binary that is
 * made to take pysym over then finds little that it may do.
 *
 * With Landlock (Linux 5.13) pysym can read what the command line names and, unless --no-host is given, this host's files
 * outside of /proc, /sys, /dev, /run and /net, among which binaries may lie anywhere, but for a push's token, password and key
 * (unless they lie in the folder of temporary files); write its temporary files; and create, rename and remove files in the
 * output's folder, of an output of several files folders and symbolic links, too. It can use no TCP (6.7) and send no signal
 * (6.12). Where the kernel has no Landlock, nothing is confined. With --debuginfod neither: libdebuginfod needs the network
 * and its cache.
 */
#ifndef SYMBOLIZE_CONFINE_H
#define SYMBOLIZE_CONFINE_H

#include "symbolize/options.h"

/* Call when the output is open. */
struct error *confine(const struct options *o);

#endif
