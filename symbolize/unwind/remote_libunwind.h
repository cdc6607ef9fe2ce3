/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of remote_<machine>.c, which includes libunwind's header for the machine and defines REMOTE and
 * REMOTE_MACHINE first: libunwind's names are macros for that machine's functions.
 *
 * libunwind calls back through accessors, and hands back the struct remote_process that a step began with.
 */
#ifndef SYMBOLIZE_UNWIND_REMOTE_LIBUNWIND_H
#define SYMBOLIZE_UNWIND_REMOTE_LIBUNWIND_H

#include "symbolize/unwind/remote.h"

/* Exported for debuggers that bring their own tables; no header declares it. */
int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t as, unw_word_t ip, unw_dyn_info_t *di, unw_proc_info_t *pi,
                                       int need_unwind_info, void *arg);

_Static_assert(sizeof(unw_cursor_t) <= sizeof(struct remote_cursor), "libunwind's state has room");

static int access_mem(unw_addr_space_t space, unw_word_t address, unw_word_t *value, int write, void *arg)
{
    const struct remote_process *p = arg;
    uint64_t read;

    (void)space;
    if (write || !p->read_memory(p->ctx, address, &read))
        return -UNW_EINVAL;
    *value = read;
    return 0;
}

static int access_reg(unw_addr_space_t space, unw_regnum_t reg, unw_word_t *value, int write, void *arg)
{
    const struct remote_process *p = arg;
    uint64_t read;

    (void)space;
    if (write || reg < 0 || !p->read_register(p->ctx, (uint32_t)reg, &read))
        return -UNW_EBADREG;
    *value = read;
    return 0;
}

static int access_fpreg(unw_addr_space_t space, unw_regnum_t reg, unw_fpreg_t *value, int write, void *arg)
{
    (void)space, (void)reg, (void)value, (void)write, (void)arg;
    return -UNW_EBADREG;
}

static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *info, int need_unwind_info, void *arg)
{
    const struct remote_process *p = arg;
    uint64_t base, rows;

    /* Not UNW_ENOINFO: libunwind would guess after it. */
    if (!p->find_fde(p->ctx, ip, &base, &rows))
        return -UNW_EBADFRAME;
    unw_dyn_info_t table = {
        .start_ip = ip, .end_ip = ip + 1, .format = UNW_INFO_FORMAT_IP_OFFSET,
        .u.rti = {.segbase = base, .table_data = rows, .table_len = 1},
    };
    return UNW_OBJ(dwarf_search_unwind_table)(space, ip, &table, info, need_unwind_info, arg) < 0 ? -UNW_EBADFRAME : 0;
}

static void put_unwind_info(unw_addr_space_t space, unw_proc_info_t *info, void *arg)
{
    (void)space, (void)info, (void)arg;
}

static int get_dyn_info_list_addr(unw_addr_space_t space, unw_word_t *address, void *arg)
{
    (void)space, (void)address, (void)arg;
    return -UNW_ENOINFO;
}

static int resume(unw_addr_space_t space, unw_cursor_t *cursor, void *arg)
{
    (void)space, (void)cursor, (void)arg;
    return -UNW_EINVAL;
}

static int get_proc_name(unw_addr_space_t space, unw_word_t ip, char *name, size_t len_bytes, unw_word_t *offset,
                         void *arg)
{
    (void)space, (void)ip, (void)name, (void)len_bytes, (void)offset, (void)arg;
    return -UNW_ENOINFO;
}

static void *create_space(void)
{
    unw_accessors_t accessors = {
        .find_proc_info = find_proc_info, .put_unwind_info = put_unwind_info,
        .get_dyn_info_list_addr = get_dyn_info_list_addr, .access_mem = access_mem, .access_reg = access_reg,
        .access_fpreg = access_fpreg, .resume = resume, .get_proc_name = get_proc_name,
    };
    unw_addr_space_t space = unw_create_addr_space(&accessors, 0);

    if (space)
        unw_set_caching_policy(space, UNW_CACHE_NONE);
    return space;
}

static void destroy_space(void *space)
{
    if (space)
        unw_destroy_addr_space(space);
}

static int take_row(void *arg, void *state, size_t state_len, unw_word_t start, unw_word_t end)
{
    const struct remote_process *p = arg;

    return p->take_row(p->ctx, state, state_len, start, end) ? -UNW_ESTOPUNWIND : 0; /* the later rows are not needed */
}

static bool find_row(void *space, const struct remote_process *process)
{
    unw_cursor_t cursor;

    if (unw_init_remote(&cursor, space, (void *)process) < 0)
        return false;
    unw_reg_states_iterate(&cursor, take_row, (void *)process);
    return true;
}

static int apply_row(void *space, const struct remote_process *process, const void *row, struct remote_cursor *cursor)
{
    unw_cursor_t *c = (unw_cursor_t *)cursor->bytes;
    int ret = unw_init_remote(c, space, (void *)process);

    return ret < 0 ? ret : unw_apply_reg_state(c, (void *)row);
}

static bool caller_register(struct remote_cursor *cursor, uint32_t number, uint64_t *value)
{
    unw_word_t read;

    if (unw_get_reg((unw_cursor_t *)cursor->bytes, (unw_regnum_t)number, &read) < 0)
        return false;
    *value = read;
    return true;
}

static bool saved_at(struct remote_cursor *cursor, uint32_t number, uint64_t *address)
{
    unw_save_loc_t place;

    if (unw_get_save_loc((unw_cursor_t *)cursor->bytes, (int)number, &place) < 0 || place.type != UNW_SLT_MEMORY)
        return false;
    *address = place.u.addr;
    return true;
}

const struct remote REMOTE = {
    .machine = REMOTE_MACHINE,
    .create = create_space,
    .destroy = destroy_space,
    .find_row = find_row,
    .apply_row = apply_row,
    .caller_register = caller_register,
    .saved_at = saved_at,
};

#endif
