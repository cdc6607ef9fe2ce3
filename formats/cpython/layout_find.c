/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the row of versions.def that fits an interpreter and, from 3.13 on, lets the
 * interpreter's own numbers overwrite it (debug_offsets.h). An unknown version is refused,
 * never taken for its neighbour.
 */
#include "formats/cpython/layout_find.h"

#include <string.h>

#include "formats/cpython/debug_offsets.h"
#include "formats/cpython/version.h"

struct row {
    uint8_t major, minor, since_patch, free_threaded;
    struct py_layout layout;
};

#define NONE PY_NONE
#define FRAMES(kind, tag_mask, unit) .frame_kind = kind, .code_tag_mask = tag_mask, .instr_unit_bytes = unit,
#define RUNTIME(head, current, key) \
    .runtime_interpreters_head = head, .runtime_tstate_current = current, .runtime_tss_key = key,
#define INTERP(next, threads, id, modules) \
    .interp_next = next, .interp_threads_head = threads, .interp_id = id, .interp_modules = modules,
#define TSTATE(next, interp, frame, thread, native, root)                                              \
    .tstate_next = next, .tstate_interp = interp, .tstate_frame = frame, .tstate_thread_id = thread, \
    .tstate_native_thread_id = native, .tstate_root_cframe = root,
#define CFRAME(current, previous) .cframe_current_frame = current, .cframe_previous = previous,
#define FRAME(code, previous, instr, owner, entry)                                                   \
    .frame_code = code, .frame_previous = previous, .frame_instr = instr, .frame_owner = owner, \
    .frame_is_entry = entry,
#define CODE(type, size, line, flags, filename, name, qualname, table, version, traceable, bytecode)            \
    .code_type = type, .code_size = size, .code_first_line = line, .code_flags = flags,                         \
    .code_filename = filename, .code_name = name, .code_qualname = qualname, .code_line_table = table, \
    .code_version = version, .code_first_traceable = traceable, .code_bytecode = bytecode,
#define STR(length, hash, state, ascii, compact, kind_bit, compact_bit, ascii_bit)                              \
    .str_length = length, .str_hash = hash, .str_state = state, .str_ascii_data = ascii,                        \
    .str_compact_data = compact, .str_kind_shift = kind_bit, .str_compact_shift = compact_bit, \
    .str_ascii_shift = ascii_bit,
#define BYTES(size, data) .bytes_size = size, .bytes_data = data,
#define OBJECT(cframe, code) .tstate_cframe = cframe, .code_code = code,
#define GIL(in_runtime, in_interpreter) .runtime_gil = in_runtime, .interp_gil = in_interpreter,
#define WORLD(state, requester) .tstate_state = state, .interp_requester = requester,
#define COROUTINE(state, frame, stack, locals) \
    .coroutine_state = state, .coroutine_frame = frame, .frame_stack = stack, .frame_locals = locals,
#define COUNTER(offset, interpreter_len) .interp_code_counter = offset, .interp_len_bytes = interpreter_len,
#define BYTECODE(index, copies) .frame_tlbc_index = index, .code_tlbc = copies,

static const struct row rows[] = {
#define PYTHON(ma, mi, ...) {ma, mi, 0, 0, {__VA_ARGS__}},
#define VARIANT(ma, mi, patch, threads, ...) {ma, mi, patch, threads, {__VA_ARGS__}},
#define BEHAVIOUR(...)
#define TASKS(...)
#include "formats/cpython/versions.def"
#undef PYTHON
#undef VARIANT
#undef BEHAVIOUR
#undef TASKS
};

/* No minor version has come near so many patch releases. */
#define PATCH_MOST 63

static void cover(uint16_t *len_bytes, uint16_t field, uint16_t field_bytes)
{
    if (field != PY_NONE && field + field_bytes > *len_bytes)
        *len_bytes = (uint16_t)(field + field_bytes);
}

/* How many bytes to read of a frame and of a code object: whole words up to the last field. */
static void set_lengths(struct py_layout *l)
{
    uint16_t frame = 0, code = 0;

    cover(&frame, l->frame_code, 8);
    cover(&frame, l->frame_previous, 8);
    cover(&frame, l->frame_instr, l->frame_kind == PY_FRAMES_OBJECT ? 4 : 8);
    cover(&frame, l->frame_owner, 1);
    cover(&frame, l->frame_is_entry, 1);
    cover(&code, l->code_type, 8);
    cover(&code, l->code_size, 8);
    cover(&code, l->code_first_line, 4);
    cover(&code, l->code_flags, 4);
    cover(&code, l->code_filename, 8);
    cover(&code, l->code_name, 8);
    cover(&code, l->code_qualname, 8);
    cover(&code, l->code_line_table, 8);
    cover(&code, l->code_version, 4);
    cover(&code, l->code_first_traceable, 4);
    if (l->code_code)
        cover(&code, l->code_code, 8);
    l->frame_len_bytes = (frame + 7) & ~7;
    l->code_len_bytes = (code + 7) & ~7;
}

/* Are the fields within what the frame walk reads? Debug offsets may have put them anywhere. */
static bool walk_reads_all(const struct py_layout *l)
{
    return (l->frame_kind == PY_FRAMES_OBJECT || l->frame_len_bytes <= PY_FRAME_READ_MAX) &&
           l->tstate_thread_id + 8 <= PY_TSTATE_READ_MAX && l->tstate_frame < l->tstate_thread_id &&
           l->tstate_interp < l->tstate_thread_id;
}

struct error *py_layout_find(uint32_t version_hex, bool debug_build, const void *debug_offsets,
                             uint32_t debug_offsets_len, struct py_layout *out)
{
    uint8_t major = version_hex >> 24, minor = version_hex >> 16, patch = version_hex >> 8;
    const struct row *row = NULL;
    bool free_threaded = false;
    char text[32];

    memset(out, 0, sizeof *out);
    py_version_text(version_hex, text);
    TRY(py_debug_offsets_flavour(version_hex, debug_offsets, debug_offsets_len, &free_threaded));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].major != major || rows[i].minor != minor)
            continue;
        if (rows[i].since_patch <= patch && rows[i].free_threaded == free_threaded)
            row = &rows[i];
    }
    if (!row)
        return error_create(ERROR_VERSION, "CPython %s%s is not supported (known: %s)", text,
                            free_threaded ? " free-threaded" : "", py_versions_known());
    if (patch > PATCH_MOST || ((version_hex & 0xf0) == 0xf0 && version_hex & 0xf))
        return error_create(ERROR_VERSION, "CPython %s was never released (known: %s)", text, py_versions_known());
    if ((version_hex & 0xf0) != 0xf0)
        return error_create(ERROR_VERSION, "CPython %s is a pre-release; only final releases are supported (known: %s)", text,
                            py_versions_known());
    *out = row->layout;
    out->version = version_hex;
    out->debug_build = debug_build;
    out->free_threaded = free_threaded;
    TRY(py_debug_offsets_apply(debug_offsets, debug_offsets_len, out));
    set_lengths(out);
    if (!walk_reads_all(out))
        return error_create(ERROR_VERSION, "CPython %s: its thread states or frames are laid out unlike any known version",
                            text);
    return NULL;
}

void py_layout_of_walk(struct py_layout *layout)
{
    layout->version = 0;
    layout->debug_build = 0;
    layout->interp_len_bytes = 0;
}

bool py_layout_row(uint32_t index, struct py_layout *out)
{
    if (index >= sizeof rows / sizeof *rows)
        return false;
    *out = rows[index].layout;
    out->free_threaded = rows[index].free_threaded;
    set_lengths(out);
    py_layout_of_walk(out);
    return true;
}
