/* Commands about what work takes: costs, times, traces, profiles, checks, and
 * the kernels compared. */
#include "command_list.h"

#include "terminal.h"

#include "lauxlib.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Pushes "function() return text end", or without the return where text is a
 * statement. */
static const char *push_function(lua_State *L, const char *text, size_t length)
{
    const char *body = lua_pushlstring(L, text, length);
    const char *code = lua_pushfstring(L, "return %s\n", body);
    int status = luaL_loadstring(L, code);
    lua_pop(L, 2);
    code =
        status == LUA_OK ? "function() return %s\nend" : "function() %s\nend";
    code = lua_pushfstring(L, code, body);
    lua_remove(L, -2);
    return code;
}

void repl_run_cost(repl_session *session, const char *rest)
{
    lua_State *L = session->L;
    if (rest[0] == '\0') {
        repl_complain(":cost needs an expression: :cost A * B * v");
        return;
    }
    push_function(L, rest, strlen(rest));
    repl_show_call(session, "cost", lua_tostring(L, -1));
    lua_pop(L, 1);
}

void repl_run_trace(repl_session *session, const char *rest)
{
    if (rest[0] == '\0')
        repl_show_call(session, "tracing", "");
    else if (!repl_is_choice("trace", rest))
        return;
    else if (rest[0] == 'e')
        repl_evaluate(session, "require 'lumat'.tracing('errors');");
    else
        lumat_set_trace(session->L, rest[1] == 'n');
}

void repl_run_time(repl_session *session, const char *rest)
{
    if (rest[0] == '\0') {
        repl_complain(":time needs an expression");
        return;
    }
    session->is_timed = 1;
    int ran = repl_evaluate(session, rest);
    session->is_timed = 0;
    if (!ran)
        return;
    lumat_push_watch(session->L, session->seconds);
    printf("  %s\n", lua_tostring(session->L, -1));
    lua_pop(session->L, 1);
}

/* Where the number of "expr 100" begins, if what stands before it is an
 * expression; else the end. */
static const char *find_runs(lua_State *L, const char *text)
{
    const char *end = text + strlen(text), *p = end;
    while (p > text && isdigit((unsigned char)p[-1]))
        p--;
    if (p == end || p == text || (p[-1] != ' ' && p[-1] != '\t'))
        return end;
    lua_pushliteral(L, "return ");
    lua_pushlstring(L, text, (size_t)(p - text));
    lua_concat(L, 2);
    int status = luaL_loadstring(L, lua_tostring(L, -1));
    lua_pop(L, 2);
    return status == LUA_OK ? p : end;
}

void repl_run_bench(repl_session *session, const char *rest)
{
    lua_State *L = session->L;
    const char *runs = find_runs(L, rest);
    if (rest[0] == '\0') {
        repl_complain(":bench needs an expression: :bench A * B");
        return;
    }
    const char *code = push_function(L, rest, (size_t)(runs - rest));
    code = lua_pushfstring(L, *runs ? "%s, {runs = %s}" : "%s", code, runs);
    repl_show_call(session, "bench", code);
    lua_pop(L, 2);
}

void repl_run_prof(repl_session *session, const char *rest)
{
    char word[16];
    size_t length = strcspn(rest, " \t");
    const char *file = rest + length + strspn(rest + length, " \t");
    snprintf(word, sizeof word, "%.*s", (int)length, rest);
    if (length > 0 && !repl_is_choice("prof", word))
        return;
    if (strcmp(word, "json") == 0 && *file == '\0')
        repl_complain(":prof json needs a file's name: :prof json trace.json");
    else if (strcmp(word, "json") != 0 && *file != '\0')
        repl_complain(":prof takes a file's name behind json only");
    else
        repl_show_strings(session, "profile", rest, length, file);
}

void repl_run_check(repl_session *session, const char *rest)
{
    if (rest[0] == '\0')
        repl_show_call(session, "checking", "");
    else if (repl_is_choice("check", rest))
        repl_evaluate(session, rest[1] == 'n'
                                   ? "require 'lumat'.checking(true);"
                                   : "require 'lumat'.checking(false);");
}

/* --- the ladder --------------------------------------------------------- */

/* Behind the name, number or bracketed text that starts at p. */
static const char *skip_operand(const char *p)
{
    int depth = 0;
    for (; *p != '\0'; p++) {
        if (*p == '"' || *p == '\'') {
            const char *end = strchr(p + 1, *p);
            p = end != NULL ? end : p;
        } else if (strchr("([{", *p) != NULL)
            depth++;
        else if (strchr(")]}", *p) != NULL)
            depth--;
        else if (depth == 0 && !isalnum((unsigned char)*p) &&
                 strchr("_.: \t", *p) == NULL)
            break;
    }
    return p;
}

/* Where the '*' of "A * B" or "A * B, {options}" is, or NULL in any other
 * text: of an expression with more in it, what are the operands? */
static const char *find_product(const char *text)
{
    const char *star = skip_operand(text), *end;
    if (*star != '*')
        return NULL;
    end = skip_operand(star + 1);
    if (*end == ',')
        end += 1 + strspn(end + 1, " \t");
    return *end == '\0' || *end == '{' ? star : NULL;
}

/* Shows what the function gives for two operands, however they are written. */
static void show_product(repl_session *session, const char *function,
                         const char *text)
{
    const char *star = find_product(text);
    if (star == NULL) {
        repl_show_call(session, function, text);
        return;
    }
    lua_pushlstring(session->L, text, (size_t)(star - text));
    text = lua_pushfstring(session->L, "%s,%s", lua_tostring(session->L, -1),
                           star + 1);
    repl_show_call(session, function, text);
    lua_pop(session->L, 2);
}

/* A word is a kernel or a device, unless a variable is called so. */
static void show_named(repl_session *session, const char *word)
{
    const char *form = strchr(word, '-') != NULL ? "'%s'" : "%s or '%s'";
    const char *text = lua_pushfstring(session->L, form, word, word);
    repl_show_call(session, "kernels", text);
    lua_pop(session->L, 1);
}

static int is_word(const char *text)
{
    if (!isalpha((unsigned char)*text))
        return 0;
    while (isalnum((unsigned char)*text) || *text == '-' || *text == '_')
        text++;
    return *text == '\0';
}

void repl_run_kernel(repl_session *session, const char *rest)
{
    if (is_word(rest))
        show_named(session, rest);
    else
        show_product(session, "kernels", rest);
}

void repl_run_race(repl_session *session, const char *rest)
{
    if (find_product(rest) == NULL && strchr(rest, ',') == NULL)
        repl_complain(":race needs two matrices or vectors: :race A, B");
    else
        show_product(session, "race", rest);
}
