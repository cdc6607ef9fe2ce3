/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the page into the program as it is. The Makefile says where it lies, and builds it first. */
#include "formats/emit/html/assets.h"

__asm__(".pushsection .rodata\n"
        ".globl html_page\n"
        "html_page:\n"
        ".incbin \"" HTML_PAGE "\"\n"
        ".byte 0\n"
        ".popsection\n");
