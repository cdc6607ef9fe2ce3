/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of unwind tables as text, and what holds of every table. */
#ifndef TESTS_UNIT_TABLE_TEXT_H
#define TESTS_UNIT_TABLE_TEXT_H

#include "tests/unit/test.h"
#include "formats/base/buf.h"
#include "formats/elf/unwind_table.h"

static void put_rule(struct buf *out, const char *name, const struct unwind_rule *rule)
{
    static const char *const registers[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
                                            "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rip", "cfa"};

    buf_printf(out, " %s=", name);
    if (rule->kind == UNWIND_SAME)
        buf_put_str(out, "same");
    else if (rule->kind == UNWIND_UNDEFINED)
        buf_put_str(out, "lost");
    else if (rule->kind == UNWIND_VALUE)
        buf_printf(out, "%s%+d", registers[rule->base], rule->offset);
    else if (rule->kind == UNWIND_MEMORY)
        buf_printf(out, "[%s%+d]", registers[rule->base], rule->offset);
    if (rule->add)
        buf_printf(out, "%+d", rule->add);
}

static void put_row_text(struct buf *out, const struct unwind_table *t, const struct unwind_row *row)
{
    static const char *const names[UNWIND_TYPE_COUNT] = {"none", "end", "rsp", "rbp", "plt", "signal", "wide", "other"};
    uint8_t type = UNWIND_TYPE(row->type), rbx = UNWIND_RBX(row->type);

    buf_put_str(out, names[type]);
    if (type == UNWIND_RSP || type == UNWIND_RBP)
        buf_printf(out, "+%u", row->cfa8 * 8);
    else if (type == UNWIND_PLT || type == UNWIND_OTHER)
        buf_printf(out, " %u", row->cfa8);
    if (row->rbp8)
        buf_printf(out, " rbp@%d", row->rbp8 * 8);
    if (rbx == UNWIND_RBX_LOST)
        buf_put_str(out, " rbx lost");
    else if (rbx)
        buf_printf(out, " rbx@%d", -8 - 8 * rbx);
    if (type == UNWIND_WIDE) {
        const struct unwind_wide *wide = &t->wide[row->cfa8];
        put_rule(out, "cfa", &wide->cfa);
        put_rule(out, "ra", &wide->ra);
        put_rule(out, "rbp", &wide->rbp);
        put_rule(out, "rbx", &wide->rbx);
    }
}

static void check_table(const struct unwind_table *t)
{
    uint64_t wanted = t->base_vaddr;

    for (uint32_t i = 0; i < t->row_count; i++) {
        if (i)
            assert_true(t->rows[i - 1].pc < t->rows[i].pc);
        assert_true(UNWIND_TYPE(t->rows[i].type) < UNWIND_TYPE_COUNT);
        if (UNWIND_TYPE(t->rows[i].type) == UNWIND_WIDE)
            assert_true(t->rows[i].cfa8 < t->wide_count);
        uint64_t first = t->base_vaddr + t->rows[i].pc,
                 end = i + 1 < t->row_count ? t->base_vaddr + t->rows[i + 1].pc : first + 1000;
        for (uint64_t at = first; at < end; at += at - first < 600 && end - first < 100000 ? 1 : 251) {
            struct unwind_row row = unwind_table_lookup(t, at);
            if (row.type || t->rows[i].type)
                assert_memory_equal(&row, &t->rows[i], sizeof row);
        }
        if (!i)
            assert_int_equal(unwind_table_lookup(t, first - 1).type, UNWIND_NONE);
        wanted = end;
    }
    if (t->row_count)
        assert_int_equal(t->rows[t->row_count - 1].type, UNWIND_NONE);
    assert_int_equal(unwind_table_lookup(t, 0).type, UNWIND_NONE);
    assert_int_equal(unwind_table_lookup(t, wanted + ((uint64_t)1 << 32)).type, UNWIND_NONE);
    assert_int_equal(unwind_table_lookup(t, UINT64_MAX).type, UNWIND_NONE);
}

#endif
