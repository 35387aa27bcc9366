/* While something runs: Ctrl-C, by a hook that stops Lua and a flag that stops
 * the loops of gpu/; and how far it is. */
#include "stopping.h"

#include "frames.h"
#include "hints.h"
#include "library.h"
#include "lumat.h"
#include "sparse_matrix.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* The thread that runs; whether it is being stopped, and whether the last
 * call was. */
static lua_State *running;
static volatile sig_atomic_t stopping, was_stopped;

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

/* Pushes "interrupted", with the place when there is one. Returns whether any
 * Lua runs. */
static int push_interrupted(lua_State *L)
{
    int runs = find_place(L);
    if (*place)
        lua_pushfstring(L, "interrupted at %s", place);
    else
        lua_pushliteral(L, "interrupted");
    return runs;
}

int lumat_raise_interrupted(lua_State *L)
{
    push_interrupted(L);
    return lua_error(L);
}

static int is_incomplete(lua_State *L, int index)
{
    const gpu_matrix *m = lumat_test_matrix(L, index);
    const gpu_sparse *s = m ? NULL : lumat_test_sparse(L, index);
    return m ? gpu_is_incomplete(m) : s && gpu_is_incomplete(&s->values);
}

/* Of the names in the table on top, that of a matrix which shares m's
 * storage: the first in order, or `found`. */
static const char *find_sharer(lua_State *L, const gpu_matrix *m,
                               const char *found)
{
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        const gpu_matrix *other = lumat_test_matrix(L, -1);
        if (lua_type(L, -2) != LUA_TSTRING || !other ||
            !gpu_shares_storage(m, other))
            continue;
        const char *name = lua_tostring(L, -2);
        if (strcmp(name, "ans") != 0 && (!found || strcmp(name, found) < 0))
            found = name;
    }
    lua_pop(L, 1);
    return found;
}

/* The value at index by its own name, or by that of one it is a view of. */
static const char *name_incomplete(lua_State *L, int index)
{
    const gpu_matrix *m = lumat_test_matrix(L, index);
    const char *name = lumat_name_of(L, index, ""), *found = NULL;
    if (*name || !m)
        return *name ? name : "the matrix";
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.session");
    found = find_sharer(L, m, found);
    lua_pushglobaltable(L);
    found = find_sharer(L, m, found);
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
    lua_pushfstring(L, *place ? "interrupted at %s" : "interrupted", place);
    lua_replace(L, -2);
    return LUA_ERRRUN;
}

/* Stays in place until the call that is being stopped ends, so that code
 * which catches errors does not go on. What passes the error on when no Lua
 * runs any more is left alone. */
static void stop(lua_State *L, lua_Debug *ar)
{
    if (!stopping) { /* a coroutine that outlived its call */
        lua_sethook(L, NULL, 0, 0);
        return;
    }
    lua_getinfo(L, "S", ar);
    if (*ar->what == 'C' && ar->event != LUA_HOOKRET)
        return; /* what closes variables has to run */
    gpu_fail(GPU_INTERRUPTED, "interrupted");
    if (push_interrupted(L))
        raise_past_handlers(L);
    lua_pop(L, 1);
}

void lumat_interrupt(lua_State *L)
{
    int any = LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT;
    stopping = was_stopped = 1;
    gpu_interrupt();
    lua_sethook(L, stop, any, 1);
    if (running && running != L)
        lua_sethook(running, stop, any, 1);
}

void lumat_end_interrupt(lua_State *L)
{
    stopping = 0;
    if (lua_gethook(L) == stop)
        lua_sethook(L, NULL, 0, 0);
    gpu_clear_interrupt();
}

void lumat_begin_stoppable(lua_State *L)
{
    was_stopped = stopping;
    *place = '\0';
    running = L;
}

void lumat_end_stoppable(lua_State *L)
{
    stopping = 0;
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

/* --- coroutines ----------------------------------------------------------- */

/* Calls the function under the arguments with `inner` noted as running. */
static int call_noted(lua_State *L, lua_State *inner)
{
    lua_State *outer = running;
    running = inner;
    int status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
    running = outer;
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

void lumat_note_coroutines(lua_State *L)
{
    lua_getglobal(L, "xpcall");
    xpcall = lua_tocfunction(L, -1);
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
    lua_pop(L, 2);
}
