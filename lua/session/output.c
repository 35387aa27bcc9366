/* Standard output and error while an entry runs, and the session as a file.
 * Readline, between entries, has the terminal to itself. What other programs
 * print is not seen here. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <unistd.h>
#include "function.h"
#include "fence.h"
#include "files.h"
#include "lauxlib.h"
#include "session.h"
#include "value.h"

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

/* What gets each character that is printed, but for escape sequences; NULL:
 * nothing does. */
static void set_sink(void (*sink)(char c))
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

/* Begins, unless nobody wants it: neither is one a terminal nor is there a
 * sink. Returns 0 when memory is short. */
static int start_output(void)
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

static void stop_output(void)
{
    if (!output.is_on)
        return;
    turn_back(&output.out, &stdout);
    turn_back(&output.err, &stderr);
    output.is_on = 0;
}

/* Where standard error goes, past what is passed on: for a word about that. */
static FILE *real_stderr(void)
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

static void open_output(lua_State *L)
{
    output.out.handle = find_handle(L, "stdout");
    output.err.handle = find_handle(L, "stderr");
}

/* The state is about to end. */
static void close_output(void)
{
    stop_output();
    output.out.handle = output.err.handle = NULL;
}

/* --- the transcript ------------------------------------------------------- */

enum {
    LONGEST = 4096, /* a line that may still be taken back */
    BUFFER = 1 << 14
};

static struct {
    int fd;       /* -1: none is written */
    int error;    /* why not all is in the file, or 0 */
    int in_entry; /* of the prompt */
    char name[PATH_MAX];
    int returned; /* the last character was a return */
    size_t length, used;
    char line[LONGEST];
    char buffer[BUFFER];
} script = {.fd = -1};

/* What cannot be written is said at once, and again when it is closed, or the
 * program ends. */
static struct {
    int is_one;
    char message[PATH_MAX + 200];
} lost;

/* --- the file ------------------------------------------------------------- */

static void write_out(void)
{
    size_t used = script.used;
    script.used = 0;
    if (!script.error)
        script.error = lumat_write_fully(script.fd, script.buffer, used, -1);
}

static void close_file(void)
{
    set_sink(NULL);
    write_out();
    int error = lumat_sync(script.fd);
    if (close(script.fd) != 0 && errno != EINTR && !error)
        error = errno;
    script.fd = -1;
    if (!script.error)
        script.error = error;
    if (!script.error)
        return;
    if (!lost.is_one)
        snprintf(lost.message, sizeof lost.message, "%s is not complete: %s",
                 script.name, lumat_error_text(script.error));
    lost.is_one = 1;
}

static void tell_error(void)
{
    lumat_print_visible(real_stderr(),
                        "log: %s: %s; nothing more is written to it\n",
                        script.name, lumat_error_text(script.error));
}

/* In the middle of an entry it can wait until that ends. */
static void check_file(void)
{
    if (script.fd < 0 || !script.error || script.in_entry)
        return;
    close_file();
    tell_error();
}

/* --- lines ---------------------------------------------------------------- */

static void put(const char *text, size_t length)
{
    while (length > 0) {
        size_t n = BUFFER - script.used;
        n = n < length ? n : length;
        memcpy(script.buffer + script.used, text, n);
        script.used += n;
        text += n;
        length -= n;
        if (script.used == BUFFER)
            write_out();
    }
}

static void end_line(void)
{
    put(script.line, script.length);
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
    check_file();
}

/* --- entries -------------------------------------------------------------- */

static void write_entry(const char *prompt, const char *text)
{
    int indent = (int)strlen(prompt) - 2;
    put(prompt, strlen(prompt));
    for (const char *p = text; *p; p++) {
        put(p, 1);
        for (int i = 0; *p == '\n' && i < indent; i++)
            put(" ", 1);
        if (*p == '\n')
            put("> ", 2);
    }
    put("\n", 1);
    write_out();
    check_file();
}

void lumat_transcribe(const char *prompt, const char *text)
{
    if (!prompt)
        return;
    if (script.fd >= 0)
        write_entry(prompt, text);
    start_output();
    script.in_entry = 1;
}

void lumat_transcribe_echo(const char *text)
{
    for (; script.fd >= 0 && *text; text++)
        add_character(*text);
}

void lumat_end_transcribed(void)
{
    stop_output();
    script.in_entry = 0;
    if (script.fd < 0)
        return;
    if (script.length > 0)
        add_character('\n');
    write_out();
    check_file();
}

/* --- opening and closing -------------------------------------------------- */

/* All that was printed so far belongs to it. */
static void end_file(void)
{
    if (script.fd < 0)
        return;
    fflush(stdout);
    end_line();
    close_file();
}

/* Output goes to the file from here on, that of the entry which says so, too:
 * a script has no other. */
static int open_file(const char *name)
{
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
    script.fd = lumat_open_path(name, flags, 0666);
    if (script.fd < 0)
        return errno;
    script.error = 0;
    snprintf(script.name, sizeof script.name, "%s", name);
    set_sink(add_character);
    if (start_output())
        return 0;
    close_file();
    return ENOMEM;
}

/* Another file takes the place of the one there is. */
static int change_file(const char *name)
{
    int was_open = script.fd >= 0;
    end_file();
    if (was_open && script.error)
        tell_error();
    return open_file(name);
}

const char *lumat_end_transcript(void)
{
    end_file();
    int is_lost = lost.is_one;
    lost.is_one = 0;
    return is_lost ? lost.message : NULL;
}

/* --- the function --------------------------------------------------------- */

/* transcript([file | false]) */
static int transcript(lua_State *L)
{
    if (lua_type(L, 1) == LUA_TBOOLEAN && !lua_toboolean(L, 1)) {
        const char *message = lumat_end_transcript();
        if (message)
            return lumat_raise(L, "transcript: %s", message);
    } else if (!lua_isnoneornil(L, 1)) {
        const char *name = lumat_expand_path(L, 1);
        if (!*name)
            lumat_raise_argument(L, 1, "is empty: it is a file's name");
        int error = change_file(name);
        if (error)
            return lumat_raise(L, "transcript: %s: %s", name,
                               lumat_error_text(error));
    }
    if (script.fd >= 0)
        lua_pushstring(L, script.name);
    else
        lua_pushboolean(L, 0);
    return 1;
}

static int end_transcript(lua_State *L)
{
    (void)L;
    end_file(); /* lumat_end_transcript says what is wrong */
    close_output();
    return 0;
}

static const lumat_function functions[] = {
    {"transcript", transcript, 0, "[file: path|false]", "string",
     "Appends what is typed at the prompt and what the program prints to a "
     "file, without colours; false ends it. Gives the file's name, or false. "
     "Also :log.",
     "transcript()", "false", .group = "lineage",
     .usage = "transcript([file | false])"},
    {0}};

void lumat_open_transcript(lua_State *L)
{
    lumat_register(L, functions);
    open_output(L);
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, end_transcript);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &script);
}
