/* The session as a file. While an entry runs, the program's standard output and
 * error are streams that write to the terminal and, without colours, to the
 * file; readline, between entries, has the terminal to itself. What other
 * programs print is not in it. */
#include "transcript.h"
#include "files.h"
#include "lumat.h"
#include "matrix.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST = 4096 }; /* a line that may still be taken back */

/* Where in an escape sequence the output is. */
typedef enum escape { TEXT, ESCAPED, CONTROL, TITLE } escape;

typedef struct branch { /* one of the two streams */
    FILE *tee, *real;
    luaL_Stream *handle; /* io.stdout, io.stderr */
    escape state;
    int returned; /* the last character was a return */
    size_t length;
    char line[LONGEST];
} branch;

static struct {
    FILE *file; /* NULL: none is written */
    char name[PATH_MAX];
    int is_on, is_paused;
    branch out, err;
} script;

/* --- text without colours ------------------------------------------------- */

static void end_line(branch *b)
{
    fwrite(b->line, 1, b->length, script.file);
    b->length = 0;
    b->returned = 0;
}

/* A progress line begins with a return each time: the last one counts. */
static void add_character(branch *b, char c)
{
    if (c == '\r') {
        b->returned = 1;
        return;
    }
    if (b->returned && c != '\n')
        b->length = 0;
    b->returned = 0;
    if (b->length == LONGEST)
        end_line(b);
    b->line[b->length++] = c;
    if (c == '\n')
        end_line(b);
}

/* Sequences as in ECMA-48: ESC [ … letter, ESC ] … BEL, ESC letter. */
static void add_stripped(branch *b, char c)
{
    switch (b->state) {
    case TEXT:
        if (c == '\033')
            b->state = ESCAPED;
        else if (c != '\001' && c != '\002')
            add_character(b, c);
        break;
    case ESCAPED:
        b->state = c == '[' ? CONTROL : c == ']' ? TITLE : TEXT;
        break;
    case CONTROL:
        if (c >= '@' && c <= '~')
            b->state = TEXT;
        break;
    case TITLE:
        if (c == '\a')
            b->state = TEXT;
        else if (c == '\033')
            b->state = ESCAPED;
    }
}

static ssize_t write_both(void *cookie, const char *text, size_t length)
{
    branch *b = cookie;
    size_t written = fwrite(text, 1, length, b->real);
    int failed = fflush(b->real) != 0 || written < length;
    for (size_t i = 0; i < length && script.file; i++)
        add_stripped(b, text[i]);
    return failed ? 0 : (ssize_t)length;
}

/* --- the streams ---------------------------------------------------------- */

static int open_branch(branch *b, int mode)
{
    static const cookie_io_functions_t functions = {.write = write_both};
    if (!b->tee)
        b->tee = fopencookie(b, "w", functions);
    if (b->tee)
        setvbuf(b->tee, NULL, mode, BUFSIZ);
    return b->tee != NULL;
}

static void turn(branch *b, FILE **stream)
{
    b->real = *stream;
    *stream = b->tee;
    if (b->handle)
        b->handle->f = b->tee;
}

static void turn_back(branch *b, FILE **stream)
{
    fflush(b->tee);
    *stream = b->real;
    if (b->handle)
        b->handle->f = b->real;
}

static void start_copying(void)
{
    if (script.is_on || !script.file)
        return;
    fflush(stdout);
    turn(&script.out, &stdout);
    turn(&script.err, &stderr);
    script.is_on = 1;
}

static void stop_copying(void)
{
    if (!script.is_on)
        return;
    turn_back(&script.out, &stdout);
    turn_back(&script.err, &stderr);
    script.is_on = 0;
}

void lumat_pause_transcript(void)
{
    script.is_paused = script.is_on;
    stop_copying();
}

void lumat_resume_transcript(void)
{
    if (script.is_paused)
        start_copying();
    script.is_paused = 0;
}

/* --- the file ------------------------------------------------------------- */

static void end_partial(branch *b)
{
    if (b->length == 0)
        return;
    end_line(b);
    fputc('\n', script.file);
}

static void close_file(void)
{
    stop_copying();
    if (script.file)
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
    fprintf(stderr, "log: %s: %s; nothing more is written to it\n", script.name,
            strerror(error));
}

void lumat_transcribe(const char *prompt, const char *text)
{
    if (!script.file || !prompt)
        return;
    fputs(prompt, script.file);
    for (const char *p = text; *p; p++) {
        fputc(*p, script.file);
        if (*p == '\n')
            fprintf(script.file, "%*s", (int)strlen(prompt), "> ");
    }
    fputc('\n', script.file);
    check_file();
    start_copying();
}

void lumat_end_transcribed(void)
{
    stop_copying();
    if (!script.file)
        return;
    end_partial(&script.out);
    end_partial(&script.err);
    check_file();
}

/* Output goes to the file from here on, that of the entry which says so, too:
 * a script has no other. */
static int open_file(const char *name)
{
    close_file();
    script.file = fopen(name, "ae");
    if (!script.file)
        return errno;
    snprintf(script.name, sizeof script.name, "%s", name);
    int lines = isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF;
    if (!open_branch(&script.out, lines) || !open_branch(&script.err, _IONBF)) {
        close_file();
        return ENOMEM;
    }
    script.out.length = script.err.length = 0;
    start_copying();
    return 0;
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
            return lumat_raise(L, "transcript: %s: %s", name, strerror(error));
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
    close_file();
    script.out.handle = script.err.handle = NULL;
    return 0;
}

static const lumat_function functions[] = {
    {"transcript", transcript, 0, "transcript([file | false])",
     "Appends what is typed at the prompt and what the program prints to a "
     "file, without colours; false ends it. Gives the file's name, or false. "
     "Also :log.",
     "transcript()", "false"},
    {NULL, NULL, 0, NULL, NULL, NULL, NULL}};

/* The handle is kept in the registry: its stream is exchanged. */
static luaL_Stream *find_handle(lua_State *L, const char *name)
{
    lua_getglobal(L, "io");
    lua_getfield(L, -1, name);
    luaL_Stream *s = luaL_testudata(L, -1, LUA_FILEHANDLE);
    lua_rawsetp(L, LUA_REGISTRYINDEX, s ? (void *)s : (void *)&script);
    lua_pop(L, 1);
    return s;
}

void lumat_open_transcript(lua_State *L)
{
    lumat_register(L, functions);
    script.out.handle = find_handle(L, "stdout");
    script.err.handle = find_handle(L, "stderr");
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, end_transcript);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &script.file);
}
