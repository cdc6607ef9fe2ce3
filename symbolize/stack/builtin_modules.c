/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/stack/builtin_modules.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/*
 * A row is a module; lists are separated by spaces. `files` are its sources in CPython 2.7 to 3.15, without folders; the
 * wrappers that Argument Clinic writes (clinic/NAME.c.h) only pass a call on. `prefixes` are for interpreters with symbols
 * but no debug information: what names of the module's functions begin with and names of others do not. What begins with
 * one of `not` is no work of the module, whatever its file.
 *
 * No prefix begins like the C API (Py, _Py). A stripped interpreter has those names and no others: PyGC_Collect alone
 * would show, and not the functions that a collection spends its time in.
 */
static const struct builtin_module {
    const char *module, *files, *prefixes, *not;
} builtin_modules[] = {
    {"array", "arraymodule.c", "array_", ""},
    {"binascii", "binascii.c", "binascii_", ""},
    {"bisect", "_bisectmodule.c", "_bisect_ internal_bisect", ""},
    {"bz2", "_bz2module.c", "_bz2_ BZ2", ""},
    {"csv", "_csv.c", "_csv_ csv_ Reader_ parse_process_char", ""},
    {"datetime", "_datetimemodule.c", "datetime_ delta_ timezone_ _datetime_", ""},
    {"decimal",
     "_decimal.c basearith.c convolute.c crt.c difradix2.c fnt.c fourstep.c mpalloc.c mpdecimal.c numbertheory.c "
     "sixstep.c transpose.c",
     "mpd_ _mpd_ dec_", ""},
    {"elementtree", "_elementtree.c pyexpat.c xmlparse.c xmltok.c xmltok_impl.c xmlrole.c",
     "_elementtree_ pyexpat_ XML_ treebuilder_ expat_", ""},
    {"fcntl", "fcntlmodule.c", "fcntl_", ""},
    /* The allocation of objects, in the same files, is every program's. */
    {"gc", "gcmodule.c gc.c gc_gil.c gc_free_threading.c",
     "gc_collect gc_mark gc_visit collect deduce_unreachable subtract_refs update_refs "
     "visit_decref visit_reachable move_unreachable delete_garbage untrack_ handle_weakrefs handle_legacy",
     "PyObject_ _PyObject_ PyUnstable_ PyVarObject_ gc_alloc gc_link _PyObject"},
    /* Waiting for it; a thread that waits does so below a Python function. */
    {"GIL", "ceval_gil.c ceval_gil.h", "take_gil drop_gil",
     "_Py_HandlePending _PyEval_ PyEval_ eval_ handle_ make_pending update_eval"},
    {"hashlib",
     "_hashopenssl.c md5module.c sha1module.c sha256module.c sha2module.c sha3module.c sha512module.c sha512.c sha256.c "
     "blake2module.c blake2b_impl.c blake2s_impl.c blake2b-ref.c blake2s-ref.c Hacl_Hash_MD5.c Hacl_Hash_SHA1.c "
     "Hacl_Hash_SHA2.c Hacl_Hash_SHA3.c Hacl_Streaming_SHA2.c Hacl_Hash_Blake2b.c Hacl_Hash_Blake2s.c hmacmodule.c",
     "_hashlib_ EVP_ _md5_ _sha1_ _sha2_ _sha256_ _sha512_ _sha3_ _blake2_ md5_ sha1_ sha256_ sha512_ blake2 "
     "python_hashlib_ Hacl_ MD5Type_ SHA1Type_ SHA256Type_ SHA512Type_ py_sha3_",
     ""},
    {"heapq", "_heapqmodule.c", "_heapq_ heappush_ heappop_ siftup siftdown heapify_", ""},
    {"io", "_iomodule.c bufferedio.c bytesio.c fileio.c iobase.c stringio.c textio.c",
     "_io_ _iobase_ iobase_ bufferedreader_ bufferedwriter_ _bufferedreader_ _bufferedwriter_ buffered_ bytesio_ fileio_ "
     "stringio_ textiowrapper_ _textiowrapper_",
     ""},
    {"json", "_json.c",
     "_json_ scanner_ scan_once_ scanstring_ encoder_ ascii_escape_ escape_unicode py_encode_basestring py_scanstring "
     "_parse_object_ _parse_array_ _match_number_",
     ""},
    {"lzma", "_lzmamodule.c", "_lzma_", ""},
    {"marshal", "marshal.c", "marshal_ r_object w_object", ""},
    {"math", "mathmodule.c cmathmodule.c _math.c", "math_ cmath_ m_log m_atan", ""},
    {"mmap", "mmapmodule.c", "mmap_", ""},
    {"os", "posixmodule.c", "os_ posix_ DirEntry_ ScandirIterator_ _posix_",
     "PyOS_ _PyOS_ path_converter fildes_converter"},
    {"pickle", "_pickle.c cPickle.c",
     "_pickle_ _Pickler_ _Unpickler_ Pickler_ Unpickler_ save save_ batch_list batch_dict load_build load_reduce", ""},
    {"random", "_randommodule.c", "_random_ random_ genrand_", ""},
    {"resource", "resource.c", "resource_", ""},
    {"select", "selectmodule.c", "select_ poll_ pyepoll_", ""},
    {"socket", "socketmodule.c", "sock_ socket_ _socket_", ""},
    {"sqlite3", "blob.c connection.c cursor.c statement.c row.c", "pysqlite_ _pysqlite_", ""},
    {"sre", "_sre.c sre.c sre_lib.h sre_match.c", "_sre_ sre_ pattern_sub pattern_find pattern_split state_init", ""},
    {"ssl", "_ssl.c", "_ssl_", ""},
    {"struct", "_struct.c structmodule.c", "_struct_ Struct_ s_pack s_unpack unpackiter_ prepare_s", ""},
    /* Not how a thread begins. */
    {"threading", "_threadmodule.c threadmodule.c lock.c parking_lot.c",
     "lock_ rlock_ acquire_timed thread_PyThread_", "thread_run t_bootstrap"},
    {"time", "timemodule.c", "time_ pysleep floatsleep floattime", ""},
    {"unicodedata", "unicodedata.c", "unicodedata_", ""},
    {"zlib", "zlibmodule.c", "zlib_", ""},
};

/* One of the words is `text`, or, with `prefix`, begins it. */
static bool is_among(const char *words, const char *text, bool prefix)
{
    size_t text_len = strlen(text);

    if (!prefix && !strstr(words, text)) /* this looks at many bytes at a time; files are in none of the lists, mostly */
        return false;
    for (size_t len; *words; words += len + strspn(words + len, " ")) {
        len = strcspn(words, " ");
        if ((prefix ? len <= text_len : len == text_len) && !memcmp(words, text, len))
            return true;
    }
    return false;
}

const char *builtin_module_of(const char *function, const char *file)
{
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;

    if (!*function)
        return NULL;
    for (size_t i = 0; i < sizeof builtin_modules / sizeof *builtin_modules; i++) {
        const struct builtin_module *m = &builtin_modules[i];
        if (*name ? is_among(m->files, name, false) : is_among(m->prefixes, function, true))
            return is_among(m->not, function, true) ? NULL : m->module;
    }
    return NULL;
}
