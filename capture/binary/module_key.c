/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers are copied as they are, for busy hosts map thousands of files a second. */
#include "capture/binary/module_key.h"

#include <assert.h>
#include <string.h>

static void put(struct module_key *key, const void *bytes, size_t len)
{
    memcpy(key->bytes + key->len_bytes, bytes, len);
    key->len_bytes += (uint32_t)len;
}

static void begin(struct module_key *key, char kind)
{
    key->bytes[0] = (uint8_t)kind;
    key->len_bytes = 1;
}

static void put_path(struct module_key *key, const char *path)
{
    put(key, path, strnlen(path, PATH_MAX));
}

void module_key_of_mapping(const struct code_mapping *mapping, struct module_key *key)
{
    const uint64_t file[] = {mapping->device_major, mapping->device_minor, mapping->inode, mapping->inode_generation,
                             mapping->build_id_len};

    static_assert(1 + sizeof file + sizeof mapping->build_id + PATH_MAX <= sizeof key->bytes, "a key has room");
    key->len_bytes = 0;
    if (!mapping->inode && !mapping->build_id_len)
        return;
    begin(key, 'm');
    put(key, file, sizeof file);
    put(key, mapping->build_id, mapping->build_id_len);
    put_path(key, mapping->path);
}

static void put_stat(struct module_key *key, const struct stat *st)
{
    const uint64_t file[] = {st->st_dev, st->st_ino, (uint64_t)st->st_size, (uint64_t)st->st_ctim.tv_sec,
                             (uint64_t)st->st_ctim.tv_nsec};

    put(key, file, sizeof file);
}

void module_key_of_file(const struct stat *st, const char *path, struct module_key *key)
{
    begin(key, 'f');
    put_stat(key, st);
    put_path(key, path);
}

void module_key_of_inode(const struct stat *st, struct module_key *key)
{
    begin(key, 'i');
    put_stat(key, st);
}
