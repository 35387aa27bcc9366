/* Ctrl-C: a mark while a line is typed, a stop for what runs. */
#include "terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static lua_State *volatile running;
static volatile sig_atomic_t interrupted, echoed, count;
static int kept;

/* --- Ctrl-C --------------------------------------------------------------- */

static void on_interrupt(int number)
{
    int saved = errno, times = 0;
    (void)number;
    repl_echo_control('C');
    interrupted = echoed = 1;
    count++;
    if (running != NULL)
        lumat_interrupt(running);
    else
        times = lumat_interrupt_finaliser();
    if (times == 1)
        repl_forget_presses();
    if (kept && (running != NULL || times > 0))
        repl_count_press();
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
    repl_prepare_leaving();
    catch_interrupts(0, NULL);
}

/* A Ctrl-C since the entry was read stops what it calls. */
static int call(lua_State *L, int nargs)
{
    int status;
    repl_forget_presses();
    running = L;
    if (interrupted)
        lumat_interrupt(L);
    repl_watch_start(L);
    status = lumat_call(L, nargs);
    repl_watch_end();
    running = NULL;
    repl_forget_presses();
    return status;
}

/* --- --time --------------------------------------------------------------- */

/* Seconds that what does not stop has to end nevertheless, before the program
 * ends: compiling, collecting garbage, finalisers that catch errors. At a
 * prompt it goes on, and Ctrl-C is there. */
static const double GRACE = 5;

static double most_seconds; /* of a call; 0: as many as it takes */
static lua_State *volatile limited;
static volatile sig_atomic_t expired;
static char unstopped[96]; /* what is said then */

static void on_alarm(int number)
{
    int saved = errno;
    (void)number;
    if (expired && !kept) {
        if (write(STDERR_FILENO, unstopped, strlen(unstopped)) < 0)
            _exit(1); /* nobody was told */
        _exit(REPL_INTERRUPTED);
    }
    expired = 1;
    if (limited != NULL)
        lumat_interrupt(limited);
    else
        lumat_interrupt_finaliser();
    if (!kept)
        repl_set_alarm(GRACE);
    errno = saved;
}

void repl_limit_time(double seconds)
{
    struct sigaction action = {.sa_handler = on_alarm};
    most_seconds = seconds;
    snprintf(unstopped, sizeof unstopped,
             "lumat: --time=%.14g allows no more, and what runs does not "
             "stop\n",
             seconds);
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
}

void repl_begin_time(void)
{
    expired = 0;
    if (most_seconds > 0 && !kept)
        repl_set_alarm(most_seconds);
}

void repl_end_time(void)
{
    if (most_seconds > 0 && !kept)
        repl_set_alarm(0);
}

void repl_interrupts_stop(lua_State *L)
{
    lua_State *last = running;
    repl_forget_presses();
    running = L;
    if (most_seconds > 0) {
        expired = 0;
        limited = L;
        repl_set_alarm(L != NULL ? most_seconds : 0);
    }
    if (L == NULL && last != NULL)
        lumat_end_interrupt(last);
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
    repl_set_alarm(most_seconds);
    status = function(L, nargs);
    repl_set_alarm(0);
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
    repl_forget_presses();
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
