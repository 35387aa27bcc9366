/* While something runs: Ctrl-C, by a hook that stops Lua and a flag that stops
 * the loops of gpu/; and how far it is.
 *
 * How Ctrl-C travels, from above to below; behind a function stands its room
 * where that is another.
 *
 *   the key, or kill -INT: SIGINT
 *     |
 *     v
 *   on_interrupt (repl/terminal)    shows ^C and counts it
 *     |
 *     +- a line is typed: Readline caught the signal first, act_on_signals
 *     |    (repl/line) has it raised again; get_key ends the line, which
 *     |    edit_line gives back as interrupted
 *     +- nothing is called, but the collector runs a finaliser:
 *     |    lumat_interrupt_finaliser, from where it goes on as below
 *     +- an entry or a script runs
 *     v
 *   lumat_interrupt                 still in the handler: it only sets
 *     |
 *     +- lumat_stopping   looked at by lumat_look, in those of Lua's own
 *     |                   functions that may last (lua/lualib)
 *     +- gpu_interrupt    the flag of gpu/, looked at by gpu_poll and POLL_AT
 *     |                   (its own loops), gpu_cpu_interrupted (each part of a
 *     |                   kernel on the CPU), wait_until (for a GPU), and
 *     |                   lumat_poll (loops of lua/ over elements)
 *     +- set_hook         stop() comes at the next line, call or instruction of
 *     |                   Lua, in the coroutine that runs (call_noted)
 *     +- set_timer        on_timer comes in 0.1 s, and has hooks called where
 *                         Lua calls none: in finalisers and message handlers
 *
 *   Whichever is reached first:
 *
 *   gpu/ returns GPU_INTERRUPTED            Lua comes to stop()
 *     |  the result, written in part,         |
 *     |  is marked: gpu_leave_incomplete      |
 *     v                                       |
 *   lumat_try -> lumat_raise_interrupted      |
 *     |                                       |
 *     v                                       v
 *   the error "interrupted at f.lua:31"; the hook stays, so a pcall that caught
 *     |  it is stopped again, with the first place; an xpcall whose handler is
 *     |  written in Lua is passed by (raise_past_handlers)
 *     v
 *   lumat_call (lua/session)        lumat_end_stoppable: no hook, no timer;
 *     |                             lumat_explain_stopped: the message;
 *     |                             gpu_clear_interrupt: the flag is down
 *     v
 *   repl_call (repl/terminal)
 *     +- at a prompt: repl_report_entry prints it, repl_read_line prompts, and
 *     |    entries that were typed ahead are dropped (repl_queue_interrupted)
 *     +- in a script: repl_run prints it, lumat_exit_code makes it 130
 *
 * A matrix that was left incomplete is shown as such, and an operation that
 * reads it fails with GPU_INCOMPLETE (gpu_check_operands), to which
 * lumat_raise_incomplete gives the variable's name. What writes all of it makes
 * it whole (gpu_make_whole).
 *
 * The second Ctrl-C, while the first is still to be answered: in a script the
 * handler is gone (SA_RESETHAND), and the signal ends the process. At a prompt
 * lumat_interrupt does not wait for the timer but does what that does, and has
 * it come every 50 us from then on. The third, where half a second has passed
 * since the first: repl_count_press (repl/terminal) tells that this does not
 * stop; and one more, half a second later, has leave_running save the variables
 * and leave.
 *
 * The time limit of --time comes the same way, from SIGALRM and on_alarm.
 */
#include "cancellation.h"
#include "parse.h"
#include "value.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* The thread that runs; whether it is being stopped, and whether the last
 * call was; how often what runs behind its end, a finaliser, was. */
static lua_State *volatile running;
volatile sig_atomic_t lumat_stopping;
static volatile sig_atomic_t was_stopped, is_behind;

lua_State *lumat_running(void)
{
    return running;
}

/* --- what is said --------------------------------------------------------- */

/* Where the running call was stopped first; code that catches errors is
 * stopped again on its way out. */
static char place[LUA_IDSIZE + 16];

/* Notes the user's line that runs. Returns whether any Lua does. */
static int find_place(lua_State *L)
{
    lua_Debug ar;
    int runs = 0;
    for (int level = 0; lua_getstack(L, level, &ar); level++) {
        lua_getinfo(L, "Sl", &ar);
        runs |= ar.currentline > 0;
        if (!lumat_is_users(&ar))
            continue;
        if (!*place)
            snprintf(place, sizeof place, "%s:%d", ar.short_src,
                     ar.currentline);
        break;
    }
    return runs;
}

/* What is raised, with the place behind it when there is one. */
static const char INTERRUPTED[] = "interrupted", AT[] = " at ";

static void push_interrupted(lua_State *L)
{
    lua_pushfstring(L, "%s%s%s", INTERRUPTED, *place ? AT : "", place);
}

int lumat_raise_interrupted(lua_State *L)
{
    find_place(L);
    push_interrupted(L);
    return lua_error(L);
}

/* The place may have been found after a first error was raised without it. */
size_t lumat_interrupt_length(const char *message, int *line)
{
    size_t word = sizeof INTERRUPTED - 1, at = sizeof AT - 1;
    size_t length = strlen(place);
    *line = 0;
    if (!was_stopped || strncmp(message, INTERRUPTED, word) != 0)
        return 0;
    const char *p = message + word;
    if (!*place || strncmp(p, AT, at) != 0 ||
        strncmp(p + at, place, length) != 0)
        return word;
    char prefix[sizeof place + 2];
    snprintf(prefix, sizeof prefix, "%s: ", place);
    lumat_skip_place(prefix, line);
    return word + at + length;
}

static int is_incomplete(lua_State *L, int index)
{
    const gpu_matrix *m = lumat_test_matrix(L, index);
    const gpu_sparse *s = m ? NULL : lumat_look_at_sparse(L, index);
    return m ? gpu_is_incomplete(m) : s && gpu_is_incomplete(&s->values);
}

/* The value at index by its own name, or by that of one it is a view of: the
 * first in order. */
static const char *name_incomplete(lua_State *L, int index)
{
    const gpu_matrix *m = lumat_test_matrix(L, index);
    const char *name = lumat_name_of(L, index, ""), *found = NULL;
    if (*name || !m)
        return *name ? name : "the matrix";
    lumat_variables v = lumat_begin_variables(L, LUMAT_WITH_HIDDEN);
    while (lumat_next_variable(&v)) {
        const gpu_matrix *other = lumat_test_matrix(L, -1);
        if (other && gpu_shares_storage(m, other) &&
            strcmp(v.name, "ans") != 0 && (!found || strcmp(v.name, found) < 0))
            found = v.name;
    }
    return found ? found : "the matrix";
}

int lumat_raise_incomplete(lua_State *L)
{
    const char *name = "the matrix";
    int index = 1, top = lua_gettop(L);
    while (index <= top && !is_incomplete(L, index))
        index++;
    if (index <= top)
        name = name_incomplete(L, index);
    return lumat_raise(L,
                       "%s is incomplete: the operation that wrote it was "
                       "interrupted",
                       name);
}

/* --- stopping ------------------------------------------------------------- */

static lua_CFunction xpcall; /* Lua's own */

/* Is the frame that of an xpcall whose handler, its second argument, is no C
 * function, such as debug.traceback is? */
static int has_handler(lua_State *L, lua_Debug *ar)
{
    int found = 0;
    lua_getinfo(L, "f", ar);
    if (lua_tocfunction(L, -1) == xpcall && lua_getlocal(L, ar, 2)) {
        found = !lua_iscfunction(L, -1);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return found;
}

/* May such a handler run when an error is raised in L? */
static int may_be_handled(lua_State *L)
{
    lua_Debug ar;
    for (int level = 0; xpcall && lua_getstack(L, level, &ar); level++)
        if (has_handler(L, &ar))
            return 1;
    return 0;
}

/* Raises the string on top. Lua calls a handler with its hooks off, so that one
 * which goes on for ever could not be stopped. The one error without a handler
 * is that of memory: lumat_explain_stopped says what it was. */
static void raise_past_handlers(lua_State *L)
{
    if (may_be_handled(L))
        lua_pushliteral(L, "not enough memory");
    lua_error(L);
}

int lumat_explain_stopped(lua_State *L, int status)
{
    if (status != LUA_ERRMEM || !was_stopped)
        return status;
    push_interrupted(L);
    lua_replace(L, -2);
    return LUA_ERRRUN;
}

/* Stays in place until the call that is being stopped ends, so that code
 * which catches errors does not go on. What passes the error on when no Lua
 * runs any more is left alone. */
static void stop(lua_State *L, lua_Debug *ar)
{
    if (!lumat_stopping) { /* a coroutine that outlived its call */
        lua_sethook(L, NULL, 0, 0);
        return;
    }
    lua_getinfo(L, "Sn", ar);
    if (*ar->what == 'C' &&
        (ar->event != LUA_HOOKRET || (ar->name && !strcmp(ar->name, "__gc"))))
        return; /* what closes variables has to run; a finaliser has */
    gpu_fail(GPU_INTERRUPTED, INTERRUPTED);
    int runs = find_place(L);
    push_interrupted(L);
    if (runs)
        raise_past_handlers(L);
    lua_pop(L, 1);
}

static void set_hook(lua_State *L)
{
    int any = LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT;
    lua_sethook(L, stop, any, 1);
}

/* --- where Lua calls no hooks ---------------------------------------------
 *
 * In finalisers, hooks and message handlers it calls none (lgc.c, ldo.c), and
 * it has no function that changes that: one that goes on for ever could not be
 * stopped. Resuming finalisers in coroutines would: but __gc would no longer be
 * the user's function, nor debug.getinfo call it a metamethod. So what is to
 * stop has some time to end, and then the byte of its thread that says whether
 * hooks are called is set. It is the second behind Lua's header of an object
 * (lstate.h of Lua 5.4), which is tried before it is relied on. */

enum { CALLS_HOOKS = sizeof(void *) + 3 };

/* Nanoseconds: the time to end, and from then on between two looks whether
 * there is another finaliser; that time behind a second Ctrl-C. */
enum { PATIENCE = 100000000, NEXT = 1000000, HURRY = 50000 };

static int is_byte_known, looks;
static timer_t timer;
static int has_timer;

static volatile unsigned char *calls_hooks(lua_State *L)
{
    return (volatile unsigned char *)L + CALLS_HOOKS;
}

static int do_nothing(lua_State *L)
{
    (void)L;
    return 0;
}

/* A hook: with the byte set, what it calls comes by here again. */
static void look_at_byte(lua_State *L, lua_Debug *ar)
{
    (void)ar;
    if (++looks > 1 || *calls_hooks(L) != 0)
        return;
    *calls_hooks(L) = 1;
    lua_pushcfunction(L, do_nothing);
    lua_call(L, 0, 0);
    *calls_hooks(L) = 0;
}

static int find_byte(lua_State *L)
{
    lua_State *other = lua_newthread(L);
    int is_set = *calls_hooks(other) == 1;
    looks = 0;
    lua_sethook(other, look_at_byte, LUA_MASKCALL, 0);
    lua_pushcfunction(other, do_nothing);
    lua_call(other, 0, 0);
    is_set &= *calls_hooks(other) == 1;
    lua_pop(L, 1);
    return is_set && looks == 2;
}

static void set_timer(long first, long next)
{
    struct itimerspec times = {{0, next}, {0, first}};
    if (has_timer)
        timer_settime(timer, 0, &times, NULL);
}

/* The hook is set again because Lua that runs can take it away. */
static void insist(lua_State *L)
{
    set_hook(L);
    if (is_byte_known)
        *calls_hooks(L) = 1;
}

static void on_timer(int number)
{
    int saved = errno;
    (void)number;
    if (lumat_stopping && running)
        insist(running);
    else
        set_timer(0, 0);
    errno = saved;
}

/* A signal of its own: SIGALRM may be the script's, or time a limit. */
static void open_timer(void)
{
    struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
                             .sigev_signo = SIGRTMIN};
    sigemptyset(&action.sa_mask);
    has_timer = sigaction(SIGRTMIN, &action, NULL) == 0 &&
                timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
}

/* --- a call --------------------------------------------------------------- */

void lumat_interrupt(lua_State *L)
{
    int again = lumat_stopping;
    lumat_stopping = was_stopped = 1;
    is_behind = 0;
    gpu_interrupt();
    set_hook(L);
    if (running && running != L)
        set_hook(running);
    if (again && running)
        insist(running);
    if (again)
        set_timer(HURRY, HURRY);
    else
        set_timer(PATIENCE, NEXT);
}

int lumat_interrupt_finaliser(void)
{
    lua_State *L = running;
    if (!L || !is_byte_known || (!is_behind && *calls_hooks(L)))
        return 0;
    int times = is_behind + 1;
    if (times == 1)
        *place = '\0';
    lumat_interrupt(L);
    is_behind = times;
    return times;
}

void lumat_end_interrupt(lua_State *L)
{
    if (lumat_stopping)
        set_timer(0, 0);
    lumat_stopping = is_behind = 0;
    if (lua_gethook(L) == stop)
        lua_sethook(L, NULL, 0, 0);
    gpu_clear_interrupt();
}

int lumat_is_told_of(const char *warning)
{
    int line;
    const char *error = lumat_behind_said(warning, LUMAT_LUA_FINALISER);
    if (!lumat_stopping || !error ||
        !(lumat_interrupt_length(error, &line) > 0 || /* what stop() raises */
          lumat_find_said(error, LUMAT_LUA_NO_MEMORY)))
        return 0;
    if (!is_behind)
        return 1;
    lumat_end_interrupt(running);
    return 0;
}

void lumat_begin_stoppable(lua_State *L)
{
    if (is_behind)
        lumat_end_interrupt(L);
    was_stopped = lumat_stopping;
    *place = '\0';
    running = L;
}

void lumat_end_stoppable(lua_State *L)
{
    if (lumat_stopping)
        set_timer(0, 0);
    lumat_stopping = 0;
    lua_sethook(L, NULL, 0, 0);
}

int lumat_was_stopped(void)
{
    return was_stopped;
}

void lumat_poll(lua_State *L, int64_t i)
{
    enum { ROUNDS = 1 << 14 };
    if (i % ROUNDS == 0)
        lumat_try(L, gpu_poll());
}

/* A finaliser that began since has its time, too. */
void lumat_stop_here(lua_State *L)
{
    if (!is_byte_known || *calls_hooks(L))
        lumat_try(L, gpu_poll());
}

/* --- progress ------------------------------------------------------------- */

void lumat_watch_progress(void (*began)(void), void (*ended)(void))
{
    gpu_watch_progress(began, ended);
}

int lumat_look_at_progress(lumat_progress *out)
{
    gpu_progress p;
    int runs = gpu_look_at_progress(&p);
    memcpy(out->what, p.what, sizeof out->what);
    out->seconds = p.seconds;
    out->share = p.share;
    out->left = p.left;
    return runs;
}

/* --- which entry runs, and what time it is -------------------------------- */

static struct {
    const char *text; /* NULL: none runs */
    int number;
} entry;

const char *lumat_running_entry(int *number)
{
    *number = entry.number;
    return entry.text;
}

void lumat_set_running_entry(const char *text, int number)
{
    entry.text = text;
    entry.number = number;
}

double lumat_now(void)
{
    return gpu_now();
}

/* --- coroutines ----------------------------------------------------------- */

/* Calls the function under the arguments with `inner` noted as running. */
static int call_noted(lua_State *L, lua_State *inner)
{
    lua_State *outer = running;
    running = inner;
    int status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
    running = outer;
    if (lumat_stopping && outer)
        set_hook(outer); /* which the signal found waiting */
    return status == LUA_OK ? lua_gettop(L) : lua_error(L);
}

/* coroutine.resume and close, noting which thread runs, so that a loop inside
 * a coroutine can be stopped as well. Upvalue: Lua's own. */
static int resume_noted(lua_State *L)
{
    lua_State *inner = lua_tothread(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    return call_noted(L, inner ? inner : running);
}

/* What coroutine.wrap returns. Upvalues: Lua's own, its thread. */
static int call_wrapped(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    return call_noted(L, lua_tothread(L, lua_upvalueindex(2)));
}

static int wrap_noted(lua_State *L)
{
    lua_settop(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, 1, 1);
    if (!lua_getupvalue(L, 1, 1))
        return 1;
    lua_pushcclosure(L, call_wrapped, 2);
    return 1;
}

static void note_coroutines(lua_State *L)
{
    lua_getglobal(L, "coroutine");
    lua_getfield(L, -1, "resume");
    lua_pushcclosure(L, resume_noted, 1);
    lua_setfield(L, -2, "resume");
    lua_getfield(L, -1, "close");
    lua_pushcclosure(L, resume_noted, 1);
    lua_setfield(L, -2, "close");
    lua_getfield(L, -1, "wrap");
    lua_pushcclosure(L, wrap_noted, 1);
    lua_setfield(L, -2, "wrap");
    lua_pop(L, 1);
}

/* --- long strings of UTF-8 ------------------------------------------------
 *
 * Lua's own functions, called for a part after the other. */

enum { PART = 1 << 20, MOST_CONTINUING = 5 };

static lua_CFunction utf8_len, utf8_offset; /* Lua's own */

/* The argument as a place from the start, or what is no place. */
static lua_Integer check_place(lua_State *L, int arg, lua_Integer otherwise,
                               lua_Integer size)
{
    lua_Integer n = luaL_optinteger(L, arg, otherwise);
    return n >= 0 ? n : n < -size ? 0 : size + n + 1;
}

static int is_continuing(char c)
{
    return (c & 0xC0) == 0x80;
}

/* Sets the arguments behind the string and calls; results are on top. */
static int call_part(lua_State *L, lua_CFunction f, lua_Integer second,
                     lua_Integer third)
{
    lumat_look(L);
    lua_settop(L, 4);
    lua_pushinteger(L, second);
    lua_replace(L, 2);
    lua_pushinteger(L, third);
    lua_replace(L, 3);
    return f(L);
}

/* A part ends with a whole character, as the next begins with one. */
static int length_of_utf8(lua_State *L)
{
    size_t bytes;
    const char *s = luaL_checklstring(L, 1, &bytes);
    lua_Integer size = (lua_Integer)bytes, characters = 0, end;
    lua_Integer first = check_place(L, 2, 1, size);
    lua_Integer last = check_place(L, 3, -1, size);
    if (size <= PART || first < 1 || first > size + 1 || last > size)
        return utf8_len(L);
    for (; first <= last; first = end + 1) {
        end = last - first < PART ? last : first + PART - 1;
        for (int i = 0; i < MOST_CONTINUING && end < last; i++)
            end += is_continuing(s[end]);
        int results = call_part(L, utf8_len, first, end);
        if (results > 1) /* nil and the place that is none */
            return results;
        characters += lua_tointeger(L, -1);
    }
    lua_pushinteger(L, characters);
    return 1;
}

static int offset_in_utf8(lua_State *L)
{
    luaL_checkstring(L, 1);
    lua_Integer n = luaL_checkinteger(L, 2), step = n > 0 ? PART : -PART;
    for (; n > PART || n < -PART; n -= step) {
        lumat_look(L);
        lua_settop(L, 3);
        lua_pushinteger(L, n > 0 ? step + 1 : step);
        lua_replace(L, 2);
        utf8_offset(L);
        if (lua_isnil(L, -1))
            return 1;
        lua_replace(L, 3);
    }
    lua_pushinteger(L, n);
    lua_replace(L, 2);
    return utf8_offset(L);
}

/* Puts f in the place of a field of the table on top; returns what was. */
static lua_CFunction replace(lua_State *L, const char *name, lua_CFunction f)
{
    lua_getfield(L, -1, name);
    lua_CFunction was = lua_tocfunction(L, -1);
    lua_pop(L, 1);
    lua_pushcfunction(L, f);
    lua_setfield(L, -2, name);
    return was;
}

/* private.is_interrupt(message): is it what the running call is stopped by? */
static int is_interrupt(lua_State *L)
{
    int line;
    const char *message = lua_tostring(L, 1);
    lua_pushboolean(L, message && lumat_interrupt_length(message, &line) > 0);
    return 1;
}

void lumat_open_stopping(lua_State *L)
{
    is_byte_known = find_byte(L);
    open_timer();
    lua_getglobal(L, "xpcall");
    xpcall = lua_tocfunction(L, -1);
    note_coroutines(L);
    lua_getglobal(L, "utf8");
    utf8_len = replace(L, "len", length_of_utf8);
    utf8_offset = replace(L, "offset", offset_in_utf8);
    lua_pop(L, 2);
    lua_pushcfunction(L, is_interrupt);
    lumat_set_private(L, "is_interrupt");
}

void lumat_close_stopping(void)
{
    set_timer(0, 0);
    running = NULL;
}
