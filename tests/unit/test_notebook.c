/* SPDX-License-Identifier: Apache-2.0 */
/* Names of code that are no files, and cells of notebooks, found by the hash that ipykernel names their code after. */
#include "tests/unit/test.h"

#include <string.h>

#include "formats/base/code_file.h"
#include "symbolize/source/notebook.h"

TEST(paths)
{
    static const char *const paths[] = {"/srv/app.py", "app.py", "<", "<x", "x>", "a/<b>", "cell ff043bb5 of ipython", "cell ff03ee7 of ipykernel", "cell FF03EE75 of ipykernel"};
    static const char *const none[] = {"", "<string>", "<frozen runpy>", "<dynamic-code>", "<ipython-input-3-0123456789ab>", "<>", "cell ff043bb5 of ipykernel"};

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        if (!code_file_is_path(paths[i]))
            fail_msg("%s", paths[i]);
    }
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        if (code_file_is_path(none[i]))
            fail_msg("%s", none[i]);
    }
}

/* Which names are of cells: as ipykernel 6 and 7 make them, whatever the folder of temporary files is. */
TEST(names_of_cells)
{
    static const struct {
        const char *path, *name; /* name NULL: it is none */
    } names[] = {
        {"/tmp/ipykernel_1829/4278467509.py", "cell ff043bb5 of ipykernel"},
        {"/var/tmp/user/ipykernel_7/0.py", "cell 00000000 of ipykernel"},
        {"/ipykernel_7/4294967295.py", "cell ffffffff of ipykernel"},
        {"/tmp/ipykernel_7/4294967296.py", NULL},
        {"/tmp/ipykernel_/1.py", NULL},
        {"/tmp/ipykernel_7/.py", NULL},
        {"/tmp/ipykernel_7/1.pyc", NULL},
        {"/tmp/ipykernel_7/x1.py", NULL},
        {"/tmp/ipykernel_7x/1.py", NULL},
        {"/tmp/my_ipykernel_7/1.py", NULL},
        {"ipykernel_7/1.py", NULL}, /* the folder of temporary files is absolute */
        {"1.py", NULL},
        {"/", NULL},
        {"", NULL},
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint32_t hash, again;
        struct buf text = {0};
        if (code_file_is_of_ipykernel(names[i].path, &hash) != (names[i].name != NULL))
            fail_msg("%s", names[i].path);
        if (!names[i].name)
            continue;
        code_file_put_cell(hash, &text);
        assert_string_equal(buf_cstr(&text), names[i].name);
        assert_true(code_file_is_cell(buf_cstr(&text), &again));
        assert_int_equal(hash, again);
        buf_deinit(&text);
    }
}

/* As murmur2_x86(text, 0xC70F6907) of ipykernel 7.4 says. */
TEST(hashes)
{
    static const struct {
        const char *text;
        uint32_t hash;
    } hashes[] = {
        {"", 3990065800}, {"a", 2167009006}, {"ab", 2805137849}, {"abc", 3350977461}, {"abcd", 804720481}, {"x = 1\n", 1602534638},
        {"print('h\xc3\xa4llo')", 1961699042}, {"def hot(n):\n    return sum(range(n))\n", 2130516960},
    };

    for (size_t i = 0; i < sizeof hashes / sizeof *hashes; i++)
        assert_int_equal(code_file_cell_hash(hashes[i].text, strlen(hashes[i].text)), hashes[i].hash);
}

static struct error *parse(struct notebooks *n, const char *json)
{
    struct buf text = {0};

    buf_put_str(&text, json);
    struct error *err = notebooks_parse(n, "work.ipynb", &text);
    buf_deinit(&text);
    return err;
}

static void expect(const struct notebooks *n, const char *ran, uint32_t number, const char *text)
{
    const struct notebook_cell *cell = notebooks_find(n, code_file_cell_hash(ran, strlen(ran)));

    if (!cell)
        fail_msg("no cell for '%s'", ran);
    else {
        assert_string_equal(cell->text, text);
        assert_int_equal(cell->len_bytes, strlen(text));
        assert_int_equal(cell->number, number);
    }
}

/* What outputs have does not matter: numbers that are no JSON, great ones, texts of many commas; nor how the file begins. */
TEST(outputs)
{
    struct notebooks n = {0};
    struct buf json = {0};

    buf_put_str(&json, "\xef\xbb\xbf{\"cells\": [{\"cell_type\": \"code\", \"source\": \"a = 'NaN'\", \"outputs\": "
                       "[NaN, -Infinity, {\"x\": Infinity}, 123456789012345678901234567890, \"\\u0000\\\"\", \"");
    for (int i = 0; i < NOTEBOOK_MAX_VALUES; i++)
        buf_put_str(&json, ",[");
    buf_put_str(&json, "\"]}]}");
    OK(notebooks_parse(&n, "work.ipynb", &json));
    expect(&n, "a = 'NaN'", 1, "a = 'NaN'");
    buf_deinit(&json);
    notebooks_deinit(&n);
}

TEST(cells)
{
    struct notebooks n = {0};

    OK(parse(&n, "{\"nbformat\": 4, \"cells\": ["
                 "{\"cell_type\": \"markdown\", \"source\": [\"text\"]},"
                 "{\"cell_type\": \"code\", \"source\": [\"a = 1\\n\", \"b = 2\"], \"outputs\": [{\"data\": 1}]},"
                 "{\"cell_type\": \"code\", \"source\": \"\\n  \\ndef f():\\n  pass\"},"
                 "{\"cell_type\": \"code\", \"source\": \"%%capture\\nx = 1\\n\"},"
                 "{\"cell_type\": \"code\", \"source\": \"  \\n\"},"
                 "{\"cell_type\": \"code\"}, {\"cell_type\": 3, \"source\": \"no\"}, 7, \"x\","
                 "{\"cell_type\": \"code\", \"source\": [\"one\", 2, null]}]}"));
    expect(&n, "a = 1\nb = 2", 1, "a = 1\nb = 2");
    expect(&n, "\n  \ndef f():\n  pass", 2, "def f():\n  pass"); /* its lines are numbered from `def` on */
    expect(&n, "%%capture\nx = 1\n", 3, "%%capture\nx = 1\n");
    expect(&n, "x = 1\n", 3, "x = 1\n");
    expect(&n, "  \n", 4, "  \n");
    expect(&n, "one", 6, "one");
    assert_null(notebooks_find(&n, code_file_cell_hash("text", 4)));
    notebooks_deinit(&n);
    OK(parse(&n, "{\"cells\": [{\"cell_type\": \"code\", \"source\": \"caf\u00e9 \u2615\"}]}")); /* low bytes e9 and 15 */
    assert_non_null(notebooks_find(&n, code_file_cell_hash("caf\xe9 \x15", 6)));
    expect(&n, "caf\xc3\xa9 \xe2\x98\x95", 1, "caf\xc3\xa9 \xe2\x98\x95");
    assert_null(notebooks_find(&n, code_file_cell_hash("no", 2)));
    notebooks_deinit(&n);
}

TEST(no_notebooks)
{
    static const char *const bad[][2] = {{"", "not a notebook: line"}, {"x", "not a notebook: line"}, {"[]", "it has no cells"},
                                         {"{\"cells\": 1}", "it has no cells"}, {"{\"worksheets\": []}", "nbformat 4"}};
    struct notebooks n = {0};
    struct error *err;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err = parse(&n, bad[i][0]);
        assert_non_null(strstr(error_text(err), bad[i][1]));
        error_destroy(err);
    }
    char *commas = malloc(NOTEBOOK_MAX_VALUES + 2);
    memset(commas, ',', NOTEBOOK_MAX_VALUES + 1);
    commas[NOTEBOOK_MAX_VALUES + 1] = 0;
    err = parse(&n, commas);
    assert_non_null(strstr(error_text(err), "clear its outputs"));
    error_destroy(err);
    free(commas);
    err = notebooks_add(&n, "/dev/zero");
    assert_non_null(strstr(error_text(err), "/dev/zero: cannot be read as a notebook"));
    error_destroy(err);
    assert_true(notebook_is("a.ipynb"));
    assert_false(notebook_is("a.ipynb/"));
    assert_false(notebook_is("ipynb"));
    assert_int_equal(n.cells.count, 0);
    notebooks_deinit(&n);
}
