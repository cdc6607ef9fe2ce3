/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/stack/interpreter_names.h"

#include <stdlib.h>
#include <string.h>

/*
 * Functions of CPython 2.7 to 3.15 that pass a call on: vectorcall shims, adapters between calling
 * conventions, the way from "run this file" to the eval loop. Sorted for bsearch. Not in it, on
 * purpose: the eval loop itself, as only the join says which activation a run replaces, and anything
 * that does work of its own, such as slot_tp_call, type_call, map_next or list_sort_impl.
 *
 * A tail-calling interpreter (3.14+) has a function for each instruction: the loop's own activation stays below
 * the one that runs, so next to it these are a part of it.
 */
static const char *const call_machinery[] = {
    "PyCFunction_Call",
    "PyEval_CallObjectWithKeywords",
    "PyEval_EvalCode",
    "PyEval_EvalCodeEx",
    "PyEval_EvalFrame",
    "PyEval_EvalFrameEx",
    "PyFunction_Vectorcall",
    "PyObject_Call",
    "PyObject_CallFunction",
    "PyObject_CallFunctionObjArgs",
    "PyObject_CallMethod",
    "PyObject_CallMethodObjArgs",
    "PyObject_CallNoArgs",
    "PyObject_CallObject",
    "PyObject_CallOneArg",
    "PyObject_Vectorcall",
    "PyObject_VectorcallDict",
    "PyObject_VectorcallMethod",
    "PyRun_AnyFileExFlags",
    "PyRun_FileExFlags",
    "PyRun_SimpleFileExFlags",
    "PyRun_StringFlags",
    "PyVectorcall_Call",
    "_PyCFunction_FastCallDict",
    "_PyCFunction_FastCallKeywords",
    "_PyCFunction_Vectorcall",
    "_PyEval_EvalCode",
    "_PyEval_EvalCodeWithName",
    "_PyEval_EvalFrame",
    "_PyEval_Vector",
    "_PyFunction_FastCall",
    "_PyFunction_FastCallDict",
    "_PyFunction_FastCallKeywords",
    "_PyFunction_Vectorcall",
    "_PyMethodDef_RawFastCallDict",
    "_PyMethodDef_RawFastCallKeywords",
    "_PyMethodDescr_FastCallKeywords",
    "_PyMethodDescr_Vectorcall",
    "_PyObject_Call",
    "_PyObject_CallFunctionVa",
    "_PyObject_CallFunction_SizeT",
    "_PyObject_CallMethod",
    "_PyObject_CallMethodIdObjArgs",
    "_PyObject_CallNoArgs",
    "_PyObject_CallNoArgsTstate",
    "_PyObject_Call_Prepend",
    "_PyObject_FastCall",
    "_PyObject_FastCallDict",
    "_PyObject_FastCallDictTstate",
    "_PyObject_FastCallKeywords",
    "_PyObject_FastCallTstate",
    "_PyObject_MakeTpCall",
    "_PyObject_Vectorcall",
    "_PyObject_VectorcallDictTstate",
    "_PyObject_VectorcallMethodId",
    "_PyObject_VectorcallTstate",
    "_PyRun_AnyFileObject",
    "_PyRun_SimpleFileObject",
    "_PyVectorcall_Call",
    "call_function",
    "call_method",
    "cfunction_call",
    "cfunction_call_varargs",
    "cfunction_vectorcall_FASTCALL",
    "cfunction_vectorcall_FASTCALL_KEYWORDS",
    "cfunction_vectorcall_FASTCALL_KEYWORDS_METHOD",
    "cfunction_vectorcall_NOARGS",
    "cfunction_vectorcall_O",
    "do_call",
    "do_call_core",
    "ext_do_call",
    "fast_function",
    "function_call",
    "function_code_fastcall",
    "instancemethod_call",
    "method_call",
    "method_vectorcall",
    "method_vectorcall_FASTCALL",
    "method_vectorcall_FASTCALL_KEYWORDS",
    "method_vectorcall_FASTCALL_KEYWORDS_METHOD",
    "method_vectorcall_NOARGS",
    "method_vectorcall_O",
    "method_vectorcall_VARARGS",
    "method_vectorcall_VARARGS_KEYWORDS",
    "methoddescr_call",
    "object_vacall",
    "py_trampoline_evaluator",
    "pymain_run_file",
    "pymain_run_file_obj",
    "pyrun_file",
    "pyrun_simple_file",
    "run_eval_code_obj",
    "run_mod",
    "trampoline_call",
    "vectorcall_method",
    "vectorcall_unbound",
};

static int compare_name(const void *key, const void *entry)
{
    return strcmp(key, *(const char *const *)entry);
}

static bool is_among(const char *function, const char *const *names, size_t count)
{
    char name[64];
    size_t len = strcspn(function, ".");

    if (!len || len >= sizeof name)
        return false;
    memcpy(name, function, len);
    name[len] = 0;
    return bsearch(name, names, count, sizeof *names, compare_name);
}

bool name_is_call_machinery(const char *function)
{
    static const char tail_call[] = "_TAIL_CALL_";

    return !strncmp(function, tail_call, sizeof tail_call - 1) ||
           is_among(function, call_machinery, sizeof call_machinery / sizeof *call_machinery);
}

bool name_clears_frame(const char *function)
{
    /* What the eval loop calls to clear a frame, and what remains of that where the compiler inlined some. Sorted. */
    static const char *const names[] = {
        "_PyEvalFrameClearAndPop", "_PyEval_FrameClearAndPop", "_PyFrame_ClearExceptCode",
        "_PyFrame_ClearLocals",    "clear_gen_frame",          "clear_thread_frame",
    };

    return is_among(function, names, sizeof names / sizeof *names);
}

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

enum merge_owner path_owner(const char *path)
{
    /* Debian's libc and its debug variant, glibc before 2.34, Alpine's names. */
    static const char *const c_library[] = {"libc.so", "libc-2.", "libc.musl-", "libpthread.so", "libpthread-2.",
                                            "ld-linux", "ld-2.", "ld-musl-", "ld.so"};
    static const char python[] = "python", library[] = "libpython";
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    /* A program such as python3.12-dbg, no module such as python.so, and no program such as pythonista. */
    if (begins(name, python) && strchr("-.0123456789", name[strlen(python)]) && !strstr(name, ".so"))
        return MERGE_OWNER_INTERPRETER;
    if (begins(name, library) && (name[strlen(library)] == '2' || name[strlen(library)] == '3') && strstr(name, ".so"))
        return MERGE_OWNER_INTERPRETER;
    for (size_t i = 0; i < sizeof c_library / sizeof *c_library; i++) {
        if (begins(name, c_library[i]))
            return MERGE_OWNER_C_LIBRARY;
    }
    return MERGE_OWNER_OTHER;
}

bool path_is_linker(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    return begins(name, "ld-linux") || begins(name, "ld-2.") || begins(name, "ld.so");
}

bool function_is_of_program(const char *function, const char *file)
{
    static const char *const folders[] = {"Include", "Modules", "Objects", "Parser", "Programs", "Python"};

    if (!*file)
        return strpbrk(function, "(:<"); /* C++ and Rust */
    for (const char *slash; (slash = strchr(file, '/')); file = slash + 1) {
        for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
            if (strlen(folders[i]) == (size_t)(slash - file) && begins(file, folders[i]))
                return false;
        }
    }
    return *function;
}

bool name_is_call_helper(const char *function)
{
    static const char *const helpers[] = {"PyObject_Call", "_PyObject_Call", "PyObject_FastCall", "PyFunction_FastCall",
                                          "PyCFunction_FastCall", "PyVectorcall_FastCall", "CallUnboundCMethod",
                                          "_CallUnboundCMethod", "CallCFunction", "CyFunction_Call",
                                          "CyFunction_Vectorcall", "Coroutine_Send", "Generator_Next"};
    static const char cython[] = "__Pyx_";

    if (!begins(function, cython))
        return false;
    for (size_t i = 0; i < sizeof helpers / sizeof *helpers; i++) {
        if (begins(function + sizeof cython - 1, helpers[i]))
            return true;
    }
    return false;
}

bool name_is_of_api(const char *function)
{
    return begins(function, "Py") || begins(function, "_Py");
}

bool name_is_of_header(const char *function)
{
    return begins(function, "Py_") || begins(function, "_Py");
}

bool name_serves_caller(const char *function)
{
    return begins(function, "__tls_get_addr") || !strcmp(function, "_dl_tlsdesc_dynamic");
}
