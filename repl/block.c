/* Entries below each other in one text. */
#include "block.h"

#include "commands.h"
#include "echo.h"
#include "entry.h"

#include <string.h>

/* --- complete or not ------------------------------------------------------ */

typedef struct piece {
    const char *text;
    size_t length;
} piece;

static int judge(lua_State *L)
{
    const piece *p = lua_touserdata(L, 1);
    int shown;
    lua_pushlstring(L, p->text, p->length);
    lua_pushinteger(L, repl_load_entry(L, lua_tostring(L, -1), &shown));
    return 1;
}

/* Memory may be short: then nothing is missing. */
static int is_open(lua_State *L, const char *text, size_t length)
{
    piece p = {text, length};
    int open;
    lua_pushcfunction(L, judge);
    lua_pushlightuserdata(L, &p);
    open = lua_pcall(L, 1, 1, 0) == LUA_OK &&
           lua_tointeger(L, -1) == LUMAT_INCOMPLETE;
    lua_pop(L, 1);
    return open;
}

int repl_is_incomplete(lua_State *L, const char *text)
{
    const char *rest;
    return repl_entry_kind_of(text, &rest) == REPL_LUA &&
           is_open(L, text, strlen(text));
}

/* --- rows ----------------------------------------------------------------- */

static const char *row_end(const char *text)
{
    return text + strcspn(text, "\n");
}

/* Lua's method calls have their argument right behind the name, or a string
 * or table that no command takes. */
int repl_is_command_row(const char *text)
{
    const char *rest, *behind;
    repl_entry_kind kind = repl_entry_kind_of(text, &rest);
    size_t length;
    if (kind != REPL_COMMAND)
        return kind == REPL_HELP || kind == REPL_SEARCH;
    length = strspn(rest, "abcdefghijklmnopqrstuvwxyz"
                          "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    if (length == 0 || strchr(" \t\r\n", rest[length]) == NULL)
        return 0;
    behind = repl_skip_blanks(rest + length);
    return repl_find_command(rest, length) != NULL || *behind == '\0' ||
           strchr("([{\"'", *behind) == NULL;
}

/* What Lua a command takes may go on in the rows below. */
static int takes_lua(const char *name)
{
    const repl_command *command =
        repl_find_command(name, strcspn(name, " \t\r\n"));
    return command != NULL && command->argument >= REPL_EXPRESSION;
}

static const char *command_end(lua_State *L, const char *text, const char *rest)
{
    const char *argument = rest + strcspn(rest, " \t\r\n");
    const char *end = row_end(text);
    while (*end != '\0' && takes_lua(rest) && argument < end &&
           is_open(L, argument, (size_t)(end - argument)))
        end = row_end(end + 1);
    return end;
}

/* In front of the first row that is a command and stands neither in a string
 * or comment nor in a construct, nor lacks Lua in front of it. */
static const char *lua_end(lua_State *L, const char *text, const char *end)
{
    size_t length = (size_t)(end - text);
    lumat_token token = {0};
    lumat_nesting nesting = {0};
    while (lumat_next_token(text, length, &token)) {
        const char *start = text + token.start, *newline;
        lumat_nest(&nesting, text, &token);
        if (token.kind != LUMAT_BLANK || nesting.depth > 0)
            continue;
        newline = memrchr(start, '\n', token.end - token.start);
        if (newline != NULL && repl_is_command_row(newline + 1) &&
            !is_open(L, text, token.start))
            return start;
    }
    return end;
}

size_t repl_first_entry(lua_State *L, const char *text)
{
    const char *start = text, *rest, *end = text + strlen(text);
    repl_entry_kind kind;
    while (start < end && start[strspn(start, " \t\r")] == '\n')
        start = row_end(start) + 1;
    kind = repl_entry_kind_of(start, &rest);
    if (kind == REPL_LUA)
        end = lua_end(L, start, end);
    else if (kind == REPL_COMMAND)
        end = command_end(L, start, rest);
    else if (kind != REPL_BLANK)
        end = row_end(start);
    if (end[strspn(end, " \t\r\n")] == '\0')
        end += strlen(end);
    return (size_t)(end - text);
}
