/* SPDX-License-Identifier: Apache-2.0 */
/* Names as their authors wrote them, and the functions that one call passes through. */
#include "tests/unit/test.h"

#include <link.h>
#include <stdio.h>
#include <string.h>

#include "symbolize/binary/demangle.h"
#include "tests/unit/scene_fixture.h"

struct name {
    const char *symbol, *shown; /* NULL: as it is */
    enum demangle_layer layer;
};

static void check_names(const struct name *names, size_t count)
{
    struct buf out = {0};

    for (size_t i = 0; i < count; i++) {
        enum demangle_layer layer;
        bool known = demangle(names[i].symbol, &out, &layer);
        const char *shown = known ? buf_cstr(&out) : NULL;
        if (known != !!names[i].shown || (known && strcmp(shown, names[i].shown)) || layer != names[i].layer)
            fail_msg("%s: %s, not %s (layer %d)", names[i].symbol, known ? shown : "as it is",
                     names[i].shown ? names[i].shown : "as it is", (int)layer);
    }
    buf_deinit(&out);
}
#define CHECK_NAMES(...) check_names((const struct name[]){__VA_ARGS__}, sizeof((const struct name[]){__VA_ARGS__}) / sizeof(struct name))

TEST(cython)
{
    CHECK_NAMES(
        {"__pyx_pw_6uvloop_4loop_4Loop_45run_until_complete", "uvloop.loop.Loop.run_until_complete", DEMANGLE_WRAPPER},
        {"__pyx_pf_6uvloop_4loop_4Loop_44run_until_complete", "uvloop.loop.Loop.run_until_complete",
         DEMANGLE_PYTHON_FUNCTION},
        {"__pyx_f_6uvloop_4loop_4Loop_run_until_complete", "uvloop.loop.Loop.run_until_complete", DEMANGLE_C_FUNCTION},
        {"__pyx_f_6uvloop_4loop_4Loop__run.part.0.cold", "uvloop.loop.Loop._run", DEMANGLE_C_FUNCTION},
        /* A number before a name is no length, though it may look like one. */
        {"__pyx_pw_3mod_3get_value", "mod.get_value", DEMANGLE_WRAPPER},
        {"__pyx_pw_3mod_3get_2value", "mod.get.value", DEMANGLE_WRAPPER},
        {"__pyx_pw_5scipy_7special_14cython_special_1129_sici_pywrap", "scipy.special.cython_special._sici_pywrap",
         DEMANGLE_WRAPPER},
        {"__pyx_pw_9_ni_label_1__init__", "_ni_label.__init__", DEMANGLE_WRAPPER},
        {"__pyx_gb_6uvloop_4loop_4Loop_91generator9", "uvloop.loop.Loop.generator9", DEMANGLE_NO_LAYER},
        {"__pyx_getprop_5numpy_6random_6_pcg64_5PCG64_state", "numpy.random._pcg64.PCG64.state", DEMANGLE_NO_LAYER},
        {"__pyx_tp_new_6gevent_7channel_Channel", "gevent.channel.Channel.__new__", DEMANGLE_NO_LAYER},
        /* Fused types, wherever their mark stands, and Cython's C++. */
        {"__pyx_fuse_0_1__pyx_pw_7sklearn_5_loss_4Loss_9loss", "sklearn._loss.Loss.loss", DEMANGLE_WRAPPER},
        {"__pyx_pw_3mod_1__pyx_fuse_0f", "mod.f", DEMANGLE_WRAPPER},
        {"__pyx_specialmethod___pyx_pw_3mod_1C_1__next__", "mod.C.__next__", DEMANGLE_WRAPPER},
        {"_ZL30__pyx_fuse_0__pyx_pw_3mod_1fooP7_objectS0_", "mod.foo", DEMANGLE_WRAPPER},
        /* What is not of that form. */
        {"__pyx_pw_", NULL, DEMANGLE_NO_LAYER}, {"__pyx_pw_6uvloop", NULL, DEMANGLE_NO_LAYER},
        {"__pyx_pw_99999999999999999999_f", NULL, DEMANGLE_NO_LAYER}, {"__pyx_f_4loop_", NULL, DEMANGLE_NO_LAYER},
        {"__pyx_f_0_f", NULL, DEMANGLE_NO_LAYER}, {"__pyx_f_9loop_f", NULL, DEMANGLE_NO_LAYER},
        {"__pyx_fuse_", NULL, DEMANGLE_NO_LAYER}, {"__pyx_pymod_exec_loop", NULL, DEMANGLE_NO_LAYER},
        {"__Pyx_PyObject_Call", NULL, DEMANGLE_NO_LAYER});
}

TEST(mypyc)
{
    CHECK_NAMES(
        {"CPyDef_black___format_file_in_place", "black.format_file_in_place", DEMANGLE_C_FUNCTION},
        {"CPyPy_black___format_file_in_place", "black.format_file_in_place", DEMANGLE_WRAPPER},
        {"CPyDef_black____format_str_once", "black._format_str_once", DEMANGLE_C_FUNCTION},
        {"CPyDef_driver___TokenProxy_____next__", "driver.TokenProxy.__next__", DEMANGLE_C_FUNCTION},
        {"CPyDef_mod___a___3_b", "mod.a___b", DEMANGLE_C_FUNCTION},
        {"CPyDef_linegen___transform_line_gen_____mypyc_generator_helper__", "linegen.transform_line",
         DEMANGLE_C_FUNCTION},
        {"CPyDef_black___f.cold", "black.f", DEMANGLE_C_FUNCTION},
        {"CPyDef_", NULL, DEMANGLE_NO_LAYER}, {"CPyStr_GetItem", NULL, DEMANGLE_NO_LAYER});
}

TEST(rust)
{
    CHECK_NAMES(
        {"_RNvCs1234_7mycrate3foo", "mycrate::foo", DEMANGLE_NO_LAYER},
        {"_ZN7mycrate3foo17h0123456789abcdefE", "mycrate::foo", DEMANGLE_NO_LAYER},
        /* PyO3's functions that convert arguments, in both manglings. */
        {"_ZN7mycrate1_38_$LT$impl$u20$mycrate..data..Table$GT$20__pymethod_collect__17h0123456789abcdefE",
         "mycrate::data::Table::collect", DEMANGLE_WRAPPER},
        {"_ZN7mycrate1_38_$LT$impl$u20$mycrate..data..Table$GT$20__pymethod___len____17h0123456789abcdefE",
         "mycrate::data::Table::__len__", DEMANGLE_WRAPPER},
        {"_ZN7mycrate19__pyfunction_enable17h0123456789abcdefE", "mycrate::enable", DEMANGLE_WRAPPER},
        {"_RNvMCs1234_7mycrateNtB2_5Table20___pymethod_collect__", "mycrate::Table::collect", DEMANGLE_WRAPPER},
        {"_ZN7mycrate12__pymethod_b17h0123456789abcdefE", "mycrate::__pymethod_b", DEMANGLE_NO_LAYER},
        {"_R", NULL, DEMANGLE_NO_LAYER}, {"_RNvCs1234_7mycrate3fo", NULL, DEMANGLE_NO_LAYER});
}

TEST(cplusplus)
{
    CHECK_NAMES(
        {"_ZN4demo4funcEi", "demo::func(int)", DEMANGLE_NO_LAYER},
        {"_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back(int const&)",
         DEMANGLE_NO_LAYER},
        /* Long: without arguments, but with what the name begins with, with operators and with lambdas. */
        {"_ZNSt6vectorINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESaIS5_EE9push_backERKS5_",
         "std::vector<...>::push_back(...)", DEMANGLE_NO_LAYER},
        {"_ZlsI1AN12_GLOBAL__N_14longENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEERT_S8_T0_T1_",
         "A& operator<< <...>(...)", DEMANGLE_NO_LAYER},
        {"_ZN12_GLOBAL__N_11fENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES5_", "(anonymous namespace)::f(...)",
         DEMANGLE_NO_LAYER},
        {"_ZZN8pybind1112cpp_function10initializeIRPFvbEvJbEJNS_4nameENS_5scopeENS_7siblingEEEEvOT_PFT0_DpT1_EDpRKT2_ENUlRN"
         "S_6detail13function_callEE1_4_FUNESL_",
         "pybind11::cpp_function::initialize<...>(...)::{lambda(...)#3}::_FUN(...)", DEMANGLE_NO_LAYER},
        {"main", NULL, DEMANGLE_NO_LAYER}, {"_start", NULL, DEMANGLE_NO_LAYER}, {"", NULL, DEMANGLE_NO_LAYER},
        {"_Z", NULL, DEMANGLE_NO_LAYER}, {"_PyEval_EvalFrameDefault", NULL, DEMANGLE_NO_LAYER});
}

/* Each type is a pair of the one before: a short symbol of which libiberty would make gigabytes. */
TEST(bombs)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char symbol[1024] = "_Z1f1BIiiE";
    struct buf out = {0};
    enum demangle_layer layer;

    for (int i = 0; i < 34; i++) {
        char type[32];
        snprintf(type, sizeof type, "S_IS%c_S%c_E", digits[i], digits[i]);
        strcat(symbol, type);
    }
    assert_false(demangle(symbol, &out, &layer));
    assert_true(out.len_bytes <= 1 << 16);
    /* The same in a pack expansion, which libiberty would search before it writes anything: it must not begin. */
    for (int in_constructor = 0; in_constructor < 2; in_constructor++) {
        size_t len = (size_t)snprintf(symbol, sizeof symbol, "%s_Z1fDp", in_constructor ? "_GLOBAL__I_" : "");
        memset(symbol + len, 'M', 36);
        len += 36;
        len += (size_t)snprintf(symbol + len, sizeof symbol - len, "1aS_");
        for (int i = 0; i < 35; i++)
            len += (size_t)snprintf(symbol + len, sizeof symbol - len, "S%c_", digits[i]);
        assert_false(demangle(symbol, &out, &layer));
    }
    /* In Rust, by backward references; the first pair is of two identifiers beyond ASCII, which libiberty decodes in the heap. */
    static const char rust[] =
        "_RINvC1a1fTNvC1au8gdel_5qaNvC1au8gdel_5qaETB7_B7_ETBD_BD_ETBL_BL_ETBT_BT_ETB11_B11_ETB19_B19_ETB1j_B"
        "1j_ETB1t_B1t_ETB1D_B1D_ETB1N_B1N_ETB1X_B1X_ETB27_B27_ETB2h_B2h_ETB2r_B2r_ETB2B_B2B_ETB2L_B2L_ETB2V_B"
        "2V_ETB35_B35_ETB3f_B3f_ETB3p_B3p_ETB3z_B3z_ETB3J_B3J_ETB3T_B3T_ETB43_B43_ETB4d_B4d_ETB4n_B4n_ETB4x_B"
        "4x_ETB4H_B4H_ETB4R_B4R_EE";
    assert_false(demangle(rust, &out, &layer));
    /* Deep, long, and cut anywhere: whatever comes of it is as long as that. */
    char *deep = calloc(1, 1 << 20);
    memset(deep, 'P', 16000);
    memcpy(deep, "_Z1f", 4);
    demangle(deep, &out, &layer);
    memset(deep, '<', 1000000);
    memcpy(deep, "__pyx_pw_", 9);
    assert_false(demangle(deep, &out, &layer));
    free(deep);
    static const char *const whole[] = {
        "_ZN8pybind1112cpp_function10initializeIRFivEiJEJNS_4nameENS_5scopeENS_7siblingEEEEvOT_PFT0_DpT1_EDpRKT2_",
        "_ZN7mycrate1_38_$LT$impl$u20$mycrate..data..Table$GT$20__pymethod_collect__17h0123456789abcdefE",
        "__pyx_fuse_0_1__pyx_pw_7sklearn_5_loss_4Loss_9loss", "CPyDef_linegen___f_gen_____mypyc_generator_helper__",
    };
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        for (size_t len = 0; len <= strlen(whole[i]); len++) {
            char *cut = strndup(whole[i], len); /* of its very length, so that the sanitizer sees a read behind it */
            demangle(cut, &out, &layer);
            free(cut);
        }
    }
    assert_false(out.bad);
    buf_deinit(&out);
}

/* ---- one call, one frame: functions of this very program ---- */

int __pyx_pw_3mod_1f(void);
int __pyx_pf_3mod_0f(void);
int __pyx_f_3mod_f(void);
__attribute__((noipa)) int __pyx_pw_3mod_1f(void)
{
    return 1;
}
__attribute__((noipa)) int __pyx_pf_3mod_0f(void)
{
    return 2;
}
__attribute__((noipa)) int __pyx_f_3mod_f(void)
{
    return 3;
}

/* The offset of a function in this program's file; the program is the first that is told. */
static int find_offset(struct dl_phdr_info *info, size_t size, void *data)
{
    uint64_t *at = data;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_LOAD && *at >= start && *at < start + p->p_memsz) {
            *at = *at - start + p->p_offset;
            break;
        }
    }
    return 1;
}

static uint32_t native_frame(struct scene *s, int (*function)(void))
{
    uint64_t at = (uint64_t)(uintptr_t)function;

    dl_iterate_phdr(find_offset, &at);
    LOAD(s, native_frame, .id = ++s->frames, .module = 1, .offset = at);
    return s->frames;
}

static void check_calls(struct scene *s, const char *shown, const uint32_t *native, uint32_t count)
{
    struct trace_tuple t = {.native_stack = stack(s, native, count), .native_end = LOSS_complete};

    assert_string_equal(functions(s, sample(s, 1, tuple(s, t), 1).stack), shown);
}
#define CHECK_CALLS(s, shown, ...)                                                                                     \
    check_calls(s, shown, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / 4)

TEST(one_call)
{
    for (int view = MERGE_HIDE_INTERPRETER; view <= MERGE_SHOW_ALL; view++) {
        const struct resolver_options options = {.interpreter = (enum merge_interpreter)view};
        struct scene s;
        setup(&s, &options);
        struct loader loader = {.scene = &s};
        event(&s);
        process(&s, 1, 100, "/usr/bin/python3");
        dl_iterate_phdr(tell_object, &loader);
        const uint32_t w = native_frame(&s, __pyx_pw_3mod_1f), p = native_frame(&s, __pyx_pf_3mod_0f),
                       c = native_frame(&s, __pyx_f_3mod_f);
        if (view != MERGE_HIDE_INTERPRETER) {
            CHECK_CALLS(&s, "mod.f;mod.f;mod.f", w, p, c);
        } else {
            CHECK_CALLS(&s, "mod.f", w, p, c);
            CHECK_CALLS(&s, "mod.f", w, c);
            CHECK_CALLS(&s, "mod.f", p, c);
            /* Recursion: each call has its frame, by whatever way it comes. */
            CHECK_CALLS(&s, "mod.f;mod.f", w, p, w, p);
            CHECK_CALLS(&s, "mod.f;mod.f;mod.f", w, c, c, c);
            CHECK_CALLS(&s, "mod.f;mod.f", p, p);
            CHECK_CALLS(&s, "mod.f;mod.f", c, w);
        }
        teardown(&s);
    }
}
