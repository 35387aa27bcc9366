/* Ctrl-C: a mark while a line is typed, a stop for what runs. */
#include "interrupt.h"

#include "typing.h"
#include "watch_screen.h"

#include <errno.h>
#include <signal.h>
#include <sys/time.h>

static lua_State *volatile running;
static volatile sig_atomic_t interrupted, echoed, count;
static int kept;

static void on_interrupt(int number)
{
    int saved = errno;
    (void)number;
    repl_echo_control('C');
    interrupted = echoed = 1;
    count++;
    if (running != NULL)
        lumat_interrupt(running);
    errno = saved;
}

/* Without SA_RESTART: a read of the terminal has to end, too. */
static void catch_interrupts(int flags, struct sigaction *old)
{
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, old);
}

void repl_keep_interrupts(void)
{
    kept = 1;
    catch_interrupts(0, NULL);
}

void repl_interrupts_stop(lua_State *L)
{
    lua_State *last = running;
    running = L;
    if (L == NULL && last != NULL)
        lumat_end_interrupt(last);
}

/* A Ctrl-C since the entry was read stops what it calls. */
static int call(lua_State *L, int nargs)
{
    int status;
    running = L;
    if (interrupted)
        lumat_interrupt(L);
    repl_watch_start(L);
    status = lumat_call(L, nargs);
    repl_watch_end();
    running = NULL;
    return status;
}

/* --- --time --------------------------------------------------------------- */

static double most_seconds; /* of a call; 0: as many as it takes */
static lua_State *volatile limited;
static volatile sig_atomic_t expired;

static void on_alarm(int number)
{
    (void)number;
    expired = 1;
    if (limited != NULL)
        lumat_interrupt(limited);
}

void repl_limit_time(double seconds)
{
    struct sigaction action = {.sa_handler = on_alarm};
    most_seconds = seconds;
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
}

static void set_alarm(double seconds)
{
    struct itimerval timer = {.it_value.tv_sec = (time_t)seconds};
    timer.it_value.tv_usec =
        (suseconds_t)((seconds - (double)timer.it_value.tv_sec) * 1e6);
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* "interrupted at f.lua:3: --time=2 allows no more". */
static void explain_limit(lua_State *L)
{
    if (lua_type(L, -1) != LUA_TSTRING)
        return;
    lua_pushfstring(L, "%s: --time=%f allows no more", lua_tostring(L, -1),
                    (LUAI_UACNUMBER)most_seconds);
    lua_replace(L, -2);
}

static int call_limited(lua_State *L, int nargs,
                        int (*function)(lua_State *L, int nargs))
{
    int status;
    if (most_seconds == 0 || limited != NULL)
        return function(L, nargs);
    expired = 0;
    limited = L;
    set_alarm(most_seconds);
    status = function(L, nargs);
    set_alarm(0);
    limited = NULL;
    if (status != LUA_OK && expired)
        explain_limit(L);
    return status;
}

/* A program started with Ctrl-C ignored, as nohup does, stays so. */
int repl_call(lua_State *L, int nargs)
{
    struct sigaction old;
    int status;
    if (kept)
        return call_limited(L, nargs, call);
    sigaction(SIGINT, NULL, &old);
    if (old.sa_handler == SIG_IGN)
        return call_limited(L, nargs, lumat_call);
    catch_interrupts(SA_RESETHAND, NULL);
    status = call_limited(L, nargs, call);
    sigaction(SIGINT, &old, NULL);
    return status;
}

int repl_interrupted(void)
{
    return interrupted;
}

void repl_clear_interrupt(void)
{
    interrupted = 0;
}

int repl_take_echo(void)
{
    int was_echoed = echoed;
    echoed = 0;
    return was_echoed;
}

unsigned repl_interrupt_count(void)
{
    return (unsigned)count;
}
