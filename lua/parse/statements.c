/* Statements of Lua text: where they end, and what they declare. */
#include "statements.h"

#include <string.h>

static void read_names(lumat_reader *r, lumat_declaration *out)
{
    for (out->count = 0;;) {
        int i = out->count++;
        out->list[i].name = r->word;
        out->list[i].constant = out->list[i].closes = 0;
        lumat_next_word(r);
        if (lumat_at(r, "<")) {
            lumat_next_word(r);
            out->list[i].closes =
                r->word.length == 5 && memcmp(r->word.start, "close", 5) == 0;
            out->list[i].constant = !out->list[i].closes;
            lumat_next_word(r);
            lumat_next_word(r);
        }
        if (!lumat_at(r, ",") || out->count == LUMAT_MOST_NAMES)
            return;
        lumat_next_word(r);
    }
}

void lumat_read_declaration(lumat_reader *r, lumat_declaration *out)
{
    lumat_next_word(r);
    if (lumat_at(r, "function")) {
        lumat_reader at_name = *r;
        lumat_next_word(&at_name);
        read_names(&at_name, out);
        lumat_skip_operand(r);
        return;
    }
    read_names(r, out);
    if (lumat_at(r, "=")) {
        lumat_next_word(r);
        lumat_skip_expressions(r);
    }
}

/* From the keyword that opens a block to behind the one that ends it. A loop's
 * head may hold functions of its own. */
static void skip_block(lumat_reader *r)
{
    int is_loop = lumat_word_among(&r->word, "for while"), depth = 0;
    int repeats = lumat_at(r, "repeat");
    while (is_loop && !lumat_at(r, "do") && r->word.kind != LUMAT_WORD_END)
        lumat_skip_operand(r);
    do {
        depth += lumat_block_step(&r->word);
        lumat_next_word(r);
    } while (depth > 0 && r->word.kind != LUMAT_WORD_END);
    if (repeats)
        lumat_skip_expressions(r);
}

/* A call, or an assignment. */
static void skip_plain(lumat_reader *r)
{
    lumat_skip_expressions(r);
    if (lumat_at(r, "=")) {
        lumat_next_word(r);
        lumat_skip_expressions(r);
    }
}

/* "goto name" and "::name::" */
static void skip_label(lumat_reader *r)
{
    int is_label = lumat_at(r, "::");
    lumat_next_word(r);
    if (r->word.kind == LUMAT_WORD_NAME)
        lumat_next_word(r);
    if (is_label && lumat_at(r, "::"))
        lumat_next_word(r);
}

/* Behind `return` there are no more. */
void lumat_skip_statement(lumat_reader *r)
{
    int is_word = r->word.kind == LUMAT_WORD_KEYWORD;
    lumat_declaration names;
    if (lumat_at(r, "local")) {
        lumat_read_declaration(r, &names);
    } else if (is_word &&
               lumat_word_among(&r->word, "do for while if repeat function")) {
        skip_block(r);
    } else if (lumat_at(r, "return")) {
        while (r->word.kind != LUMAT_WORD_END)
            lumat_next_word(r);
    } else if (lumat_at(r, "goto") || lumat_at(r, "::")) {
        skip_label(r);
    } else if (is_word || lumat_at(r, ";")) {
        lumat_next_word(r);
    } else {
        skip_plain(r);
    }
}
