/* SPDX-License-Identifier: Apache-2.0 */
/* What CI runners obey in a log is written in another way, and nothing else is. */
#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/host/messages.h"
#include "formats/base/job_text.h"

/* In pieces of that many bytes. */
static void expect_in(enum job_text_syntax syntax, size_t piece, const char *text, const char *expected)
{
    struct job_text t = {.syntax = syntax};
    struct buf out = {0};
    size_t len = strlen(text);

    for (size_t i = 0; i < len; i += piece)
        job_text_put(&t, text + i, len - i < piece ? len - i : piece, &out);
    assert_string_equal(buf_cstr(&out), expected);
    buf_deinit(&out);
}

static void expect(enum job_text_syntax syntax, const char *text, const char *expected)
{
    expect_in(syntax, 1000, text, expected);
    expect_in(syntax, 3, text, expected);
    expect_in(syntax, 1, text, expected);
}

TEST(commands_are_broken)
{
    static const char *const pairs[][2] = {
        {"##vso[task.x]y", "##vso\\x5btask.x]y"},
        {"a ##[error]b ##[c", "a ##\\x5berror]b ##\\x5bc"},
        {"##teamcity[x", "##teamcity\\x5bx"},
        {"##VsO[ ##TEAMCITY[", "##VsO\\x5b ##TEAMCITY\\x5b"},
        {"###[x ##vs##vso[", "###\\x5bx ##vs##vso\\x5b"},
        {"::error::x", ":\\x3aerror::x"},
        {" \t ::x\n::y\r::z", " \t :\\x3ax\n:\\x3ay\r:\\x3az"},
        {":::", ":\\x3a:"},
        {"\x1b[1m::x", "\x1b[1m:\\x3ax"},
        {"\x1b[1;31m#\x1b[m#\x1b[0m[x", "\x1b[1;31m#\x1b[m#\x1b[0m\\x5bx"},
        {"\xe3\x80\x80::x", "\xe3\x80\x80:\\x3ax"},              /* an ideographic space */
        {"#\xef\xb8\x8f#vso\xef\xb8\x8f[", "#\xef\xb8\x8f#vso\xef\xb8\x8f\\x5b"}, /* a variation selector */
        {":\xcd\x8f:x", ":\xcd\x8f\\x3ax"},                       /* a joiner that is not seen */
    };

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        expect(JOB_TEXT_PLAIN, pairs[i][0], pairs[i][1]);
}

TEST(other_text_stays)
{
    static const char *const texts[] = {"", "a::b", "a ::b", "#[x", "## [x", "##vs[", "##vsox[", "##team[", "# #[", "##vso x[", ": :x",
                                        "std::vector<int>::at(unsigned long)", "#!/bin/sh\n# [x]\n##x[0]\n", ":x::", "x\n:y\n",
                                        "1::2", "##v##vso", "[##]"};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        expect(JOB_TEXT_PLAIN, texts[i], texts[i]);
    expect(JOB_TEXT_AS_IS, "##[x\n::y", "##[x\n::y");
}

TEST(each_syntax_in_its_way)
{
    expect(JOB_TEXT_JSON, "\"##[x\"", "\"##\\u005bx\"");
    expect(JOB_TEXT_XML, "<a>##[\n::x</a>", "<a>##&#91;\n:&#58;x</a>");
    expect(JOB_TEXT_COMMANDS, "::error::##[x\n  ::y", "::error::##\\x5bx\n  ::y");
}

TEST(messages_are_broken)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    assert_non_null(out);
    job_text_print(out, "%s: %d\n::x\n", "##[", 7);
    messages_line(out, "%s", "::a ##vso[b\n::c");
    messages_write(out, "  %s\n%s\n", "::d", "::e");
    fclose(out);
    assert_string_equal(text, "##\\x5b: 7\n:\\x3ax\npycap: ::a ##vso\\x5bb\\x0a::c\n  :\\x3ad\n:\\x3ae\n");
    free(text);
}
