/* Statements of Lua text: where they end, what they declare and set. */
#include <string.h>
#include "parse.h"

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

/* --- names with a value --------------------------------------------------- */
/* What an entry's text says of names: which it gives a value, and where its
 * statements begin. */

int lumat_is_one_of(const lumat_word *t, const char *words)
{
    return t->kind != LUMAT_WORD_STRING && lumat_word_among(t, words);
}

int lumat_is_suffix(const lumat_word *t)
{
    return t->kind == LUMAT_WORD_STRING || lumat_is_one_of(t, "( { [ . :");
}

/* Does an expression that may go on end with the token? */
static int ends_operand(const lumat_word *t)
{
    return t->kind == LUMAT_WORD_NAME || t->kind == LUMAT_WORD_NUMBER ||
           t->kind == LUMAT_WORD_STRING ||
           lumat_is_one_of(t, ") ] } end nil true false ...");
}

/* A name right behind an operand, or a keyword that starts statements. */
int lumat_starts_statement(const lumat_word *before, const lumat_word *t)
{
    if (t->kind == LUMAT_WORD_NAME)
        return !before->start || ends_operand(before) ||
               lumat_is_one_of(before, "; do then else repeat ::");
    return lumat_is_one_of(
        t, "; local if while for repeat return do goto break ::");
}

lumat_word lumat_word_behind(const lumat_reader *r)
{
    lumat_reader copy = *r;
    lumat_next_word(&copy);
    return copy.word;
}

/* --- names the text gives a value ----------------------------------------- */

static void give(lua_State *L, int given, const lumat_word *name)
{
    lua_pushlstring(L, name->start, name->length);
    lua_pushboolean(L, 1);
    lua_rawset(L, given);
}

/* The names up to one of the words that ends them. */
static void give_until(lua_State *L, int given, lumat_reader r,
                       const char *ends)
{
    for (; r.word.kind != LUMAT_WORD_END && !lumat_is_one_of(&r.word, ends);
         lumat_next_word(&r))
        if (r.word.kind == LUMAT_WORD_NAME)
            give(L, given, &r.word);
}

/* "a <const>, b" behind local. */
static void give_list(lua_State *L, int given, lumat_reader r)
{
    while (r.word.kind == LUMAT_WORD_NAME) {
        give(L, given, &r.word);
        lumat_next_word(&r);
        for (int i = lumat_at(&r, "<") ? 3 : 0; i > 0; i--)
            lumat_next_word(&r);
        if (!lumat_at(&r, ","))
            return;
        lumat_next_word(&r);
    }
}

/* Past a.b[i], (…) and so on; whether it is a name alone. */
static int skip_target(lumat_reader *r)
{
    int alone = 1;
    lumat_next_word(r);
    for (; lumat_is_suffix(&r->word); alone = 0)
        if (lumat_is_one_of(&r->word, ". :"))
            lumat_next_word(r), lumat_next_word(r);
        else
            lumat_skip_operand(r);
    return alone;
}

/* The names among the targets of an assignment that may begin here. */
static void give_targets(lua_State *L, int given, lumat_reader r)
{
    lumat_reader again = r;
    for (; r.word.kind == LUMAT_WORD_NAME; lumat_next_word(&r)) {
        skip_target(&r);
        if (!lumat_at(&r, ","))
            break;
    }
    if (!lumat_at(&r, "="))
        return;
    for (; again.word.kind == LUMAT_WORD_NAME; lumat_next_word(&again)) {
        lumat_word name = again.word;
        if (skip_target(&again))
            give(L, given, &name);
        if (!lumat_at(&again, ","))
            return;
    }
}

int lumat_push_given(lua_State *L, lumat_reader r)
{
    lumat_word before = {0};
    int functions = 0;
    lua_newtable(L);
    int given = lua_gettop(L);
    for (; r.word.kind != LUMAT_WORD_END;
         before = r.word, lumat_next_word(&r)) {
        functions |= lumat_at(&r, "function");
        if (lumat_at(&r, "function"))
            give_until(L, given, r, ")");
        else if (lumat_at(&r, "for"))
            give_until(L, given, r, "= in");
        else if (lumat_word_is(&before, "local"))
            give_list(L, given, r);
        else if (r.word.kind == LUMAT_WORD_NAME &&
                 lumat_starts_statement(&before, &r.word))
            give_targets(L, given, r);
    }
    return functions;
}
