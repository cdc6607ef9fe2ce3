/* SPDX-License-Identifier: Apache-2.0 */
/* Entries one by one, each with a cursor that ends where the entry does. An FDE's CIE is found by offset. */
#include "formats/elf/cfi.h"

#include <string.h>

/* DW_EH_PE_*: the low half says how a pointer is stored, the high half what it is relative to. */
enum {
    PE_absptr = 0x00, PE_uleb128 = 0x01, PE_udata2 = 0x02, PE_udata4 = 0x03, PE_udata8 = 0x04,
    PE_sleb128 = 0x09, PE_sdata2 = 0x0a, PE_sdata4 = 0x0b, PE_sdata8 = 0x0c,
    PE_pcrel = 0x10, PE_datarel = 0x30, PE_aligned = 0x50, PE_relative = 0x70, PE_indirect = 0x80, PE_omit = 0xff,
};

enum { CIE_MAX = 4096 /* bytes; real ones have some dozens. A bound, since every FDE may refer to the same CIE */ };

uint64_t cfi_pointer(struct bytes *b, uint8_t encoding, uint64_t vaddr, uint64_t data_base)
{
    uint64_t at = vaddr + bytes_offset(b), v;

    if (encoding == PE_aligned) {
        bytes_skip(b, -at & 7);
        return bytes_u64(b);
    }
    switch (encoding & 0x0f) {
    case PE_absptr:
    case PE_udata8:
    case PE_sdata8:
        v = bytes_u64(b);
        break;
    case PE_uleb128:
        v = bytes_uleb(b);
        break;
    case PE_sleb128:
        v = (uint64_t)bytes_sleb(b);
        break;
    case PE_udata2:
        v = bytes_u16(b);
        break;
    case PE_sdata2:
        v = (uint64_t)(int16_t)bytes_u16(b);
        break;
    case PE_udata4:
        v = bytes_u32(b);
        break;
    case PE_sdata4:
        v = (uint64_t)(int32_t)bytes_u32(b);
        break;
    default:
        b->bad = true;
        return 0;
    }
    switch (encoding & PE_relative) {
    case 0:
        return v;
    case PE_pcrel:
        return v + at;
    case PE_datarel:
        return v + data_base;
    default:
        b->bad = true;
        return 0;
    }
}

/* Whether the bytes are in memory. Where there is no window all are. */
static bool need(const struct cfi_section *s, uint64_t offset, uint64_t len_bytes)
{
    return !s->window || !len_bytes || elf_window_need(s->window, offset, len_bytes);
}

/*
 * Finds the entry at `offset` by its length. *out: its bytes, behind the length, which read_entry() makes sure are in
 * memory. *wide: it has the 64-bit format. *next: the offset of the next.
 */
static bool find_entry(const struct cfi_section *s, uint64_t offset, struct bytes *out, bool *wide, uint64_t *next)
{
    enum { LENGTH_MAX = 12 };
    struct bytes b = bytes_of(s->data, s->len_bytes);

    bytes_seek(&b, offset);
    if (b.bad || !need(s, offset, bytes_left(&b) < LENGTH_MAX ? bytes_left(&b) : LENGTH_MAX))
        return false;
    uint64_t len = bytes_u32(&b);
    *wide = len == UINT32_MAX;
    if (*wide)
        len = bytes_u64(&b);
    if (b.bad || len > bytes_left(&b))
        return false;
    *out = b;
    out->end = b.pos + len;
    *next = bytes_offset(&b) + len;
    return true;
}

static bool read_entry(const struct cfi_section *s, const struct bytes *entry)
{
    return bytes_left(entry) <= CFI_ENTRY_MAX && need(s, bytes_offset(entry), bytes_left(entry));
}

uint64_t cfi_terminator(const struct cfi_section *s)
{
    struct bytes b;
    bool wide;
    uint64_t next;

    for (uint64_t offset = 0; find_entry(s, offset, &b, &wide, &next); offset = next) {
        if (!bytes_left(&b))
            return next;
    }
    return s->len_bytes;
}

static bool read_augmentation(struct bytes *b, const char *augmentation, const struct cfi_section *s, struct cfi_cie *out)
{
    if (!*augmentation)
        return true;
    if (*augmentation != 'z')
        return false; /* without a size, what follows cannot be skipped */
    out->sized = true;
    uint64_t len = bytes_uleb(b);
    const uint8_t *end = bytes_take(b, len) ? b->pos : NULL;
    if (!end)
        return false;
    struct bytes data = {.start = b->start, .pos = end - len, .end = end};
    for (const char *c = augmentation + 1; *c; c++) {
        uint8_t encoding;
        switch (*c) {
        case 'R':
            out->pointer_encoding = bytes_u8(&data);
            break;
        case 'L':
            bytes_u8(&data);
            break;
        case 'P':
            encoding = bytes_u8(&data);
            if (encoding == PE_omit)
                break;
            cfi_pointer(&data, encoding & 0x7f, s->vaddr, s->hdr_vaddr);
            break;
        case 'S':
            out->signal_frame = true;
            break;
        case 'B':
            break;
        default:
            return !data.bad; /* sized: the rest can be skipped */
        }
    }
    return !data.bad;
}

static bool read_cie(const struct cfi_section *s, uint64_t offset, struct cfi_cie *out)
{
    struct bytes b;
    bool wide;
    uint64_t next;

    *out = (struct cfi_cie){.pointer_encoding = PE_absptr, .offset = offset};
    if (!find_entry(s, offset, &b, &wide, &next) || bytes_left(&b) > CIE_MAX || !read_entry(s, &b))
        return false;
    uint64_t id = wide ? bytes_u64(&b) : bytes_u32(&b);
    uint64_t expected = !s->debug_frame ? 0 : wide ? UINT64_MAX : UINT32_MAX;
    out->version = bytes_u8(&b);
    const char *augmentation = bytes_cstr(&b);
    if (id != expected || !augmentation || (out->version != 1 && out->version != 3 && out->version != 4))
        return false;
    if (out->version == 4 && (bytes_u8(&b) != 8 || bytes_u8(&b) != 0))
        return false; /* address and segment size */
    out->code_align = bytes_uleb(&b);
    out->data_align = bytes_sleb(&b);
    out->return_column = out->version == 1 ? bytes_u8(&b) : bytes_uleb(&b);
    if (b.bad || !read_augmentation(&b, augmentation, s, out))
        return false;
    out->program = b.pos;
    out->program_len = bytes_left(&b);
    return !b.bad;
}

/* The CIE at `offset`, from the cache, or without one read into `scratch`. NULL: unreadable. */
static const struct cfi_cie *find_cie(const struct cfi_section *s, uint64_t offset, struct cfi_cies *cies,
                                      struct cfi_cie *scratch)
{
    struct cfi_cie *cie = cies ? &cies->slots[offset / 4 % CFI_CIES] : scratch;

    /* Its program may have to be read again. */
    if (cies && cie->known && cie->offset == offset)
        return need(s, (uint64_t)(cie->program - s->data), cie->program_len) ? cie : NULL;
    if (!read_cie(s, offset, cie) || (cie->pointer_encoding & PE_indirect)) {
        cie->known = false;
        return NULL;
    }
    cie->known = true;
    return cie;
}

enum entry { ENTRY_FDE, ENTRY_CIE, ENTRY_UNREADABLE };

/* The kind of the entry at `offset`, whose bytes are `b`; an FDE is read into *out. */
static enum entry read_fde(const struct cfi_section *s, uint64_t offset, struct bytes b, bool wide,
                           struct cfi_cies *cies, struct cfi_fde *out)
{
    struct cfi_cie scratch;
    uint64_t id_at = bytes_offset(&b);
    uint64_t id = wide ? bytes_u64(&b) : bytes_u32(&b);

    if (b.bad)
        return ENTRY_UNREADABLE;
    if (id == (!s->debug_frame ? 0 : wide ? UINT64_MAX : UINT32_MAX))
        return ENTRY_CIE;
    if (!s->debug_frame && id > id_at)
        return ENTRY_UNREADABLE;
    const struct cfi_cie *cie = find_cie(s, s->debug_frame ? id : id_at - id, cies, &scratch);
    if (!cie)
        return ENTRY_UNREADABLE;
    uint64_t start = cfi_pointer(&b, cie->pointer_encoding, s->vaddr, s->hdr_vaddr);
    uint64_t len = cfi_pointer(&b, cie->pointer_encoding & 0x0f, s->vaddr, s->hdr_vaddr);
    if (cie->sized)
        bytes_skip(&b, bytes_uleb(&b));
    if (b.bad || !len || start + len < start)
        return ENTRY_UNREADABLE;
    *out = (struct cfi_fde){
        .offset = offset, .start = start, .end = start + len, .code_align = cie->code_align,
        .data_align = cie->data_align, .return_column = cie->return_column, .signal_frame = cie->signal_frame,
        .cie_program = cie->program, .cie_program_len = cie->program_len, .fde_program = b.pos,
        .fde_program_len = bytes_left(&b), .cie_offset = cie->offset, .pointer_encoding = cie->pointer_encoding,
    };
    return ENTRY_FDE;
}

bool cfi_read_cached(const struct cfi_section *s, uint64_t offset, struct cfi_cies *cies, struct cfi_fde *out)
{
    struct bytes b;
    bool wide;
    uint64_t next;

    return find_entry(s, offset, &b, &wide, &next) && bytes_left(&b) && read_entry(s, &b) &&
           read_fde(s, offset, b, wide, cies, out) == ENTRY_FDE;
}

bool cfi_read(const struct cfi_section *s, uint64_t offset, struct cfi_fde *out)
{
    return cfi_read_cached(s, offset, NULL, out);
}

bool cfi_next_cached(const struct cfi_section *s, uint64_t *offset, struct cfi_cies *cies, struct cfi_fde *out,
                     uint64_t *unreadable)
{
    struct bytes b;
    bool wide;
    uint64_t next;

    while (*offset < s->len_bytes) {
        uint64_t at = *offset;
        if (!find_entry(s, at, &b, &wide, &next)) {
            *offset = s->len_bytes;
            if (unreadable)
                ++*unreadable;
            return false;
        }
        *offset = next;
        /* A length of 0 ends what one object file brought; crtend.o's may stand in the middle. */
        if (!bytes_left(&b))
            continue;
        enum entry entry = read_entry(s, &b) ? read_fde(s, at, b, wide, cies, out) : ENTRY_UNREADABLE;
        if (entry == ENTRY_FDE)
            return true;
        if (entry == ENTRY_UNREADABLE && unreadable)
            ++*unreadable;
    }
    return false;
}

bool cfi_next(const struct cfi_section *s, uint64_t *offset, struct cfi_fde *out)
{
    return cfi_next_cached(s, offset, NULL, out, NULL);
}

bool cfi_table_read(const uint8_t *hdr, uint64_t len_bytes, uint64_t hdr_vaddr, struct cfi_table *out)
{
    struct bytes b = bytes_of(hdr, len_bytes);
    uint8_t version = bytes_u8(&b), frame_encoding = bytes_u8(&b), count_encoding = bytes_u8(&b),
            table_encoding = bytes_u8(&b);

    *out = (struct cfi_table){.hdr_vaddr = hdr_vaddr};
    if (b.bad || version != 1 || frame_encoding == PE_omit || (frame_encoding & PE_indirect))
        return false;
    out->eh_frame_vaddr = cfi_pointer(&b, frame_encoding, hdr_vaddr, hdr_vaddr);
    if (b.bad)
        return false;
    if (count_encoding == PE_omit || table_encoding != (PE_datarel | PE_sdata4))
        return true; /* no table that we read, but the address of .eh_frame */
    uint64_t count = cfi_pointer(&b, count_encoding, hdr_vaddr, hdr_vaddr);
    if (b.bad || count > bytes_left(&b) / 8)
        return true;
    out->rows = b.pos;
    out->count = count;
    return true;
}

void cfi_table_row(const struct cfi_table *t, uint64_t i, uint64_t *start, uint64_t *fde_vaddr)
{
    int32_t row[2];

    memcpy(row, t->rows + i * sizeof row, sizeof row);
    *start = t->hdr_vaddr + (uint64_t)(int64_t)row[0];
    *fde_vaddr = t->hdr_vaddr + (uint64_t)(int64_t)row[1];
}

uint64_t cfi_table_search(const struct cfi_table *t, uint64_t vaddr)
{
    int64_t wanted = (int64_t)(vaddr - t->hdr_vaddr);
    uint64_t low = 0, high = t->count;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        int32_t start;
        memcpy(&start, t->rows + middle * 8, sizeof start);
        if (wanted < start)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

bool cfi_table_find(const struct cfi_table *t, uint64_t vaddr, uint64_t *fde_vaddr)
{
    uint64_t count = cfi_table_search(t, vaddr), start;

    if (count)
        cfi_table_row(t, count - 1, &start, fde_vaddr);
    return count > 0;
}
