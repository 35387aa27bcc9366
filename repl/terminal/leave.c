/* Leaving with the variables saved, when the program cannot go on. */
#include "leave.h"

#include "echo_off.h"
#include "lumat.h"
#include "paths.h"
#include "report.h"
#include "reserve.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <readline/readline.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

void repl_set_alarm(double seconds)
{
    struct itimerval timer = {.it_value.tv_sec = (time_t)seconds};
    timer.it_value.tv_usec =
        (suseconds_t)((seconds - (double)timer.it_value.tv_sec) * 1e6);
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* Seconds: from the first Ctrl-C until leaving is offered, from there until
 * that is accepted, until the variables are tried again, and for those on a
 * GPU. */
static const double OFFER = 0.5, ACCEPT = 0.5, RETRY = 0.005, REST = 60;
enum { OFFERING = 3 /* which Ctrl-C it is */, TRIES = 100 };
static const char UNSAVED[] = "the variables cannot be saved";

static struct {
    int presses; /* of Ctrl-C since the call began */
    double first, offered;
    int tries, is_last; /* attempts; 1: no more than to leave */
    int has_alarm;
    struct sigaction alarm;        /* what it was before */
    char near[PATH_MAX], here[64]; /* where the variables go */
} unanswered;

static void tell(const char *label, const char *text)
{
    const char *pieces[] = {"\n", label, text};
    for (int i = 0; i < 3; i++)
        if (write(STDERR_FILENO, pieces[i], strlen(pieces[i])) < 0)
            return;
}

static _Noreturn void leave(int code)
{
    repl_typing_end();
    tell("", "");
    _exit(code);
}

static void try_again(int number);

/* Has that called then, whatever SIGALRM was for until now. */
static void try_in(double seconds)
{
    struct sigaction action = {.sa_handler = try_again};
    sigfillset(&action.sa_mask);
    sigaction(SIGALRM, &action,
              unanswered.has_alarm ? NULL : &unanswered.alarm);
    unanswered.has_alarm = 1;
    repl_set_alarm(seconds);
}

/* Lets what limits the rest of the saving come: its time, and Ctrl-C. */
static void limit_rest(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    sigaddset(&set, SIGINT);
    try_in(REST);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* Where the copy could not save all, this process tries. */
static void save_and_leave(void)
{
    char said[LUMAT_RESCUE_TEXT];
    const char *paths[] = {unanswered.near, unanswered.here, NULL};
    lumat_rescued result;
    if (unanswered.tries == 0)
        tell("", "saving the variables");
    repl_make_folders(unanswered.near);
    result = lumat_rescue(paths, said, sizeof said);
    if (result == LUMAT_RESCUE_LATER && ++unanswered.tries < TRIES) {
        try_in(RETRY);
        return;
    }
    unanswered.is_last = 1;
    if (result == LUMAT_RESCUED_IN_PART) {
        if (said[0] != '\0')
            tell("", said);
        limit_rest();
        result = lumat_rescue_here(paths, said, sizeof said);
    }
    if (result == LUMAT_RESCUED) {
        tell("", said);
        leave(REPL_INTERRUPTED);
    }
    tell("error: ", result == LUMAT_RESCUE_FAILED ? said : UNSAVED);
    tell("note: ", "another Ctrl-C leaves without them");
}

static void try_again(int number)
{
    (void)number;
    if (unanswered.is_last)
        leave(REPL_INTERRUPTED);
    save_and_leave();
}

/* The third of those that did not help has leaving offered, which another one
 * accepts; but not one of the same burst. */
void repl_count_press(void)
{
    double time = lumat_now();
    if (unanswered.presses++ == 0)
        unanswered.first = time;
    if (unanswered.is_last) {
        leave(REPL_INTERRUPTED);
    } else if (unanswered.offered > 0) {
        if (time - unanswered.offered > ACCEPT && unanswered.tries == 0)
            save_and_leave();
    } else if (unanswered.presses >= OFFERING &&
               time - unanswered.first > OFFER) {
        unanswered.offered = time;
        tell("note: ", "this does not stop; another Ctrl-C saves the "
                       "variables and leaves\n");
    }
}

void repl_forget_presses(void)
{
    if (unanswered.has_alarm) {
        repl_set_alarm(0);
        sigaction(SIGALRM, &unanswered.alarm, NULL);
    }
    unanswered.presses = unanswered.tries = unanswered.is_last = 0;
    unanswered.has_alarm = 0;
    unanswered.offered = 0;
}

/* Their names are ready before they are needed: then little is safe. */
void repl_prepare_leaving(void)
{
    char name[32];
    time_t t = time(NULL);
    struct tm date;
    localtime_r(&t, &date);
    strftime(name, sizeof name, "rescued-%Y%m%d-%H%M%S", &date);
    snprintf(unanswered.here, sizeof unanswered.here, "%s-%ld.lum", name,
             (long)getpid());
    if (!repl_user_path(unanswered.near, sizeof unanswered.near,
                        "XDG_STATE_HOME", ".local/state", unanswered.here))
        strcpy(unanswered.near, unanswered.here);
}

void repl_leave_short(void)
{
    char said[LUMAT_RESCUE_TEXT] = "";
    const char *paths[] = {unanswered.near, unanswered.here, NULL};
    if (rl_readline_state & RL_STATE_TERMPREPPED)
        rl_deprep_terminal();
    repl_give_last_reserve();
    tell("error: ", "there is no memory left for what is typed");
    repl_make_folders(unanswered.near);
    if (lumat_rescue_here(paths, said, sizeof said) == LUMAT_RESCUE_FAILED) {
        tell("error: ", UNSAVED);
        tell("error: ", said);
    } else {
        tell("", said);
    }
    leave(REPL_OUT_OF_MEMORY);
}
