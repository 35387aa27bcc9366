/* The session as a file. What other programs print is not in it. */
#include "transcript.h"
#include "fence.h"
#include "files.h"
#include "lumat.h"
#include "matrix.h"
#include "output.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 4096 }; /* a line that may still be taken back */

static struct {
    FILE *file; /* NULL: none is written */
    char name[PATH_MAX];
    int returned; /* the last character was a return */
    size_t length;
    char line[LONGEST];
} script;

/* --- lines ---------------------------------------------------------------- */

static void end_line(void)
{
    fwrite(script.line, 1, script.length, script.file);
    script.length = 0;
    script.returned = 0;
}

/* A progress line begins with a return each time: the last one counts. */
static void add_character(char c)
{
    if (c == '\r') {
        script.returned = 1;
        return;
    }
    if (script.returned && c != '\n')
        script.length = 0;
    script.returned = 0;
    if (script.length == LONGEST)
        end_line();
    script.line[script.length++] = c;
    if (c == '\n')
        end_line();
}

/* --- the file ------------------------------------------------------------- */

static void close_file(void)
{
    if (!script.file)
        return;
    fflush(stdout);
    lumat_set_sink(NULL);
    end_line();
    fclose(script.file);
    script.file = NULL;
}

/* A full disk is said once. */
static void check_file(void)
{
    if (fflush(script.file) == 0 && !ferror(script.file))
        return;
    int error = errno;
    close_file();
    fflush(stdout);
    lumat_print_visible(stderr, "log: %s: %s; nothing more is written to it\n",
                        script.name, lumat_error_text(error));
}

static void write_entry(const char *prompt, const char *text)
{
    fputs(prompt, script.file);
    for (const char *p = text; *p; p++) {
        fputc(*p, script.file);
        if (*p == '\n')
            fprintf(script.file, "%*s", (int)strlen(prompt), "> ");
    }
    fputc('\n', script.file);
    check_file();
}

void lumat_transcribe(const char *prompt, const char *text)
{
    if (!prompt)
        return;
    if (script.file)
        write_entry(prompt, text);
    lumat_start_output();
}

void lumat_transcribe_echo(const char *text)
{
    for (; script.file && *text; text++)
        add_character(*text);
}

void lumat_end_transcribed(void)
{
    lumat_stop_output();
    if (!script.file)
        return;
    if (script.length > 0)
        add_character('\n');
    check_file();
}

/* Output goes to the file from here on, that of the entry which says so, too:
 * a script has no other. */
static int open_file(const char *name)
{
    close_file();
    if (!lumat_may_open(name, 1))
        return EACCES;
    script.file = fopen(name, "ae");
    if (!script.file)
        return errno;
    snprintf(script.name, sizeof script.name, "%s", name);
    lumat_set_sink(add_character);
    if (lumat_start_output())
        return 0;
    close_file();
    return ENOMEM;
}

/* --- the function --------------------------------------------------------- */

/* transcript([file | false]) */
static int transcript(lua_State *L)
{
    if (lua_type(L, 1) == LUA_TBOOLEAN && !lua_toboolean(L, 1)) {
        close_file();
    } else if (!lua_isnoneornil(L, 1)) {
        const char *name = lumat_expand_path(L, 1);
        luaL_argcheck(L, *name, 1, "the name is empty");
        int error = open_file(name);
        if (error)
            return lumat_raise(L, "transcript: %s: %s", name,
                               lumat_error_text(error));
    }
    if (script.file)
        lua_pushstring(L, script.name);
    else
        lua_pushboolean(L, 0);
    return 1;
}

static int end_transcript(lua_State *L)
{
    (void)L;
    lumat_close_output();
    close_file();
    return 0;
}

static const lumat_function functions[] = {
    {"transcript", transcript, 0, "transcript([file | false])",
     "Appends what is typed at the prompt and what the program prints to a "
     "file, without colours; false ends it. Gives the file's name, or false. "
     "Also :log.",
     "transcript()", "false"},
    {NULL, NULL, 0, NULL, NULL, NULL, NULL}};

void lumat_open_transcript(lua_State *L)
{
    lumat_register(L, functions);
    lumat_open_output(L);
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, end_transcript);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &script.file);
}
