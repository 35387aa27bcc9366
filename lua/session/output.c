/* Standard output and error while an entry runs. Readline, between entries,
 * has the terminal to itself. What other programs print is not seen here. */
#include "output.h"

#include "lauxlib.h"
#include <stdio.h>
#include <stdio_ext.h>
#include <unistd.h>

/* Where in an escape sequence the output is. */
typedef enum escape { TEXT, ESCAPED, CONTROL, TITLE } escape;

typedef struct branch { /* one of the two streams */
    FILE *tee, *real;
    luaL_Stream *handle; /* io.stdout, io.stderr */
    escape state;
    int is_terminal;
} branch;

static struct {
    int is_on;
    int is_open;  /* text stands in the terminal's row */
    int at_start; /* of that row, since a return */
    void (*sink)(char c);
    branch out, err;
} output;

void lumat_set_sink(void (*sink)(char c))
{
    output.sink = sink;
}

int lumat_take_open_row(void)
{
    int was_open = output.is_open;
    output.is_open = 0;
    return was_open;
}

int lumat_is_own_output(lua_State *L, int index)
{
    const void *value = lua_touserdata(L, index);
    return value && (value == output.out.handle || value == output.err.handle);
}

/* --- what is printed ------------------------------------------------------ */

/* \1 and \2 enclose what a prompt of Readline's does not show. */
static void pass(branch *b, char c)
{
    if (c == '\001' || c == '\002')
        return;
    if (output.sink)
        output.sink(c);
    if (!b->is_terminal)
        return;
    output.at_start = c == '\r' || c == '\n';
    if (c == '\n')
        output.is_open = 0;
    else if (c != '\r')
        output.is_open = 1;
}

/* Rows that are cleared from their start hold nothing any more. */
static void end_control(const branch *b, char c)
{
    if (b->is_terminal && output.at_start && (c == 'K' || c == 'J'))
        output.is_open = 0;
}

/* Sequences as in ECMA-48: ESC [ … letter, ESC ] … BEL, ESC letter. */
static void follow(branch *b, char c)
{
    switch (b->state) {
    case TEXT:
        if (c == '\033')
            b->state = ESCAPED;
        else
            pass(b, c);
        break;
    case ESCAPED:
        b->state = c == '[' ? CONTROL : c == ']' ? TITLE : TEXT;
        break;
    case CONTROL:
        if (c >= '@' && c <= '~') {
            b->state = TEXT;
            end_control(b, c);
        }
        break;
    case TITLE:
        if (c == '\a')
            b->state = TEXT;
        else if (c == '\033')
            b->state = ESCAPED;
    }
}

static ssize_t write_on(void *cookie, const char *text, size_t length)
{
    branch *b = cookie;
    size_t written = fwrite(text, 1, length, b->real);
    int failed = fflush(b->real) != 0 || written < length;
    for (size_t i = 0; i < length; i++)
        follow(b, text[i]);
    return failed ? 0 : (ssize_t)length;
}

/* --- the streams ---------------------------------------------------------- */

/* The user may have taken the stream's buffer away. */
static int mode_of(FILE *stream, int is_terminal)
{
    if (stream == stderr || __fbufsize(stream) == 1)
        return _IONBF;
    return is_terminal ? _IOLBF : _IOFBF;
}

static int open_branch(branch *b, FILE *stream)
{
    static const cookie_io_functions_t functions = {.write = write_on};
    if (b->tee)
        return 1;
    b->is_terminal = isatty(fileno(stream));
    b->tee = fopencookie(b, "w", functions);
    if (b->tee)
        setvbuf(b->tee, NULL, mode_of(stream, b->is_terminal), BUFSIZ);
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

int lumat_start_output(void)
{
    if (output.is_on)
        return 1;
    if (!open_branch(&output.out, stdout) || !open_branch(&output.err, stderr))
        return 0;
    if (!output.sink && !output.out.is_terminal && !output.err.is_terminal)
        return 1;
    fflush(stdout);
    turn(&output.out, &stdout);
    turn(&output.err, &stderr);
    output.is_on = 1;
    return 1;
}

void lumat_stop_output(void)
{
    if (!output.is_on)
        return;
    turn_back(&output.out, &stdout);
    turn_back(&output.err, &stderr);
    output.is_on = 0;
}

FILE *lumat_real_stderr(void)
{
    return output.is_on ? output.err.real : stderr;
}

/* --- opening -------------------------------------------------------------- */

/* The handle is kept in the registry: its stream is exchanged. */
static luaL_Stream *find_handle(lua_State *L, const char *name)
{
    lua_getglobal(L, "io");
    lua_getfield(L, -1, name);
    luaL_Stream *s = luaL_testudata(L, -1, LUA_FILEHANDLE);
    lua_rawsetp(L, LUA_REGISTRYINDEX, s ? (void *)s : (void *)&output);
    lua_pop(L, 1);
    return s;
}

void lumat_open_output(lua_State *L)
{
    output.out.handle = find_handle(L, "stdout");
    output.err.handle = find_handle(L, "stderr");
}

void lumat_close_output(void)
{
    lumat_stop_output();
    output.out.handle = output.err.handle = NULL;
}
