/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a module is known by. A build ID is what a note in the file claims, and a path is what a process's mount
 * namespace makes of it: anybody can forge both. So the file itself is the key: device and inode, which the kernel
 * reports with a mapping, and the time of change, which only stat() knows. The path is part of the key besides, so that
 * what one process calls a file is not written into the stacks of another.
 */
#ifndef CAPTURE_BINARY_MODULE_KEY_H
#define CAPTURE_BINARY_MODULE_KEY_H

#include <limits.h>
#include <stdint.h>
#include <sys/stat.h>

#include "capture/binary/code_mappings.h"

/* Bytes that are equal for equal keys. The first tells the kinds apart. */
struct module_key {
    uint32_t len_bytes; /* 0: there is none */
    uint8_t bytes[128 + PATH_MAX];
};

/* What the kernel reports of the file behind a mapping, and the path. There is none if it reports nothing. */
void module_key_of_mapping(const struct code_mapping *mapping, struct module_key *key);
/* The file as stat() describes it, and the path. */
void module_key_of_file(const struct stat *st, const char *path, struct module_key *key);
/* The same for all paths. */
void module_key_of_inode(const struct stat *st, struct module_key *key);

#endif
