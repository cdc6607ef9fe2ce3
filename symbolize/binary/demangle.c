/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/binary/demangle.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/map.h"

enum {
    MANGLED_MAX = 1 << 14,   /* bytes; longer symbols are shown as they are */
    CPLUSPLUS_MAX = 1 << 10, /* of C++, as libiberty has it */
    DEMANGLED_MAX = 1 << 16, /* substitutions double a name every few characters */
    NAME_LONG = 120,         /* longer names lose the arguments of their templates and functions */
    PARTS_MAX = 1 << 16,     /* of a C++ name, with substitutions written out */
};

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

/* ---- C++ and Rust ---- */

struct collector {
    struct buf *out;
    bool is_rust, cut;
    jmp_buf too_long; /* libiberty has no other way to be stopped */
};

/*
 * libiberty holds no memory of the heap while it writes, but for an identifier of Rust's beyond ASCII. What comes next is
 * ASCII again. (C++ symbols have any bytes in them, but then what is written is in no heap.)
 */
static bool may_stop(const struct collector *c, const char *text, size_t len_bytes)
{
    for (size_t i = 0; c->is_rust && i < len_bytes; i++) {
        if ((unsigned char)text[i] >= 0x80)
            return false;
    }
    return true;
}

static void collect(const char *text, size_t len_bytes, void *opaque)
{
    struct collector *c = opaque;

    if (c->out->len_bytes + len_bytes <= DEMANGLED_MAX)
        buf_put(c->out, text, len_bytes);
    else if (may_stop(c, text, len_bytes))
        longjmp(c->too_long, 1);
    else
        c->cut = true;
}

typedef int (*library_demangler)(const char *symbol, int options, demangle_callbackref callback, void *opaque);

static bool ask_library(library_demangler function, const char *symbol, struct buf *out)
{
    struct collector c = {.out = out, .is_rust = function == rust_demangle_callback};

    buf_clear(out);
    if (setjmp(c.too_long))
        return false;
    return function(symbol, DMGL_PARAMS | DMGL_ANSI, collect, &c) && out->len_bytes && !c.cut;
}

/* True if all that libiberty has of this part of a name is in other members than u.s_binary. */
static bool is_leaf(const struct demangle_component *part)
{
    switch (part->type) {
    case DEMANGLE_COMPONENT_NAME:
    case DEMANGLE_COMPONENT_OPERATOR:
    case DEMANGLE_COMPONENT_EXTENDED_OPERATOR:
    case DEMANGLE_COMPONENT_CTOR:
    case DEMANGLE_COMPONENT_DTOR:
    case DEMANGLE_COMPONENT_FIXED_TYPE:
    case DEMANGLE_COMPONENT_BUILTIN_TYPE:
    case DEMANGLE_COMPONENT_SUB_STD:
    case DEMANGLE_COMPONENT_TEMPLATE_PARAM:
    case DEMANGLE_COMPONENT_FUNCTION_PARAM:
    case DEMANGLE_COMPONENT_CHARACTER:
    case DEMANGLE_COMPONENT_NUMBER:
    case DEMANGLE_COMPONENT_LAMBDA:
    case DEMANGLE_COMPONENT_DEFAULT_ARG:
    case DEMANGLE_COMPONENT_UNNAMED_TYPE:
        return true;
    default:
        /* What libiberty learned later are single names, builtin types, and parameters of lambdas. */
        return part->type > DEMANGLE_COMPONENT_THROW_SPEC;
    }
}

/* How many parts a name has with its substitutions written out. `known` has those of parts that were counted before. */
static uint64_t count_parts(const struct demangle_component *part, struct map *known)
{
    uint64_t key = (uint64_t)(uintptr_t)part, count = 1;

    if (!part || is_leaf(part))
        return 1;
    const uint64_t *before = map_get(known, key);
    if (before)
        return *before;
    count += count_parts(part->u.s_binary.left, known);
    count += count_parts(part->u.s_binary.right, known);
    count = count > PARTS_MAX ? PARTS_MAX + 1 : count;
    return map_set(known, key, count) ? count : PARTS_MAX + 1;
}

/*
 * True if substitutions make a C++ name so large that libiberty would search it for hours, which it does before it
 * writes a pack expansion (Dp), and so before collect() could stop it. A symbol that it cannot read is harmless.
 */
static bool is_bomb(const char *symbol)
{
    static const char global[] = "_GLOBAL_"; /* _GLOBAL__I_ and the name of a function */
    size_t skipped = begins(symbol, global) ? strcspn(symbol, "Z") : 0;
    struct map known = {0};
    void *memory = NULL;

    if (skipped)
        symbol += symbol[skipped] ? skipped - 1 : 0;
    const struct demangle_component *name = cplus_demangle_v3_components(symbol, DMGL_PARAMS | DMGL_ANSI, &memory);
    bool bomb = name && count_parts(name, &known) > PARTS_MAX;
    map_deinit(&known);
    free(memory);
    return bomb;
}

/* The end of what the bracket at `from` encloses: its closing one, or the end of the text. */
static size_t skip_brackets(const char *name, size_t from, size_t len)
{
    size_t depth = 0, i = from;

    for (; i < len; i++) {
        if (strchr("<([{", name[i]))
            depth++;
        else if (strchr(">)]}", name[i]) && !(name[i] == '>' && i && name[i - 1] == '-') && !--depth)
            break;
    }
    return i;
}

/* True if an operator's name ends just before `i`: operator<, operator(), operator<<. */
static bool is_operator(const char *name, size_t i)
{
    static const char word[] = "operator";
    size_t len = sizeof word - 1;

    for (int k = 0; k < 2 && i && strchr("<>(=-", name[i - 1]); k++)
        i--;
    return i >= len && !memcmp(name + i - len, word, len);
}

/*
 * Replaces the arguments of templates and functions by "...". What a name begins with stays, as in Rust's <T as Trait>::f,
 * and so does (anonymous namespace).
 */
static void shorten(struct buf *out)
{
    static const char anonymous[] = "(anonymous namespace)";
    char *name = (char *)out->data;
    size_t len = out->len_bytes, to = 0;

    for (size_t i = 0; i < len; i++) {
        name[to++] = name[i];
        if ((name[i] != '<' && name[i] != '(') || !i || is_operator(name, i))
            continue;
        if (len - i >= sizeof anonymous - 1 && !memcmp(name + i, anonymous, sizeof anonymous - 1)) {
            memmove(name + to, name + i + 1, sizeof anonymous - 2);
            to += sizeof anonymous - 2;
            i += sizeof anonymous - 2;
            continue;
        }
        size_t end = skip_brackets(name, i, len);
        if (end < i + 5) /* no longer than the dots would be */
            continue;
        memcpy(name + to, "...", 3);
        to += 3;
        i = end - 1;
    }
    out->len_bytes = to;
}

static void shorten_if_long(struct buf *out)
{
    if (out->len_bytes > NAME_LONG)
        shorten(out);
}

/* Removes `len` bytes at `at`. */
static void cut(struct buf *out, size_t at, size_t len)
{
    memmove(out->data + at, out->data + at + len, out->len_bytes - at - len);
    out->len_bytes -= len;
}

/* Index of the last occurrence of `text`; the length of the name if there is none. */
static size_t find_last(const struct buf *name, const char *text)
{
    size_t len = strlen(text);

    for (size_t i = name->len_bytes + 1; i-- > 0;) {
        if (i + len <= name->len_bytes && !memcmp(name->data + i, text, len))
            return i;
    }
    return name->len_bytes;
}

/*
 * PyO3 calls a method through T::__pymethod_NAME__ and a function through __pyfunction_NAME. T is written <T>, or
 * PATH::_::<impl T>, where PATH is the module of the code that the macro made.
 */
static void rename_pyo3(struct buf *out, enum demangle_layer *layer)
{
    static const char method[] = "__pymethod_", function[] = "__pyfunction_", impl[] = "<impl ";
    size_t at = find_last(out, method);

    if (at < out->len_bytes) {
        size_t end = find_last(out, "__");
        if (end <= at + sizeof method - 1)
            return;
        cut(out, end, 2);
        cut(out, at, sizeof method - 1);
    } else {
        at = find_last(out, function);
        if (at == out->len_bytes)
            return;
        cut(out, at, sizeof function - 1);
    }
    *layer = DEMANGLE_WRAPPER;
    size_t from = find_last(out, impl), len = sizeof impl - 1;
    if (from == out->len_bytes) {
        from = 0;
        len = out->len_bytes && out->data[0] == '<';
    }
    size_t close = len ? skip_brackets((const char *)out->data, from, out->len_bytes) : out->len_bytes;
    if (close < at && !memmem(out->data + from, close - from, " as ", 4)) {
        cut(out, close, 1);
        cut(out, 0, from + len);
    }
}

static bool rust(const char *symbol, struct buf *out, enum demangle_layer *layer)
{
    if (!ask_library(rust_demangle_callback, symbol, out))
        return false;
    rename_pyo3(out, layer);
    shorten_if_long(out);
    return true;
}

/* ---- Cython ---- */

/* Reads digits; at most 9999, more than identifiers are long. */
static const char *read_number(const char *p, size_t *value)
{
    for (*value = 0; isdigit((unsigned char)*p) && *value < 1000; p++)
        *value = *value * 10 + (size_t)(*p - '0');
    return p;
}

/* Skips what a fused function is marked with: __pyx_fuse_0_1. */
static const char *skip_fuse(const char *p)
{
    static const char fuse[] = "__pyx_fuse";

    if (!begins(p, fuse))
        return p;
    p += sizeof fuse - 1;
    while (p[0] == '_' && isdigit((unsigned char)p[1])) {
        size_t number;
        p = read_number(p + 1, &number);
    }
    return p;
}

/*
 * "6uvloop_4loop_4Loop_" and the name: packages, module, classes and functions around it, each behind its length. The
 * name of a `numbered` function has a number before it, which is no length; so where what follows a part has none, that
 * part is the name. Stops at a dot: the compiler's .cold and .part.0.
 */
static bool put_path(const char *p, const char *end, bool numbered, struct buf *out)
{
    while (p < end && isdigit((unsigned char)*p)) {
        size_t len;
        const char *part = read_number(p, &len);
        bool fits = len && len < (size_t)(end - part) && part[len] == '_' && part + len + 1 < end;
        if (!fits || (numbered && !isdigit((unsigned char)part[len + 1]))) {
            p = numbered ? part : end;
            break;
        }
        buf_put(out, part, len);
        buf_put_str(out, ".");
        p = part + len + 1;
    }
    p = skip_fuse(p);
    if (p >= end || !out->len_bytes || isdigit((unsigned char)*p))
        return false;
    buf_put(out, p, (size_t)(end - p));
    return true;
}

static bool cython(const char *symbol, struct buf *out, enum demangle_layer *layer)
{
    static const struct {
        const char *prefix;
        bool numbered;
        enum demangle_layer layer;
        const char *suffix;
    } kinds[] = {
        {"__pyx_pw_", true, DEMANGLE_WRAPPER, ""},          {"__pyx_pf_", true, DEMANGLE_PYTHON_FUNCTION, ""},
        {"__pyx_f_", false, DEMANGLE_C_FUNCTION, ""},       {"__pyx_gb_", true, DEMANGLE_NO_LAYER, ""},
        {"__pyx_getprop_", false, DEMANGLE_NO_LAYER, ""},   {"__pyx_setprop_", false, DEMANGLE_NO_LAYER, ""},
        {"__pyx_tp_new_", false, DEMANGLE_NO_LAYER, ".__new__"},
        {"__pyx_tp_dealloc_", false, DEMANGLE_NO_LAYER, ".__dealloc__"},
        {"__pyx_tp_traverse_", false, DEMANGLE_NO_LAYER, ".tp_traverse"},
        {"__pyx_tp_clear_", false, DEMANGLE_NO_LAYER, ".tp_clear"},
    };
    static const char special[] = "__pyx_specialmethod_";
    const char *p = skip_fuse(symbol), *end = p + strcspn(p, ".(");

    if (begins(p, special))
        p += sizeof special - 1;
    p = skip_fuse(p);
    buf_clear(out);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!begins(p, kinds[i].prefix))
            continue;
        *layer = kinds[i].layer;
        bool known = put_path(p + strlen(kinds[i].prefix), end, kinds[i].numbered, out);
        buf_put_str(out, kinds[i].suffix);
        return known;
    }
    return false;
}

/* A function of C++, or one of Cython's that was compiled as C++. */
static bool cplusplus(const char *symbol, struct buf *out, enum demangle_layer *layer)
{
    if (strlen(symbol) > CPLUSPLUS_MAX || is_bomb(symbol) || !ask_library(cplus_demangle_v3_callback, symbol, out))
        return false;
    if (out->len_bytes > 6 && !memcmp(out->data, "__pyx_", 6)) {
        char *name = strndup((const char *)out->data, out->len_bytes);
        struct buf path = {0};
        bool known = name && cython(name, &path, layer);
        if (known) {
            buf_clear(out);
            buf_put(out, path.data, path.len_bytes);
        } else {
            *layer = DEMANGLE_NO_LAYER;
        }
        out->bad |= !name || path.bad;
        buf_deinit(&path);
        free(name);
    }
    shorten_if_long(out);
    return true;
}

/* ---- mypyc ---- */

/* CPyDef_MODULE___NAME, where ___ is a dot, and ___3_ what was ___; CPyPy_ converts the arguments for it. */
static bool mypyc(const char *symbol, struct buf *out, enum demangle_layer *layer)
{
    static const char helper[] = "_gen.__mypyc_generator_helper__";
    const char *p = strchr(symbol, '_') + 1, *end = p + strcspn(p, ".");

    *layer = begins(symbol, "CPyPy_") ? DEMANGLE_WRAPPER : DEMANGLE_C_FUNCTION;
    buf_clear(out);
    while (p < end) {
        if (!begins(p, "___")) {
            buf_put(out, p++, 1);
        } else if (begins(p, "___3_")) {
            buf_put_str(out, "___");
            p += 5;
        } else {
            buf_put_str(out, ".");
            p += 3;
        }
    }
    size_t at = find_last(out, helper); /* the body of a generator */
    if (at && at + sizeof helper - 1 == out->len_bytes)
        out->len_bytes = at;
    return out->len_bytes;
}

/* The first row that knows the symbol names it. Rust's older names look like those of C++. */
static const struct {
    const char *prefix;
    bool (*name)(const char *symbol, struct buf *out, enum demangle_layer *layer);
} demanglers[] = {
    {"__pyx_", cython}, {"CPyDef_", mypyc}, {"CPyPy_", mypyc}, {"_R", rust}, {"_ZN", rust}, {"_", cplusplus},
};

bool demangle(const char *symbol, struct buf *out, enum demangle_layer *layer)
{
    *layer = DEMANGLE_NO_LAYER;
    if (strlen(symbol) > MANGLED_MAX)
        return false;
    for (size_t i = 0; i < sizeof demanglers / sizeof *demanglers; i++) {
        if (begins(symbol, demanglers[i].prefix) && demanglers[i].name(symbol, out, layer))
            return true;
        *layer = DEMANGLE_NO_LAYER;
    }
    return false;
}
