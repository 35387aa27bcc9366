/* Entries of several statements. Lua's reading wins, as in a file; beyond it,
 * at the top level a list of expressions is a statement, too, that begins a
 * row or stands behind a ';' and ends so. One that ends its row shows its
 * values when it is reached, for it becomes the argument of a call: all of the
 * entry is one chunk, with its locals, labels and lines. */
#include "parse.h"

#include "lauxlib.h"
#include <stdlib.h>
#include <string.h>

#define SHOWN "lumat_echo"
#define SILENT "lumat_echo_silent"

/* Registry: the last entry's text; the names that it sets silently. */
static const char text_key, silenced_key;

/* --- echoes --------------------------------------------------------------- */

static lumat_echo_fn *echo;

void lumat_set_echo(lumat_echo_fn *function)
{
    echo = function;
}

static int echo_shown(lua_State *L)
{
    if (echo)
        echo(L, 1);
    return 0;
}

static int echo_silent(lua_State *L)
{
    if (echo)
        echo(L, 0);
    return 0;
}

int lumat_push_echo(lua_State *L, const char *name)
{
    int is_shown = strcmp(name, SHOWN) == 0;
    if (is_shown || strcmp(name, SILENT) == 0)
        lua_pushcfunction(L, is_shown ? echo_shown : echo_silent);
    return is_shown || strcmp(name, SILENT) == 0;
}

int lumat_is_echo(const lumat_word *name)
{
    return name->kind == LUMAT_WORD_NAME &&
           lumat_word_among(name, SHOWN " " SILENT);
}

/* --- statements ----------------------------------------------------------- */

static int begins_expressions(const lumat_reader *r)
{
    const lumat_word *t = &r->word;
    lumat_word next = lumat_word_behind(r);
    if (lumat_at(r, "function"))
        return next.kind != LUMAT_WORD_NAME;
    return t->kind == LUMAT_WORD_NAME || t->kind == LUMAT_WORD_NUMBER ||
           t->kind == LUMAT_WORD_STRING ||
           lumat_is_one_of(t, "( { - # ~ ... not nil true false");
}

/* Past a statement. Returns whether it is a list of expressions: one of them
 * that is a call is a statement of Lua's as well. */
static int skip_statement(lumat_reader *r)
{
    if (!begins_expressions(r)) {
        lumat_skip_statement(r);
        return 0;
    }
    lumat_skip_expressions(r);
    if (!lumat_at(r, "="))
        return 1;
    lumat_next_word(r);
    lumat_skip_expressions(r);
    return 0;
}

static int is_apart(const char *behind, const lumat_word *next)
{
    return next->kind == LUMAT_WORD_END || lumat_word_is(next, ";") ||
           lumat_count_lines(behind, next->start) > 0;
}

static int compiles(lua_State *L, const char *lead, const char *text,
                    size_t length)
{
    lua_pushstring(L, lead);
    lua_pushlstring(L, text, length);
    lua_concat(L, 2);
    text = lua_tolstring(L, -1, &length);
    int status = luaL_loadbufferx(L, text, length, "=entry", "t");
    lua_pop(L, 2);
    return status == LUA_OK;
}

typedef struct writer {
    lua_State *L;
    luaL_Buffer text;
    const char *written; /* so far of the entry */
    const char *before;  /* where the statement before this one ended */
    int closes;          /* a variable is closed at the end of the entry */
    lumat_echoes result;
} writer;

static void write_up_to(writer *w, const char *end)
{
    luaL_addlstring(&w->text, w->written, (size_t)(end - w->written));
    w->written = end;
}

/* local x <close> = … */
static int has_close(lumat_word first, const char *end)
{
    lumat_reader r = lumat_read_words(first.start, (size_t)(end - first.start));
    if (!lumat_at(&r, "local"))
        return 0;
    for (lumat_word before = r.word; r.word.kind != LUMAT_WORD_END;
         before = r.word, lumat_next_word(&r))
        if (lumat_word_is(&before, "<") && lumat_is_one_of(&r.word, "close"))
            return 1;
    return 0;
}

/* At the token behind the expressions from `first` on. */
static void write_expressions(writer *w, const lumat_word *first,
                              lumat_reader *r)
{
    const char *end = r->behind;
    int is_silent = lumat_at(r, ";") || !is_apart(end, &r->word);
    w->before = lumat_at(r, ";") ? NULL : end;
    while (lumat_at(r, ";"))
        lumat_next_word(r);
    write_up_to(w, first->start);
    if (r->word.kind == LUMAT_WORD_END && !w->closes) {
        luaL_addstring(&w->text, "return ");
        write_up_to(w, end);
        w->written = r->behind; /* a comment may be open there */
        return;
    }
    luaL_addstring(&w->text, is_silent ? SILENT "(" : SHOWN "(");
    write_up_to(w, end);
    luaL_addstring(&w->text, ");"); /* a row behind it may begin with "(" */
}

/* Writes the next statement. Returns 0 where expressions do not stand apart
 * from what is around them: only a call may. */
static int write_statement(writer *w, lumat_reader *r)
{
    lumat_word first = r->word;
    const char *before = w->before;
    int begins_apart = !before || lumat_count_lines(before, first.start) > 0;
    int is_separator = lumat_at(r, ";"), has_values = skip_statement(r);
    size_t length = (size_t)(r->behind - first.start);
    w->before = is_separator ? NULL : r->behind;
    w->closes |= has_close(first, r->behind);
    if (!has_values)
        return 1;
    if ((!begins_apart || !is_apart(r->behind, &r->word)) &&
        !compiles(w->L, "", first.start, length)) {
        if (compiles(w->L, "return ", first.start, length))
            w->result.refused = first;
        return 0;
    }
    write_expressions(w, &first, r);
    return 1;
}

/* --- what is silent ------------------------------------------------------- */

/* Notes the names that the statement up to `end` gives a value. */
static void note_given(lua_State *L, int silenced, const lumat_word *first,
                       const char *end, int is_silent)
{
    lumat_push_given(
        L, lumat_read_words(first->start, (size_t)(end - first->start)));
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        if (is_silent)
            lua_pushboolean(L, 1);
        else
            lua_pushnil(L);
        lua_rawset(L, silenced);
    }
    lua_pop(L, 1);
}

void lumat_note_silenced(lua_State *L, const char *text, size_t length)
{
    lumat_reader r = lumat_read_words(text, length);
    lua_newtable(L);
    int silenced = lua_gettop(L);
    while (r.word.kind != LUMAT_WORD_END) {
        lumat_word first = r.word;
        skip_statement(&r);
        note_given(L, silenced, &first, r.behind, lumat_at(&r, ";"));
    }
    lua_rawsetp(L, LUA_REGISTRYINDEX, &silenced_key);
}

int lumat_is_silenced(lua_State *L, const char *name)
{
    int found = 0;
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &silenced_key) == LUA_TTABLE) {
        found = lua_getfield(L, -1, name) != LUA_TNIL;
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return found;
}

/* --- the entry ------------------------------------------------------------ */

static int ends_silently(const char *text, size_t length)
{
    lumat_reader r = lumat_read_words(text, length);
    int is_silent = 0;
    for (; r.word.kind != LUMAT_WORD_END; lumat_next_word(&r))
        is_silent = lumat_at(&r, ";");
    return is_silent;
}

lumat_echoes lumat_push_echoing(lua_State *L, const char *text, size_t length)
{
    writer w = {.L = L, .written = text};
    lumat_reader r = lumat_read_words(text, length);
    lua_pushlstring(L, text, length);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &text_key);
    luaL_buffinit(L, &w.text);
    w.result.shown = !ends_silently(text, length);
    while (r.word.kind != LUMAT_WORD_END)
        if (!write_statement(&w, &r))
            break;
    write_up_to(&w, r.end);
    luaL_pushresult(&w.text);
    return w.result;
}

/* --- rows that go on ------------------------------------------------------ */

enum { MOST_BYTES = 30 }; /* of a row that is quoted */

/* Where a row goes on with what would be complete without it. */
typedef struct seam {
    size_t before, behind; /* the end of the one, the start of the other */
    int line, next_line;
} seam;

static int ends_operand(const char *text, const lumat_token *t)
{
    const lumat_word word = {LUMAT_WORD_SIGN, text + t->start,
                             t->end - t->start, 0};
    return t->kind == LUMAT_NAME || t->kind == LUMAT_STRING ||
           t->kind == LUMAT_NUMBER ||
           lumat_word_among(&word, ") ] } end nil true false ...");
}

/* A number cannot be called, but something may be subtracted from it. */
static int goes_on(const char *text, const lumat_token *last,
                   const lumat_token *t)
{
    char c = text[t->start];
    int is_minus = c == '-' && t->end - t->start == 1;
    int is_suffix =
        t->kind == LUMAT_STRING ||
        (t->kind == LUMAT_SIGN && t->end - t->start == 1 && strchr("([{", c));
    int is_called = last->kind == LUMAT_NAME || text[last->start] == ')' ||
                    text[last->start] == ']' || text[last->start] == '}' ||
                    last->kind == LUMAT_STRING;
    return t->kind != LUMAT_COMMENT && ends_operand(text, last) &&
           (is_minus || (is_suffix && is_called));
}

/* The first seam between the lines, in no bracket. Returns 0 without one. */
static int find_seam(const char *text, size_t length, int from, int to,
                     seam *out)
{
    lumat_token token = {0}, last = {0};
    lumat_nesting nesting = {0};
    int line = 1, last_line = 1;
    while (lumat_next_token(text, length, &token)) {
        int is_word = token.kind != LUMAT_BLANK && token.kind != LUMAT_COMMENT;
        int in_bracket = strpbrk(lumat_innermost(&nesting), "([{") != NULL;
        if (is_word && line > last_line && line >= from && line <= to &&
            !in_bracket && goes_on(text, &last, &token)) {
            *out = (seam){last.end, token.start, last_line, line};
            return 1;
        }
        lumat_nest(&nesting, text, &token);
        line += lumat_count_lines(text + token.start, text + token.end);
        if (is_word)
            last = token, last_line = line;
    }
    return 0;
}

/* The lines of the statement of the top level that has the line. */
static void find_extent(const char *text, size_t length, int line, int *from,
                        int *to)
{
    lumat_reader r = lumat_read_words(text, length);
    *from = *to = line;
    while (r.word.kind != LUMAT_WORD_END && r.word.line <= line) {
        const char *start = r.word.start;
        *from = r.word.line;
        skip_statement(&r);
        *to = *from + lumat_count_lines(start, r.behind);
    }
}

/* In a function or loop Lua names the line of one of the two rows. */
static int find_seam_at(const char *text, size_t length, int line, seam *out)
{
    int from, to;
    lumat_reader r = lumat_read_words(text, length);
    find_extent(text, length, line, &from, &to);
    while (r.word.kind != LUMAT_WORD_END && r.word.line < from)
        skip_statement(&r);
    if (!begins_expressions(&r) && !lumat_at(&r, "local"))
        to = line + 1 < to ? line + 1 : to, from = line;
    return find_seam(text, length, from, to, out);
}

/* The line that a message begins with, "lumat:3: …", or 0. */
static int line_of(const char *message)
{
    static const char chunk[] = LUMAT_CHUNK ":";
    return strncmp(message, chunk, sizeof chunk - 1) == 0
               ? atoi(message + sizeof chunk - 1)
               : 0;
}

/* What of a row is quoted: its last bytes, or its first. */
static const char *push_tail(lua_State *L, const char *text, size_t end)
{
    size_t start = end;
    while (start > 0 && text[start - 1] != '\n')
        start--;
    start += strspn(text + start, " \t");
    if (end - start <= MOST_BYTES)
        return lua_pushlstring(L, text + start, end - start);
    for (start = end - MOST_BYTES; (text[start] & 0xC0) == 0x80; start++)
        continue;
    return lua_pushfstring(L, "...%s",
                           lua_pushlstring(L, text + start, end - start));
}

static const char *push_head(lua_State *L, const char *text, size_t start,
                             size_t length)
{
    const char *newline = memchr(text + start, '\n', length - start);
    size_t end = newline ? (size_t)(newline - text) : length;
    if (end - start <= MOST_BYTES)
        return lua_pushlstring(L, text + start, end - start);
    for (end = start + MOST_BYTES; (text[end] & 0xC0) == 0x80; end--)
        continue;
    return lua_pushfstring(L, "%s...",
                           lua_pushlstring(L, text + start, end - start));
}

void lumat_explain_rows(lua_State *L)
{
    int top = lua_gettop(L);
    size_t length;
    seam found;
    if (lua_type(L, top) != LUA_TSTRING || line_of(lua_tostring(L, top)) == 0 ||
        lua_rawgetp(L, LUA_REGISTRYINDEX, &text_key) != LUA_TSTRING) {
        lua_settop(L, top);
        return;
    }
    const char *message = lua_tostring(L, top);
    const char *text = lua_tolstring(L, top + 1, &length);
    if (find_seam_at(text, length, line_of(message), &found)) {
        const char *tail = push_tail(L, text, found.before);
        const char *head = push_head(L, text, found.behind, length);
        lua_pushfstring(L,
                        "%s\n  rows %d and %d are one statement to Lua: %s %s\n"
                        "  a ; at the end of row %d parts them",
                        message, found.line, found.next_line, tail, head,
                        found.line);
        lua_replace(L, top);
    }
    lua_settop(L, top);
}
