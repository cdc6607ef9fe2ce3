/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/trace/main_module.h"

#include <string.h>

#include "formats/base/code_file.h"
#include "formats/base/path.h"
#include "formats/cpython/code.h"
#include "formats/trace/program_name.h"

enum {
    OUTERMOST = 20,   /* frames that are looked at: what starts a module in a pex has 14 */
};

void main_module_deinit(struct main_module *m)
{
    buf_deinit(&m->function);
    buf_deinit(&m->file);
    buf_deinit(&m->text);
    buf_deinit(&m->starter);
}

bool main_module_says_nothing(const char *script)
{
    return program_is_hash(script) || !strcmp(script, "pex");
}

/* Reads the function and the file of a Python frame. */
static bool read_frame(struct main_module *m, const struct epoch *e, uint32_t frame)
{
    const struct trace_code *code = &e->codes.data[e->frames.data[frame].ref];
    const struct py_string name = {code->name_form, code->name_len, code->name.data, code->name.len_bytes};
    const struct py_string file = {code->filename_form, code->filename_len, code->filename.data, code->filename.len_bytes};

    buf_clear(&m->function);
    buf_clear(&m->file);
    py_string_text(&name, &m->function);
    if (file.form)
        py_string_text(&file, &m->file);
    return limits_work(e->limits, 2 * (name.len_bytes + file.len_bytes)) && !m->function.bad && !m->file.bad;
}

/* The outermost frames of a stack, outermost first, as far as they are Python's. */
static bool outermost(const struct epoch *e, uint32_t stack, uint32_t ids[OUTERMOST], uint32_t *count)
{
    if (!epoch_outermost(e, stack, OUTERMOST, ids, count, e->limits))
        return false;
    for (uint32_t i = 0; i < *count; i++) {
        if (e->frames.data[ids[i]].type != TRACE_python_frame)
            *count = i;
    }
    return true;
}

static bool is_in_runpy(const char *file)
{
    return !strcmp(file, "<frozen runpy>") || !strcmp(path_base(file), "runpy.py");
}

/* The name of the folder that a file is in, and what follows it. */
static const char *folder_of(const char *path, const char *base)
{
    const char *start = base > path ? base - 1 : base;

    while (start > path && start[-1] != '/')
        start--;
    return start;
}

/* A file that starts a pex: <hash>/__main__.py or <hash>/pex. */
static bool is_starter(const char *file)
{
    const char *base = path_base(file);

    return (!strcmp(base, "__main__.py") || !strcmp(base, "pex")) && program_is_hash(folder_of(file, base));
}

/* The last component of a path; of a __main__.py that of its folder, which is the package. */
static void put_script(const char *file, struct buf *out)
{
    const char *base = path_base(file), *start = base;
    size_t len = strlen(base);

    if (!strcmp(base, "__main__.py") && base > file + 1) {
        start = folder_of(file, base);
        len = (size_t)(base - 1 - start);
    }
    buf_put(out, start, len);
}

/* The program of -c, if it is one of the helpers, by the function that its <module> calls; "": any other. A helper imports it first. */
static bool find_command(struct main_module *m, const struct epoch *e, const uint32_t *called, bool *found)
{
    static const char imports[] = "<frozen importlib";

    m->kind = TRACE_PROGRAM_COMMAND;
    m->program = "";
    *found = !called;
    if (!called)
        return true;
    if (!read_frame(m, e, *called))
        return false;
    const char *helper = program_helper_of_file(buf_cstr(&m->file));
    m->program = helper ? helper : "";
    *found = strncmp(buf_cstr(&m->file), imports, sizeof imports - 1) != 0;
    return true;
}

/* Of the file of a <module>. */
static bool find_script(struct main_module *m)
{
    const char *helper = program_helper_of_file(buf_cstr(&m->file));

    if (helper) {
        m->kind = TRACE_PROGRAM_MODULE;
        m->program = helper;
        return true;
    }
    buf_clear(&m->text);
    put_script(buf_cstr(&m->file), &m->text);
    m->kind = TRACE_PROGRAM_SCRIPT;
    m->program = buf_cstr(&m->text);
    return *m->program;
}

/* Whether a frame is still of what starts a pex. Sets *calls: what it calls is what the pex is for. */
static bool is_in_pex(struct main_module *m, bool *calls)
{
    static const char entry[] = "execute_entry";
    const char *file = buf_cstr(&m->file);
    bool is_of_pex = strstr(file, "/.bootstrap/") || !strcmp(file, buf_cstr(&m->starter));

    *calls = is_of_pex && !strncmp(buf_cstr(&m->function), entry, sizeof entry - 1);
    return is_of_pex;
}

/* What the frame after those that start a program says of it. */
static bool find_program(struct main_module *m, const struct epoch *e, const uint32_t *called, bool *found)
{
    const char *file = buf_cstr(&m->file);

    if (!strcmp(file, "<string>"))
        return find_command(m, e, called, found);
    *found = *file && *file != '<' && strcmp(path_base(file), "__init__.py") && find_script(m); /* <stdin>; what only imports */
    return !m->text.bad;
}

struct error *main_module_find(struct main_module *m, const struct epoch *e, uint32_t stack, bool *found)
{
    uint32_t ids[OUTERMOST], count;
    bool in_pex = false, calls = false;

    *found = false;
    if (!outermost(e, stack, ids, &count))
        return error_no_memory();
    for (uint32_t i = 0; i < count; i++) {
        if (!read_frame(m, e, ids[i]))
            return error_no_memory();
        const char *file = buf_cstr(&m->file);
        bool is_module = !strcmp(buf_cstr(&m->function), "<module>"), called = calls;
        if (is_in_runpy(file) || (in_pex && is_in_pex(m, &calls)))
            continue;
        if (!in_pex && is_module && is_starter(file)) {
            in_pex = true;
            buf_clear(&m->starter);
            buf_put_str(&m->starter, file);
            continue;
        }
        bool good = !is_module && !called ? true : find_program(m, e, i + 1 < count ? &ids[i + 1] : NULL, found);
        return good ? NULL : error_no_memory();
    }
    return NULL;
}
