/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognises interpreters among ELF files.
 *
 * Every file that a process maps as code comes through here, and few are interpreters, so the
 * question must be cheap. The hash table of the dynamic symbols says in a handful of small
 * reads that a name is not there (its Bloom filter usually with the first); section names show
 * an interpreter in an executable that exports nothing. Only files that pass have their symbol
 * table read.
 *
 * Nothing in the file is trusted: a bad file does not count as an interpreter.
 */
#include "formats/cpython/image.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/cpython/layout_find.h"
#include "formats/cpython/stripped.h"

#define DEBUG_OFFSETS_MAX 2048
#define WHAT_TO_DO "its symbols are stripped. Link the program with -Wl,-E (-rdynamic), or do not strip it"
#define PYTHON_EXPORTS_LEAST 500
#define PYTHON_EXPORTS_PERCENT 95
#define ASYNCIO_TABLE_BYTES 104
#define ASYNCIO_TASK_MAX 248 /* bytes; the frame walk does not read more of a task */
#define NAME_BYTES 64        /* of a symbol's name that are looked at, with a NUL: longer than any in wanted_names */
#define SYMBOLS_MAX (4u << 20) /* of .symtab that are read; the largest program that is known has 1.5 million */

enum wanted {
    SYM_RUNTIME,
    SYM_CODE_TYPE,
    SYM_VERSION,
    SYM_EVAL,
    SYM_GET_FIRST, /* functions that return the current thread state */
    SYM_GET_LAST = SYM_GET_FIRST + 2,
    SYM_CURRENT_OLD, /* up to 3.6 */
    SYM_DEBUG,       /* debug builds only */
    SYM_TLS,
    /* up to 3.10 */
    SYM_GET_VERSION,
    SYM_EVAL_OLD, /* up to 3.5 */
    SYM_INTERPRETERS,
    SYM_INTERPRETERS_GET,
    SYM_KEY,
    SYM_KEY_USER,     /* a function that reads SYM_KEY; from 3.15 on it loads SYM_TLS_GILSTATE */
    SYM_TLS_GILSTATE,
    SYM_STR_TYPE,
    SYM_INT_TYPE,
    SYM_STR_TYPE_OLD, /* 2.7 */
    SYM_INT_TYPE_OLD,
    SYM_RESTORE,      /* a function that takes the GIL */
    SYM_RELEASE_LOCK, /* 2.7: a function that loads SYM_GIL_LOCK */
    SYM_GIL_LOCK,     /* 2.7 */
    SYM_GIL_COND, /* 3.3 to 3.6 */
    SYM_GIL_MUTEX,
    SYM_GIL_SWITCH_COND,
    SYM_GIL_SWITCH_MUTEX,
    SYM_CODE_COUNTER, /* 3.12 */
    SYM_COUNT,
};
static const char *const wanted_names[SYM_COUNT] = {
    [SYM_RUNTIME] = "_PyRuntime",
    [SYM_CODE_TYPE] = "PyCode_Type",
    [SYM_VERSION] = "Py_Version",
    [SYM_EVAL] = "_PyEval_EvalFrameDefault",
    [SYM_GET_FIRST] = "_PyThreadState_GetCurrent",
    [SYM_GET_FIRST + 1] = "PyThreadState_GetUnchecked",
    [SYM_GET_LAST] = "_PyThreadState_UncheckedGet",
    [SYM_CURRENT_OLD] = "_PyThreadState_Current",
    [SYM_DEBUG] = "_Py_RefTotal",
    [SYM_TLS] = "_Py_tss_tstate",
    [SYM_GET_VERSION] = "Py_GetVersion",
    [SYM_EVAL_OLD] = "PyEval_EvalFrameEx",
    [SYM_INTERPRETERS] = "interp_head",
    [SYM_INTERPRETERS_GET] = "PyInterpreterState_Head",
    [SYM_KEY] = "autoTLSkey",
    [SYM_KEY_USER] = "PyGILState_GetThisThreadState",
    [SYM_TLS_GILSTATE] = "_Py_tss_gilstate",
    [SYM_STR_TYPE] = "PyUnicode_Type",
    [SYM_INT_TYPE] = "PyLong_Type",
    [SYM_STR_TYPE_OLD] = "PyString_Type",
    [SYM_INT_TYPE_OLD] = "PyInt_Type",
    [SYM_RESTORE] = "PyEval_RestoreThread",
    [SYM_RELEASE_LOCK] = "PyEval_ReleaseLock",
    [SYM_GIL_LOCK] = "interpreter_lock",
    [SYM_GIL_COND] = "gil_cond",
    [SYM_GIL_MUTEX] = "gil_mutex",
    [SYM_GIL_SWITCH_COND] = "switch_cond",
    [SYM_GIL_SWITCH_MUTEX] = "switch_mutex",
    [SYM_CODE_COUNTER] = "_Py_next_func_version",
};

struct found {
    struct elf_dynamic dynamic;
    Elf64_Sym symbols[SYM_COUNT];         /* st_shndx SHN_UNDEF: not found */
    Elf64_Shdr symtab, runtime, asyncio;   /* .symtab, .PyRuntime, .AsyncioDebug; sh_size 0: not found */
};

static bool has(const struct found *found, enum wanted w)
{
    return found->symbols[w].st_shndx != SHN_UNDEF;
}

static void find_sections(const struct elf_file *f, struct found *found)
{
    struct elf_section s = {0};

    while (elf_file_next_section(f, &s)) {
        if (s.header.sh_type == SHT_SYMTAB)
            found->symtab = s.header;
        else if (s.header.sh_type != SHT_PROGBITS || !(s.header.sh_flags & SHF_WRITE) || !s.name)
            continue;
        else if (!strcmp(s.name, ".PyRuntime"))
            found->runtime = s.header;
        else if (!strcmp(s.name, ".AsyncioDebug"))
            found->asyncio = s.header;
    }
}

static void add_eval_range(struct py_image *img, uint64_t start, uint64_t len_bytes)
{
    if (!len_bytes || start > UINT64_MAX - len_bytes)
        return;
    for (uint32_t i = 0; i < img->eval_range_count; i++) {
        if (img->eval_ranges[i].start == start)
            return;
    }
    if (img->eval_range_count < sizeof img->eval_ranges / sizeof *img->eval_ranges)
        img->eval_ranges[img->eval_range_count++] = (struct py_range){start, start + len_bytes};
}

/* The names of symbols, which are read as they are needed: the table may be as long as its owner likes. */
struct symbol_names {
    struct elf_window *window; /* NULL: an image in memory */
    const uint8_t *image;
    uint64_t len_bytes;
};

static struct symbol_names symbol_names_of(const struct elf_file *f, size_t table)
{
    struct symbol_names n = {0};

    if (table && table < f->section_count && f->sections[table].sh_type == SHT_STRTAB) {
        const Elf64_Shdr *header = &f->sections[table];
        n.window = elf_file_window(f, header->sh_offset, header->sh_size);
        n.image = f->image ? elf_file_take(f, header->sh_offset, header->sh_size) : NULL;
        n.len_bytes = n.window || n.image ? header->sh_size : 0;
    }
    return n;
}

/* The first bytes of a name, of which none that is wanted has more; NULL: there is none. Not always with a NUL. */
static const char *symbol_name_at(const struct symbol_names *n, uint64_t at, char text[NAME_BYTES])
{
    if (at >= n->len_bytes)
        return NULL;
    uint64_t len = n->len_bytes - at < NAME_BYTES - 1 ? n->len_bytes - at : NAME_BYTES - 1;
    const uint8_t *bytes = n->window ? elf_window_need(n->window, at, len) : n->image + at;
    if (!bytes)
        return NULL;
    memcpy(text, bytes, len);
    text[len] = 0;
    return text;
}

static void use_symbol(const Elf64_Sym *sym, const char *name, const char *eval, struct found *found, struct py_image *img)
{
    unsigned type = ELF64_ST_TYPE(sym->st_info);
    size_t eval_len = strlen(eval);

    for (int w = 0; w < SYM_COUNT; w++) {
        if (!has(found, w) && strcmp(name, wanted_names[w]) == 0 &&
            (type == STT_TLS) == (w == SYM_TLS || w == SYM_TLS_GILSTATE))
            found->symbols[w] = *sym;
    }
    if (type == STT_FUNC && strncmp(name, eval, eval_len) == 0 && (name[eval_len] == '.' || !name[eval_len]))
        add_eval_range(img, sym->st_value, sym->st_size);
}

/* One pass over .symtab, for symbols that are not exported and the parts of the eval loop that the compiler split off. */
static void read_symtab(const struct elf_file *f, struct found *found, struct py_image *img)
{
    Elf64_Sym syms[256];
    char text[NAME_BYTES];
    uint64_t left = found->symtab.sh_size / sizeof *syms, offset = found->symtab.sh_offset;
    bool old = !has(found, SYM_EVAL) && has(found, SYM_EVAL_OLD);
    const char *eval = wanted_names[old ? SYM_EVAL_OLD : SYM_EVAL];
    struct symbol_names names = symbol_names_of(f, found->symtab.sh_link);

    left = left < SYMBOLS_MAX ? left : SYMBOLS_MAX;
    while (left && names.len_bytes) {
        size_t n = left < 256 ? (size_t)left : 256;
        if (!elf_file_read_at(f, offset, syms, n * sizeof *syms))
            return;
        for (size_t i = 0; i < n; i++) {
            unsigned type = ELF64_ST_TYPE(syms[i].st_info);
            if (syms[i].st_shndx == SHN_UNDEF || (type != STT_OBJECT && type != STT_FUNC && type != STT_TLS))
                continue;
            const char *name = symbol_name_at(&names, syms[i].st_name, text);
            if (name && memchr("_Piags", name[0], 6))
                use_symbol(&syms[i], name, eval, found, img);
        }
        offset += n * sizeof *syms;
        left -= n;
    }
}

static struct error *refuse(struct py_image *img, const char *why)
{
    img->refused = strdup(why);
    return img->refused ? NULL : error_no_memory();
}

/* Up to 3.10 no symbol gives the version; up to 3.6 there are variables in place of _PyRuntime. */
static void describe_old(const struct elf_file *f, const struct found *found, struct py_image *img)
{
    const Elf64_Sym *symbols = found->symbols;

    img->version_hex = py_machine_version(f, &symbols[SYM_GET_VERSION]);
    const struct py_behaviour *version = py_behaviour_of(img->version_hex);
    if (!version || !has(found, SYM_CURRENT_OLD) ||
        (version->state != PY_STATE_VARIABLE && version->state != PY_STATE_VARIABLE_KEY))
        return;
    img->runtime_vaddr = symbols[SYM_CURRENT_OLD].st_value;
    img->interpreters_vaddr = has(found, SYM_INTERPRETERS)
                                  ? symbols[SYM_INTERPRETERS].st_value
                                  : py_machine_variable(f, &symbols[SYM_INTERPRETERS_GET], false, true);
    if (version->state == PY_STATE_VARIABLE_KEY)
        img->thread_key_vaddr = has(found, SYM_KEY) ? symbols[SYM_KEY].st_value
                                                    : py_machine_variable(f, &symbols[SYM_KEY_USER], true, false);
}

/* The thread-local variables that point to the thread's own state. */
static void find_thread_locals(const struct elf_file *f, const struct found *found, struct py_image *img)
{
    enum py_state state = img->behaviour->state;

    if (state == PY_STATE_TLS || state == PY_STATE_TLS_KEPT)
        py_tls_find(f, &found->dynamic, &found->symbols[SYM_GET_FIRST], SYM_GET_LAST - SYM_GET_FIRST + 1,
                    &found->symbols[SYM_TLS], &img->tls_tstate);
    if (state == PY_STATE_TLS_KEPT) {
        py_tls_find(f, &found->dynamic, &found->symbols[SYM_KEY_USER], 1, &found->symbols[SYM_TLS_GILSTATE],
                    &img->tls_gilstate);
        /* Both are variables of one module. */
        if (img->tls_gilstate.kind == PY_TLS_MODULE && !img->tls_gilstate.module_id_vaddr &&
            img->tls_tstate.kind == PY_TLS_MODULE)
            img->tls_gilstate.module_id_vaddr = img->tls_tstate.module_id_vaddr;
    }
}

static void find_gil(const struct elf_file *f, const struct found *found, struct py_image *img)
{
    const Elf64_Sym *symbols = found->symbols, *restore = &symbols[SYM_RESTORE];
    struct py_gil_variables variables = {0, symbols[SYM_GIL_COND], symbols[SYM_GIL_MUTEX], symbols[SYM_GIL_SWITCH_COND],
                                         symbols[SYM_GIL_SWITCH_MUTEX]};
    bool may_learn = img->behaviour->state == PY_STATE_VARIABLE_KEY && restore->st_size &&
                     restore->st_value <= UINT64_MAX - restore->st_size;

    if (img->behaviour->state == PY_STATE_VARIABLE)
        variables.lock_vaddr = has(found, SYM_GIL_LOCK)
                                   ? symbols[SYM_GIL_LOCK].st_value
                                   : py_machine_variable(f, &symbols[SYM_RELEASE_LOCK], true, true);
    img->gil = py_gil_find(&img->layout, img->runtime_vaddr, &variables, may_learn);
    if (img->gil.kind == PY_GIL_LEARN)
        img->restore_thread = (struct py_range){restore->st_value, restore->st_value + restore->st_size};
}

static uint64_t code_counter(const struct found *found, const struct py_layout *layout)
{
    bool numbered = layout->code_version != PY_NONE && !layout->free_threaded;

    return numbered && has(found, SYM_CODE_COUNTER) ? found->symbols[SYM_CODE_COUNTER].st_value : 0;
}

/* From 3.11 on a code object ends with its bytecode, in units of 2 bytes. */
static void find_types(const struct elf_file *f, const struct found *found, struct py_image *img)
{
    const struct py_layout *l = &img->layout;
    struct py_stripped_type types[] = {
        {.name = "code", .basic_bytes = l->code_bytecode, .item_bytes = 2},
        {.name = "str", .basic_bytes = l->str_compact_data + 8},
        {.name = "int", .basic_bytes = l->code_size + 8, .item_bytes = 4},
    };

    if (l->code_bytecode == PY_NONE || l->code_size == PY_NONE)
        return;
    py_stripped_types(f, &found->dynamic, l->code_size + 8, types, sizeof types / sizeof *types);
    img->code_type_vaddr = types[0].vaddr;
    img->str_type_vaddr = img->str_type_vaddr ? img->str_type_vaddr : types[1].vaddr;
    img->int_type_vaddr = img->int_type_vaddr ? img->int_type_vaddr : types[2].vaddr;
}

/* `table` holds the debug offsets, if there are `table_len` bytes of them. */
static void find_version(const struct elf_file *f, const struct found *found, const uint8_t *table, uint64_t table_len,
                         struct py_image *img)
{
    if (has(found, SYM_VERSION)) {
        uint32_t version;
        if (elf_file_read_vaddr(f, found->symbols[SYM_VERSION].st_value, &version, sizeof version))
            img->version_hex = version;
    }
    if (!img->version_hex && table_len) {
        struct bytes b = bytes_of(table + 8, 8);
        img->version_hex = (uint32_t)bytes_u64(&b);
    }
    if (!img->version_hex)
        describe_old(f, found, img);
    if (!img->version_hex)
        img->version_hex = py_stripped_version(f);
}

static struct error *describe(const struct elf_file *f, struct found *found, struct py_image *img)
{
    uint8_t table[DEBUG_OFFSETS_MAX];
    uint64_t offset, table_len = 0;

    img->runtime_vaddr = has(found, SYM_RUNTIME) ? found->symbols[SYM_RUNTIME].st_value : found->runtime.sh_addr;
    img->str_type_vaddr = found->symbols[has(found, SYM_STR_TYPE_OLD) ? SYM_STR_TYPE_OLD : SYM_STR_TYPE].st_value;
    img->int_type_vaddr = found->symbols[has(found, SYM_INT_TYPE_OLD) ? SYM_INT_TYPE_OLD : SYM_INT_TYPE].st_value;
    if (has(found, SYM_CODE_TYPE))
        img->code_type_vaddr = found->symbols[SYM_CODE_TYPE].st_value;
    if (has(found, SYM_EVAL))
        add_eval_range(img, found->symbols[SYM_EVAL].st_value, found->symbols[SYM_EVAL].st_size);
    else if (has(found, SYM_EVAL_OLD))
        add_eval_range(img, found->symbols[SYM_EVAL_OLD].st_value, found->symbols[SYM_EVAL_OLD].st_size);
    if (img->runtime_vaddr) {
        table_len = elf_file_bytes_at(f, img->runtime_vaddr, &offset);
        if (table_len > sizeof table)
            table_len = sizeof table;
        if (table_len < 24 || !elf_file_read_at(f, offset, table, table_len) || memcmp(table, "xdebugpy", 8) != 0)
            table_len = 0;
    }
    find_version(f, found, table, table_len, img);
    if (!img->version_hex)
        return refuse(img, "its version cannot be told: " WHAT_TO_DO);
    if (img->eval_range_count == 1) {
        struct py_range cold;
        if (py_machine_cold_part(f, img->eval_ranges[0], &cold))
            add_eval_range(img, cold.start, cold.end - cold.start);
    }
    img->behaviour = py_behaviour_of(img->version_hex);
    if (img->behaviour) {
        if (has(found, SYM_DEBUG) && img->behaviour->debug_objects_larger)
            return refuse(img, "debug builds of CPython 3.7 and older are not supported: their objects are larger");
        find_thread_locals(f, found, img);
    }
    struct error *err = py_layout_find(img->version_hex, has(found, SYM_DEBUG), table_len ? table : NULL,
                                       (uint32_t)table_len, &img->layout);
    if (err && err->code == ERROR_NO_MEMORY)
        return err;
    if (err) {
        struct error *failed = refuse(img, error_text(err));
        error_destroy(err);
        return failed;
    }
    if (!img->code_type_vaddr)
        find_types(f, found, img);
    if (!img->runtime_vaddr || !img->code_type_vaddr)
        return refuse(img, "where its state lies cannot be told: " WHAT_TO_DO);
    img->code_counter_vaddr = code_counter(found, &img->layout);
    find_gil(f, found, img);
    return NULL;
}

/* From the same table, where to find all tasks, and what one needs to follow what it waits for. Nothing, or all of it. */
static void describe_tasks(const uint64_t v[ASYNCIO_TABLE_BYTES / 8], struct py_asyncio *out)
{
    uint64_t size = v[0], awaited_by = v[2], is_set = v[4], coroutine = v[5], node = v[6], interpreter_size = v[7],
             interpreter_tasks = v[8], thread_size = v[9], thread_tasks = v[12];

    if (size < 16 || awaited_by > size - 8 || is_set >= size || coroutine > size - 8 || node > size - 16 ||
        interpreter_size > UINT32_MAX || interpreter_size < 16 || interpreter_tasks > interpreter_size - 16 ||
        thread_size < 16 || thread_tasks > thread_size - 16 || !thread_tasks || coroutine < 8)
        return;
    out->task_awaited_by = (uint16_t)awaited_by;
    out->task_awaited_by_is_set = (uint16_t)is_set;
    out->task_coroutine = (uint16_t)coroutine;
    out->task_node = (uint16_t)node;
    out->interpreter_tasks = (uint32_t)interpreter_tasks;
    out->thread_tasks = (uint16_t)thread_tasks;
}

/*
 * struct _Py_AsyncioModuleDebugOffsets (Modules/_asynciomodule.c of 3.14): 8-byte numbers. We take the size of a task
 * and its offsets of name and mark, the size of the thread state and its offset of the running task.
 */
static void describe_asyncio(const struct elf_file *f, const Elf64_Shdr *section, struct py_asyncio *out)
{
    uint8_t table[ASYNCIO_TABLE_BYTES];

    if (section->sh_size != sizeof table || !elf_file_read_vaddr(f, section->sh_addr, table, sizeof table))
        return;
    struct bytes b = bytes_of(table, sizeof table);
    uint64_t v[ASYNCIO_TABLE_BYTES / 8];
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        v[i] = bytes_u64(&b);
    uint64_t size = v[0], name = v[1], is_task = v[3], thread_size = v[9], running = v[11];
    if (size >= PY_NONE || name > ASYNCIO_TASK_MAX - 8 || name + 8 > size || is_task >= name + 8 ||
        thread_size >= PY_NONE || thread_size < 8 || !running || running > thread_size - 8)
        return;
    *out = (struct py_asyncio){(uint16_t)running, (uint16_t)name, (uint16_t)is_task, (uint16_t)size};
    describe_tasks(v, out);
}

static bool is_of_python(const char *name)
{
    /* Of 2.7 also the modules that are built in. */
    return !strncmp(name, "Py", 2) || !strncmp(name, "_Py", 3) || !strncmp(name, "init", 4);
}

/*
 * Whether a file is CPython and nothing else, whatever it is called: of what the 20 versions and builds of accuracy.md export, 98.5 %
 * at least has names of CPython's. A program that has an interpreter in it exports less, or other things, too.
 */
static bool exports_python(const struct elf_file *f, const struct elf_dynamic *d)
{
    uint32_t all, python;

    elf_count_exported(f, d, is_of_python, &all, &python);
    return python >= PYTHON_EXPORTS_LEAST && python >= all / 100.0 * PYTHON_EXPORTS_PERCENT;
}

struct error *py_image_of(const struct elf_file *f, struct py_image *out)
{
    struct found found = {0};

    memset(out, 0, sizeof *out);
    if (!f->is_elf || (f->header.e_type != ET_EXEC && f->header.e_type != ET_DYN))
        return NULL;
    elf_dynamic_read(f, &found.dynamic);
    find_sections(f, &found);
    describe_asyncio(f, &found.asyncio, &out->asyncio);
    bool new = elf_find_exported(f, &found.dynamic, wanted_names[SYM_RUNTIME], &found.symbols[SYM_RUNTIME]);
    bool old = !new && elf_find_exported(f, &found.dynamic, wanted_names[SYM_CURRENT_OLD], &found.symbols[SYM_CURRENT_OLD]);
    if (!new && !old && !found.runtime.sh_size) {
        /* The function that the interpreter calls to load greenlet: since 1.0, before that, and in 2.7. */
        static const char *const init[] = {"PyInit__greenlet", "PyInit_greenlet", "initgreenlet", "init_greenlet"};
        Elf64_Sym sym;
        for (size_t i = 0; i < sizeof init / sizeof *init && !out->switches_stacks; i++)
            out->switches_stacks = elf_find_exported(f, &found.dynamic, init[i], &sym);
        return NULL;
    }
    out->is_python = true;
    out->all_python = exports_python(f, &found.dynamic);
    for (int w = 0; w < SYM_COUNT; w++) {
        if (!has(&found, w) && !elf_find_exported(f, &found.dynamic, wanted_names[w], &found.symbols[w]))
            found.symbols[w] = (Elf64_Sym){0};
    }
    read_symtab(f, &found, out);
    struct error *err = describe(f, &found, out);
    if (err)
        py_image_deinit(out);
    return err;
}

struct error *py_image_read(int fd, const char *path, struct py_image *out)
{
    struct elf_file f;

    memset(out, 0, sizeof *out);
    struct error *err = elf_file_open(fd, path, NULL, &f);
    if (!err)
        err = py_image_of(&f, out);
    elf_file_close(&f);
    return err;
}

void py_image_deinit(struct py_image *img)
{
    free(img->refused);
    img->refused = NULL;
}

struct error *py_image_copy(const struct py_image *from, struct py_image *to)
{
    *to = *from;
    if (!from->refused)
        return NULL;
    to->refused = strdup(from->refused);
    return to->refused ? NULL : error_no_memory();
}
