/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * A code object's name, where it has to be told by its characters.
 *
 * Up to 3.11 two functions may lie at the same address one after another, with all that they point to at the same addresses,
 * too. Then their names tell them apart: by the hash that CPython keeps in a string, or, in the rare one whose hash nobody has
 * asked for yet (of a code object made by replace()), by the characters.
 */
#ifndef BPF_PYTHON_NAME_H
#define BPF_PYTHON_NAME_H

#include "bpf/python_state.h"

#define WALK_NAME_HASH_NONE (~0ull)
#define WALK_NAME_BYTES 256 /* of a name that are looked at */

WALK_INLINE PY_U64 walk_mix(PY_U64 hash, PY_U64 value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
    return hash ^ (hash >> 29);
}

/* Where a string's characters begin, from its address on; sets *len to how many bytes they are. 0: it cannot be read. */
WALK_INLINE PY_U64 walk_name_characters(struct py_walk *w, PY_U64 name, PY_U64 *len)
{
    const struct py_layout *l = &w->config.layout;
    PY_U64 length = 0;
    PY_U32 state;

    if (l->str_state == PY_NONE) { /* 2.7: names are bytes */
        if (walk_read_u64(w, name + l->bytes_size, len))
            return 0;
        return l->bytes_data;
    }
    if (walk_read_u64(w, name + l->str_length, &length) || WALK_READ(w, &w->scratch.word, sizeof state, name + l->str_state))
        return 0;
    state = (PY_U32)w->scratch.word;
    if (!(state >> (l->str_compact_shift & 31) & 1)) {
        *len = 0; /* made by functions that are gone from CPython since 3.12: they lie elsewhere */
        return l->str_ascii_data;
    }
    *len = length * (state >> (l->str_kind_shift & 31) & 7);
    return state >> (l->str_ascii_shift & 31) & 1 ? l->str_ascii_data : l->str_compact_data;
}

/* Leaves in w->scratch.word what stands for the characters of a string. 1: they cannot be read. */
WALK_INLINE int walk_name_mix(struct py_walk *w, PY_U64 name)
{
    PY_U64 len = 0, hash = 0, at = walk_name_characters(w, name, &len);
    PY_U8 *text = w->result.task; /* it is filled after the walk */

    for (int i = 0; i < WALK_NAME_BYTES; i += 8)
        __builtin_memset(text + i, 0, 8);
    if (len > WALK_NAME_BYTES)
        len = WALK_NAME_BYTES;
    WALK_BOUND(len, 2 * WALK_NAME_BYTES - 1);
    if (!at || len > WALK_NAME_BYTES || (len && WALK_READ(w, text, len, name + at)))
        return 1;
    for (int i = 0; i < WALK_NAME_BYTES; i += 8) {
        PY_U64 word;
        WALK_LOAD(word, text + i);
        hash = walk_mix(hash, word);
    }
    w->scratch.word = hash;
    return 0;
}

/* A function of its own under BPF: it is rare. */
#ifdef __bpf__
int name_mix(PY_U64 name);
#define WALK_NAME_MIX(w, name) name_mix(name)
#else
#define WALK_NAME_MIX(w, name) walk_name_mix(w, name)
#endif

#endif
