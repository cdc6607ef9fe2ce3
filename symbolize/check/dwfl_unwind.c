/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/check/dwfl_unwind.h"

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "formats/base/map.h"
#include "formats/base/vec.h"

enum { SOME_PID = 1 };

/* The extent of a reported module, in whole pages. */
struct load_range {
    uint64_t low, high;
};

struct dwfl_space {
    Dwfl *dwfl;
    bool attached;
    const struct unwind_mapping *mappings;
    uint32_t mapping_count;
    VEC(struct load_range) reported;
    struct map cfi; /* address -> has call frame information */
    /* State of the current run. */
    const struct trace_snapshot *shot;
    struct witness_stack *out;
    bool fault;
};

/* ---- modules ---- */

/* Called only for modules in memory: the others are reported with their file. */
static int find_elf(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base, char **file, Elf **elf)
{
    const struct modcache_entry *m = *userdata;

    (void)mod, (void)name, (void)base, (void)file;
    if (m && m->image_len)
        *elf = elf_memory((char *)m->image, m->image_len);
    return -1;
}

/* The file that may have .debug_frame. */
static int find_debuginfo(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base, const char *file,
                          const char *link, GElf_Word checksum, char **found)
{
    const struct modcache_entry *m = *userdata;

    (void)mod, (void)name, (void)base, (void)file, (void)link, (void)checksum, (void)found;
    return m && m->files.debug ? binary_open(m->files.debug, m->files.debug_fd) : -1;
}

static const Dwfl_Callbacks module_callbacks = {.find_elf = find_elf, .find_debuginfo = find_debuginfo};

/* The extent of the whole module that a mapping shows a part of; false: it shows no segment. */
static bool extent_of(const struct unwind_mapping *mapping, uint64_t *bias, struct load_range *out, bool *from_start)
{
    const struct unwind_module *module = mapping->module;

    if (!module || !unwind_module_bias(module, mapping, bias))
        return false;
    const uint64_t page = module->machine->page_bytes;
    *out = (struct load_range){.low = UINT64_MAX};
    *from_start = false;
    for (size_t i = 0; i < module->elf.segments.count; i++) {
        const struct elf_segment *seg = &module->elf.segments.data[i];
        uint64_t low = (*bias + seg->vaddr) & -page;
        uint64_t high = (*bias + seg->vaddr + seg->mem_size + page - 1) & -page;
        out->low = low < out->low ? low : out->low;
        out->high = high > out->high ? high : out->high;
        *from_start |= low == mapping->address;
    }
    return out->low < out->high;
}

static bool is_taken(const struct dwfl_space *s, const struct load_range *extent)
{
    for (size_t i = 0; i < s->reported.count; i++) {
        if (extent->low < s->reported.data[i].high && s->reported.data[i].low < extent->high)
            return true;
    }
    return false;
}

/*
 * Reports a module to libdwfl. A file or image that libdwfl rejects has no unwind information. libdwfl identifies a
 * module by its whole extent, and a later module replaces an earlier one at the same addresses. So a single page that
 * is mapped once more, as libffi does with its trampolines, must not be reported: frames of neighbouring modules would
 * be looked up in the wrong file.
 */
static struct error *report(struct dwfl_space *s, const struct unwind_mapping *mapping, struct modcache_entry *m,
                            bool from_start)
{
    Dwfl_Module *reported = NULL;
    struct load_range extent;
    uint64_t bias;
    void **userdata;
    bool starts;

    if (!extent_of(mapping, &bias, &extent, &starts) || starts != from_start || is_taken(s, &extent))
        return NULL;
    if (m->image_len) {
        reported = dwfl_report_module(s->dwfl, m->path, extent.low, extent.high);
    } else if (m->files.binary) {
        int fd = binary_open(m->files.binary, m->files.binary_fd);
        reported = fd < 0 ? NULL : dwfl_report_elf(s->dwfl, m->path, m->files.binary, fd, bias, true);
        if (fd >= 0 && !reported)
            close(fd); /* else libdwfl owns it */
    }
    if (reported && dwfl_module_info(reported, &userdata, NULL, NULL, NULL, NULL, NULL, NULL))
        *userdata = m;
    return !reported || VEC_PUSH(&s->reported, extent) ? NULL : error_no_memory();
}

/* First mappings that begin at a segment, as the loader makes them; the others may be parts of those. */
static struct error *report_all(struct dwfl_space *s, struct modcache *modules, const struct epoch *e)
{
    uint32_t index;

    for (uint32_t i = 0; i < 2 * s->mapping_count; i++) {
        const struct unwind_mapping *mapping = &s->mappings[i % s->mapping_count];
        if (!mapping->module_id)
            continue;
        TRY(modcache_index(modules, e, mapping->module_id, &index));
        TRY(report(s, mapping, modcache_get(modules, index), i < s->mapping_count));
    }
    return NULL;
}

/* ---- the process ---- */

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
    (void)dwfl;
    if (*thread_arg)
        return 0;
    *thread_arg = arg;
    return SOME_PID;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread_arg)
{
    (void)dwfl, (void)tid;
    *thread_arg = arg;
    return true;
}

static bool memory_read(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *result, void *arg)
{
    struct dwfl_space *s = arg;

    (void)dwfl;
    if (witness_read(s->shot, s->mappings, s->mapping_count, address, result, sizeof *result))
        return true;
    s->fault = true;
    return false;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
    struct dwfl_space *s = arg;

    return dwfl_thread_state_registers(thread, 0, (int)s->shot->registers.count, s->shot->registers.values);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
    .next_thread = next_thread, .get_thread = get_thread, .memory_read = memory_read,
    .set_initial_registers = set_registers,
};

static bool look_for_cfi(struct dwfl_space *s, uint64_t address)
{
    Dwarf_Addr bias;
    Dwarf_Frame *frame;
    Dwfl_Module *mod = dwfl_addrmodule(s->dwfl, address);

    if (!mod)
        return false;
    Dwarf_CFI *cfi = dwfl_module_eh_cfi(mod, &bias);
    if (!cfi || dwarf_cfi_addrframe(cfi, address - bias, &frame) != 0) {
        cfi = dwfl_module_dwarf_cfi(mod, &bias);
        if (!cfi || dwarf_cfi_addrframe(cfi, address - bias, &frame) != 0)
            return false;
    }
    free(frame);
    return true;
}

static bool has_cfi(struct dwfl_space *s, uint64_t address)
{
    uint64_t *known = map_get(&s->cfi, address);

    if (known)
        return *known;
    bool found = look_for_cfi(s, address);
    /* If there is no memory to note it, it is looked up again. */
    (void)map_set(&s->cfi, address, found);
    return found;
}

/* Whether code at `address` begins a stack that is part of another (formats/elf/stack_start.h): libdwfl does not know that. */
static bool begins_stack(const struct dwfl_space *s, uint64_t address)
{
    for (uint32_t i = 0; i < s->mapping_count; i++) {
        const struct unwind_mapping *m = &s->mappings[i];
        uint64_t bias;
        if (m->module && m->module->stack_start.end && address - m->address < m->length && unwind_module_bias(m->module, m, &bias))
            return stack_start_holds(m->module->stack_start, address - bias);
    }
    return false;
}

/*
 * libdwfl unwinds one frame ahead to say whether this one was interrupted: s->fault belongs to the step out of this
 * frame. A signal's trampoline counts as interrupted, but its rules are looked up like a return address's.
 */
static int take_frame(Dwfl_Frame *state, void *arg)
{
    struct dwfl_space *s = arg;
    struct witness_stack *out = s->out;
    Dwarf_Addr pc;
    bool exact;

    s->fault = false;
    if (!dwfl_frame_pc(state, &pc, &exact))
        return DWARF_CB_ABORT;
    if (out->count == WITNESS_FRAMES_MAX) {
        out->end = LOSS_native_too_deep;
        return DWARF_CB_ABORT;
    }
    out->frames[out->count++] = (struct witness_frame){pc, !exact};
    if (begins_stack(s, pc - !exact)) {
        out->end = LOSS_complete;
        return DWARF_CB_ABORT;
    }
    if (!has_cfi(s, pc - !exact) && !(exact && out->count > 1 && has_cfi(s, pc - 1))) {
        out->end = LOSS_no_unwind_info;
        return DWARF_CB_ABORT;
    }
    return DWARF_CB_OK;
}

void dwfl_space_unwind(struct dwfl_space *s, const struct trace_snapshot *shot, struct witness_stack *out)
{
    out->count = out->end = 0;
    out->trouble = NULL;
    if (!s->attached) {
        out->end = LOSS_no_module;
        return;
    }
    s->shot = shot;
    s->out = out;
    s->fault = false;
    int ret = dwfl_getthread_frames(s->dwfl, SOME_PID, take_frame, s);
    if (out->end)
        return;
    /* libdwfl treats a return address that it could not read as the end of the stack. */
    if (s->fault)
        out->end = LOSS_native_fault;
    else if (ret == 0)
        out->end = LOSS_complete;
    else
        out->trouble = dwfl_errmsg(-1);
}

/* ---- life ---- */

struct error *dwfl_space_create(struct modcache *modules, const struct epoch *e, const struct unwind_mapping *mappings,
                                uint32_t count, struct dwfl_space **out)
{
    struct dwfl_space *s = calloc(1, sizeof *s);
    struct error *err;

    if (!s || !(s->dwfl = dwfl_begin(&module_callbacks))) {
        free(s);
        return error_no_memory();
    }
    s->mappings = mappings;
    s->mapping_count = count;
    dwfl_report_begin(s->dwfl);
    err = report_all(s, modules, e);
    if (err) {
        dwfl_space_destroy(s);
        return err;
    }
    dwfl_report_end(s->dwfl, NULL, NULL);
    s->attached = dwfl_attach_state(s->dwfl, NULL, SOME_PID, &thread_callbacks, s);
    *out = s;
    return NULL;
}

void dwfl_space_destroy(struct dwfl_space *s)
{
    if (!s)
        return;
    dwfl_end(s->dwfl);
    map_deinit(&s->cfi);
    VEC_DEINIT(&s->reported);
    free(s);
}
