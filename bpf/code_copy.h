/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Copies what is needed to decode a code object later: its header, its name, qualified
 * name and file name with their unicode headers, and its line table. They are raw bytes
 * with their addresses, for the same reader that user space uses on live memory
 * (formats/cpython/code.h). What is too long is cut here, and user space completes it;
 * what cannot be read has no bytes.
 */
#ifndef BPF_CODE_COPY_H
#define BPF_CODE_COPY_H

#include "bpf/python_walk.h"

#define COPY_STRING_MAX 512      /* bytes of a string object, header included */
#define COPY_LINE_TABLE_MAX 16384 /* bytes of a line table, header included */
#define COPY_CODE_MAX 256         /* bytes of a code object's header */
#define COPY_STRING_HEAD 96       /* bytes of a string that are read to see how long it is */
#define COPY_STRING_HEAD_MASK 63  /* its length and state lie in these */
#define COPY_BUFFER_MASK 32767

struct code_copy {
    struct wire_code event;
    PY_U8 bytes[COPY_BUFFER_MASK + 1 + COPY_LINE_TABLE_MAX];
    PY_U64 used; /* bytes in use */
    PY_U8 head[128]; /* the beginning of a string */
};

/* Copies one piece: `wanted` bytes at `from`, at most `max` (a power of two). If they cannot be read, it is empty. */
#define COPY_PIECE(walk, copy, index, from, wanted, max)                                  \
    do {                                                                                  \
        PY_U64 len_ = (wanted), to_ = (copy)->used;                                       \
        if (len_ > (max))                                                                 \
            len_ = (max);                                                                 \
        WALK_BOUND(len_, (max) * 2 - 1);                                                  \
        WALK_BOUND(to_, COPY_BUFFER_MASK);                                                \
        (copy)->event.pieces[index].address = (from);                                     \
        (copy)->event.pieces[index].len_bytes = 0;                                        \
        (copy)->event.pieces[index].reserved = 0;                                         \
        if (len_ && len_ <= (max) && !WALK_READ(walk, (copy)->bytes + to_, len_, from)) { \
            (copy)->event.pieces[index].len_bytes = len_;                                 \
            (copy)->used = to_ + len_;                                                    \
        }                                                                                 \
    } while (0)

/* Bytes of the string object at `address`, as far as it lies in one piece; 0: it cannot be read. */
WALK_INLINE PY_U64 copy_string_len(struct py_walk *w, struct code_copy *c, PY_U64 address)
{
    const struct py_layout *l = &w->config.layout;
    PY_U64 chars, kind, head = l->str_compact_data;
    PY_U32 state;

    if (l->str_state == PY_NONE) { /* 2.7: names are bytes */
        if (walk_read_u64(w, address + l->bytes_size, &chars))
            return 0;
        return chars > COPY_STRING_MAX ? COPY_STRING_MAX : l->bytes_data + chars;
    }
    if (head > COPY_STRING_HEAD || WALK_READ(w, c->head, COPY_STRING_HEAD, address))
        return 0;
    chars = WALK_U64(c->head, l->str_length, COPY_STRING_HEAD_MASK);
    state = WALK_U32(c->head, l->str_state, COPY_STRING_HEAD_MASK);
    kind = (state >> (l->str_kind_shift & 31)) & 7;
    if (!((state >> (l->str_compact_shift & 31)) & 1))
        return head; /* the characters lie elsewhere: user space follows */
    if ((state >> (l->str_ascii_shift & 31)) & 1)
        head = l->str_ascii_data;
    return chars > COPY_STRING_MAX ? COPY_STRING_MAX : head + chars * kind;
}

/* Copies the code object whose header walk_read_code() has just read. Returns the length of the message in bytes. */
WALK_INLINE PY_U64 copy_code(struct py_walk *w, struct code_copy *c)
{
    const struct py_layout *l = &w->config.layout;
    PY_U64 code = w->result.new_code, name, qualname, filename, table, head_len = l->code_len_bytes;

    name = WALK_U64(w->scratch.header, l->code_name, WALK_HEADER_MASK);
    filename = WALK_U64(w->scratch.header, l->code_filename, WALK_HEADER_MASK);
    table = WALK_U64(w->scratch.header, l->code_line_table, WALK_HEADER_MASK);
    qualname = l->code_qualname != PY_NONE ? WALK_U64(w->scratch.header, l->code_qualname, WALK_HEADER_MASK) : 0;
    c->used = 0;
    COPY_PIECE(w, c, 0, code, head_len, COPY_CODE_MAX);
    COPY_PIECE(w, c, 1, name, copy_string_len(w, c, name), COPY_STRING_MAX);
    if (qualname && qualname != name)
        COPY_PIECE(w, c, 2, qualname, copy_string_len(w, c, qualname), COPY_STRING_MAX);
    else
        c->event.pieces[2].address = c->event.pieces[2].len_bytes = c->event.pieces[2].reserved = 0;
    COPY_PIECE(w, c, 3, filename, copy_string_len(w, c, filename), COPY_STRING_MAX);
    PY_U64 table_len = 0;
    if (!walk_read_u64(w, table + l->bytes_size, &table_len)) {
        if (table_len > COPY_LINE_TABLE_MAX)
            table_len = COPY_LINE_TABLE_MAX;
        table_len += l->bytes_data;
    }
    COPY_PIECE(w, c, 4, table, table_len, COPY_LINE_TABLE_MAX);
    return sizeof c->event + c->used;
}

#endif
