/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/firefox/strings.h"

#include "formats/emit/json.h"
#include "formats/emit/names.h"

void firefox_strings_deinit(struct firefox_strings *s)
{
    intern_deinit(&s->texts);
    buf_deinit(&s->scratch);
}

uint32_t firefox_string(struct firefox_strings *s, struct buf *text)
{
    const char *clean = buf_cstr(text);

    return text->bad ? FIREFOX_NONE : intern_id(&s->texts, clean, (uint32_t)strlen(clean) + 1, NULL);
}

uint32_t firefox_plain_string(struct firefox_strings *s, const char *name)
{
    buf_clear(&s->scratch);
    name_plain(name, &s->scratch);
    return firefox_string(s, &s->scratch);
}

struct error *firefox_strings_write(struct firefox_strings *s, FILE *out)
{
    fputc('[', out);
    for (uint32_t i = 0; i < s->texts.count; i++) {
        buf_clear(&s->scratch);
        json_put_foreign((const char *)intern_get(&s->texts, i)->data, &s->scratch);
        if (s->scratch.bad)
            return error_no_memory();
        fprintf(out, "%s%s", i ? ",\n" : "\n", buf_cstr(&s->scratch));
    }
    fputc(']', out);
    return NULL;
}
