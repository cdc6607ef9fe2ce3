/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page without its data: the markup, the style and the script of this folder in one text (page.sh puts it together),
 * which is part of the program.
 */
#ifndef FORMATS_EMIT_HTML_ASSETS_H
#define FORMATS_EMIT_HTML_ASSETS_H

/* A C string. The title and the data take the places of these, which come in this order. */
#define HTML_PLACE_TITLE "%title%"
#define HTML_PLACE_DATA "%data%\n"
extern const char html_page[];

#endif
