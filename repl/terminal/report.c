/* The one place where errors are printed. */
#include "terminal.h"

#include "lauxlib.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *label = "lumat:";
static unsigned complaints;
static const char *(*speaker)(const char *message);

void repl_report_at_prompt(void)
{
    label = "error:";
}

void repl_set_speaker(const char *(*who)(const char *message))
{
    speaker = who;
}

unsigned repl_complaint_count(void)
{
    return complaints;
}

void repl_note(const char *message)
{
    repl_end_output();
    lumat_print_visible(stderr, "note: %s\n", message);
    fflush(stderr);
}

static int is_at_prompt(void)
{
    return label[0] == 'e';
}

/* A message behind a word that has a colour at the prompt, and who says it. */
static void print_labelled(const char *colour, const char *word,
                           const char *who, const char *message)
{
    int coloured = is_at_prompt() && repl_colour(STDERR_FILENO);
    repl_end_output();
    fprintf(stderr, "%s%s%s %s", coloured ? colour : "", word,
            coloured ? "\033[0m" : "", who);
    lumat_write_visible(stderr, message, strlen(message), 0);
    fputc('\n', stderr);
    fflush(stderr);
}

void repl_warn(const char *message)
{
    print_labelled("\033[1;33m",
                   is_at_prompt() ? "warning:" : "lumat: warning:", "",
                   message);
}

void repl_complain(const char *message)
{
    complaints++;
    repl_clear_interrupt();
    print_labelled("\033[1;31m", label, speaker ? speaker(message) : "",
                   message);
}

/* The error value as a string; its __tostring may raise another error. */
static int describe(lua_State *L)
{
    if (lua_isstring(L, 1))
        lua_tostring(L, 1);
    else if (!luaL_callmeta(L, 1, "__tostring") || !lua_isstring(L, -1))
        lua_pushfstring(L, "(error object is a %s value)", lumat_kind_of(L, 1));
    return 1;
}

/* Puts text in place of the value on top. Never raises an error, but for the
 * memory of a short string. What a __tostring does may be stopped. */
static const char *message_of_top(lua_State *L)
{
    char kind[64];
    int is_string = lua_isstring(L, -1);
    snprintf(kind, sizeof kind, "%s", lumat_kind_of(L, -1));
    lua_pushcfunction(L, describe);
    lua_insert(L, -2);
    if (!is_string)
        repl_interrupts_stop(L);
    if (lua_pcall(L, 1, 1, 0) != LUA_OK || !lua_isstring(L, -1)) {
        lua_pop(L, 1);
        if (repl_interrupted())
            lua_pushliteral(L, "interrupted");
        else
            lua_pushfstring(L, "(error object is a %s value)", kind);
    }
    if (!is_string)
        repl_interrupts_stop(NULL);
    return lua_tostring(L, -1);
}

void repl_report(lua_State *L)
{
    repl_complain(message_of_top(L));
    lua_pop(L, 1);
}

/* "interrupted at lumat:3" as "interrupted at line 3", or without the place
 * when there is one line. Returns 0 for any other message. */
static int complain_of_interrupt(lua_State *L, const char *message, int lines)
{
    int line;
    const char *reason = message + lumat_interrupt_length(message, &line);
    if (line == 0)
        return 0;
    if (lines > 1)
        lua_pushfstring(L, "interrupted at line %d%s", line, reason);
    else
        lua_pushfstring(L, "interrupted%s", reason);
    repl_complain(lua_tostring(L, -1));
    return 1;
}

void repl_report_entry(lua_State *L, int lines)
{
    const char *message = message_of_top(L), *text;
    int line;
    if (complain_of_interrupt(L, message, lines)) {
        lua_pop(L, 2);
        return;
    }
    text = lumat_skip_place(message, &line);
    if (line > 0 && lines > 1) {
        repl_complain(lua_pushfstring(L, "line %d: %s", line, text));
        lua_pop(L, 2);
        return;
    }
    repl_complain(text);
    lua_pop(L, 1);
}
