/* Running files and pieces of code that were not typed at the prompt. */
#include "entry.h"

#include "terminal.h"

#include "lauxlib.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FIRST_READ = 1 << 16, MOST_TEXT = 1 << 28 }; /* bytes of a script */

static int refuse(lua_State *L, const char *name, const char *why)
{
    lua_pushfstring(L, "%s: %s", name, why);
    return LUA_ERRFILE;
}

/* All of a file in one allocation, or NULL with errno set; EFBIG when there is
 * more than a script may have. */
static char *read_all(FILE *file, size_t *length)
{
    size_t room = FIRST_READ;
    char *text = malloc(room), *larger;
    *length = 0;
    while (text != NULL) {
        *length += fread(text + *length, 1, room - *length, file);
        if (ferror(file))
            break;
        if (*length < room)
            return text;
        errno = EFBIG;
        if (room >= MOST_TEXT)
            break;
        larger = realloc(text, room *= 2);
        if (larger == NULL)
            break;
        text = larger;
    }
    free(text);
    return NULL;
}

/* A file that nobody named, which is neither waited for nor without an end. */
static FILE *open_own(const char *path)
{
    int file =
        lumat_take_regular(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), NULL);
    return file >= 0 ? fdopen(file, "rb") : NULL;
}

/* fopen opens a directory; only reading it fails. */
static char *read_file(FILE *file, size_t *length)
{
    struct stat status;
    char *text = NULL;
    int error;
    if (file == NULL)
        return NULL;
    if (fstat(fileno(file), &status) == 0 && S_ISDIR(status.st_mode))
        errno = EISDIR;
    else
        text = read_all(file, length);
    error = errno;
    if (file != stdin)
        fclose(file);
    errno = error;
    return text;
}

/* Where Lua begins: behind a byte order mark and the text of a first line
 * that begins with '#'. Its newline stays, for the line numbers. */
static size_t skip_opening(const char *text, size_t length)
{
    size_t at = 0;
    if (length >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
        at = 3;
    if (at < length && text[at] == '#')
        while (at < length && text[at] != '\n')
            at++;
    return at;
}

/* With a syntax error's message on top: commands are for the prompt. */
static void explain_command(lua_State *L, const char *file, const char *text,
                            size_t length)
{
    const char *row;
    text = lua_pushlstring(L, text, length);
    row = repl_find_command_row(text);
    if (row != NULL) {
        row += strspn(row, " \t");
        row = lua_pushlstring(L, row, strcspn(row, " \t\r\n"));
        lua_pushfstring(L,
                        "%s\n  %s is for the prompt: lumat -q -i <%s runs a "
                        "file as if it were typed",
                        lua_tostring(L, -3), row, file);
        lua_replace(L, -4);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* With a syntax error's message on top. Lua's texts may have zero bytes in
 * strings; where they cannot be read, they mostly are no Lua. */
static int explain_zero(lua_State *L, const char *file, const char *text,
                        size_t length)
{
    const char *zero = memchr(text, '\0', length);
    int line = 1;
    if (zero == NULL)
        return 0;
    for (const char *p = text; p < zero; p++)
        line += *p == '\n';
    lua_pop(L, 1);
    lua_pushfstring(L, "%s:%d: a zero byte: this is no Lua, or UTF-16",
                    strcmp(file, "FILE") == 0 ? "stdin" : file, line);
    return 1;
}

static void explain_syntax(lua_State *L, const char *file, const char *text,
                           size_t length)
{
    if (explain_zero(L, file, text, length))
        return;
    lumat_explain_syntax(L, text, length);
    explain_command(L, file, text, length);
}

static int load_text(lua_State *L, const char *name, const char *text,
                     size_t length)
{
    size_t at = skip_opening(text, length);
    int is_input = strcmp(name, "stdin") == 0;
    const char *start = at < length ? text + at : "";
    int status;
    if (at < length && *start == LUA_SIGNATURE[0])
        return refuse(L, name,
                      "precompiled chunks are refused; give the source");
    lua_pushfstring(L, is_input ? "=%s" : "@%s", name);
    status = luaL_loadbufferx(L, start, length - at, lua_tostring(L, -1), "t");
    if (status == LUA_ERRSYNTAX)
        explain_syntax(L, is_input ? "FILE" : name, start, length - at);
    if (status == LUA_OK)
        status = lumat_check_script(L, name, text, length);
    lua_remove(L, -2);
    return status;
}

static int load_opened(lua_State *L, const char *name, FILE *file)
{
    size_t length;
    char *text = read_file(file, &length);
    int status;
    if (text == NULL && errno == EFBIG)
        return refuse(L, name, "it has more than 256 MiB, as no script does");
    if (text == NULL)
        return refuse(L, name, lumat_error_text(errno));
    status = load_text(L, name, text, length);
    free(text);
    return status;
}

int repl_load_file(lua_State *L, const char *path)
{
    if (path == NULL)
        return load_opened(L, "stdin", stdin);
    return load_opened(L, path, fopen(path, "rb"));
}

int repl_load_own_file(lua_State *L, const char *path)
{
    return load_opened(L, path, open_own(path));
}

static int load_code(lua_State *L, const char *format, const char *code)
{
    int status;
    code = lua_pushfstring(L, format, code);
    status = luaL_loadbufferx(L, code, strlen(code), "=(command line)", "t");
    if (status == LUA_ERRSYNTAX)
        explain_syntax(L, "FILE", code, strlen(code));
    if (status == LUA_OK)
        status = lumat_check_script(L, "(command line)", code, strlen(code));
    lua_remove(L, -2);
    return status;
}

int repl_load_code(lua_State *L, const char *code, int expression)
{
    int status = load_code(L, expression ? "return %s" : "%s", code);
    if (expression || status != LUA_ERRSYNTAX)
        return status;
    if (load_code(L, "return %s", code) == LUA_OK) {
        lua_remove(L, -2);
        return LUA_OK;
    }
    lua_pop(L, 1);
    return status;
}

int repl_load_failed(lua_State *L, int status)
{
    repl_report(L);
    return status == LUA_ERRMEM ? REPL_OUT_OF_MEMORY : 1;
}

int repl_run(lua_State *L, int nargs)
{
    int status = repl_call(L, nargs), code;
    const char *traceback;
    if (status == LUA_OK)
        return 0;
    code = status == LUA_ERRMEM ? REPL_OUT_OF_MEMORY : lumat_exit_code(L, -1);
    repl_report(L);
    traceback = lumat_push_last_traceback(L);
    if (traceback != NULL && code != REPL_INTERRUPTED)
        lumat_write_visible(stderr, traceback, strlen(traceback), 0);
    if (traceback != NULL && code != REPL_INTERRUPTED)
        fputc('\n', stderr);
    lua_pop(L, 1);
    return code;
}

void repl_set_arg(lua_State *L, char **words, int count, int script)
{
    int zero = script < count ? script : 0;
    lua_createtable(L, count - zero, zero + 1);
    for (int i = 0; i < count; i++) {
        lua_pushstring(L, words[i]);
        lua_rawseti(L, -2, i - zero);
    }
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.base");
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "arg"); /* no variable of the user's */
    lua_pop(L, 1);
    lua_setglobal(L, "arg");
}
