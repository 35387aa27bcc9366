/* Leaving with the variables saved, when the program cannot go on; and the
 * memory that is kept for that, or for the prompt. */
#include "terminal.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <readline/readline.h>

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

typedef lumat_rescued rescue(const char *const *paths, char *said, size_t size);

/* Saves the variables by that way, in the first of the places found before
 * that can be written, and leaves with the code when what came of it is enough.
 * Else returns it, with the reason in said, of LUMAT_RESCUE_TEXT bytes. */
static lumat_rescued save_and_leave(rescue *way, lumat_rescued enough, int code,
                                    char *said)
{
    const char *paths[] = {unanswered.near, unanswered.here, NULL};
    lumat_rescued result;
    repl_make_folders(unanswered.near);
    result = way(paths, said, LUMAT_RESCUE_TEXT);
    if (result < enough)
        return result;
    tell("", said);
    leave(code);
}

/* Where the copy could not save all, this process tries. */
static void leave_running(void)
{
    char said[LUMAT_RESCUE_TEXT];
    lumat_rescued result;
    if (unanswered.tries == 0)
        tell("", "saving the variables");
    result =
        save_and_leave(lumat_rescue, LUMAT_RESCUED, REPL_INTERRUPTED, said);
    if (result == LUMAT_RESCUE_LATER && ++unanswered.tries < TRIES) {
        try_in(RETRY);
        return;
    }
    unanswered.is_last = 1;
    if (result == LUMAT_RESCUED_IN_PART) {
        if (said[0] != '\0')
            tell("", said);
        limit_rest();
        result = save_and_leave(lumat_rescue_here, LUMAT_RESCUED,
                                REPL_INTERRUPTED, said);
    }
    tell("error: ", result == LUMAT_RESCUE_FAILED ? said : UNSAVED);
    tell("note: ", "another Ctrl-C leaves without them");
}

static void try_again(int number)
{
    (void)number;
    if (unanswered.is_last)
        leave(REPL_INTERRUPTED);
    leave_running();
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
            leave_running();
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

/* --- memory for when there is no other ------------------------------------ */

/* Bytes: for a screen and some line, or an entry that makes room; and for
 * saving the variables, at least and at first. */
enum { FOR_PROMPT = 1 << 20, LEAST = 16 << 20, FOR_LEAVING = 32 << 20 };

static void *for_prompt, *for_leaving;
static size_t left; /* of what is for leaving */

static int has_room(size_t size)
{
    void *room = malloc(size);
    free(room);
    return room != NULL;
}

/* Frees what is kept for the prompt, or also what is for leaving. */
static void give_reserve(void)
{
    free(for_prompt);
    for_prompt = NULL;
}

static void give_last_reserve(void)
{
    give_reserve();
    free(for_leaving);
    for_leaving = NULL;
    left = 0;
}

/* A session that was given what was for its prompt, and has used it. */
static void give_more(void)
{
    if (for_prompt != NULL) {
        give_reserve();
    } else if (left > LEAST) {
        free(for_leaving);
        for_leaving = malloc(left - FOR_PROMPT);
        left = for_leaving != NULL ? left - FOR_PROMPT : 0;
    }
}

/* An entry that may free something needs memory, too: then it gets this. */
void repl_keep_reserve(void)
{
    static int is_short;
    int was_short = is_short;
    is_short = !has_room(FOR_PROMPT);
    if (is_short) {
        give_more();
        if (!was_short)
            repl_note("there is hardly any memory left; :who shows what takes "
                      "it, x = nil frees x");
        return;
    }
    if (left < FOR_LEAVING && has_room(2 * FOR_LEAVING)) {
        give_last_reserve();
        for_leaving = malloc(FOR_LEAVING);
        left = for_leaving != NULL ? FOR_LEAVING : 0;
    }
    if (for_prompt == NULL && has_room(2 * FOR_PROMPT))
        for_prompt = malloc(FOR_PROMPT);
}

void repl_leave_short(void)
{
    char said[LUMAT_RESCUE_TEXT] = "";
    if (rl_readline_state & RL_STATE_TERMPREPPED)
        rl_deprep_terminal();
    give_last_reserve();
    tell("error: ", "there is no memory left for what is typed");
    save_and_leave(lumat_rescue_here, LUMAT_RESCUED_IN_PART, REPL_OUT_OF_MEMORY,
                   said);
    tell("error: ", UNSAVED);
    tell("error: ", said);
    leave(REPL_OUT_OF_MEMORY);
}

/* --- Readline's memory ----------------------------------------------------
 * It lets a program define these, as Bash does, and looks for them by these
 * names in the program first: its own end it without a word. */

__attribute__((visibility("default"))) void *xmalloc(size_t size);
__attribute__((visibility("default"))) void *xrealloc(void *old, size_t size);

static void *allocate(void *old, size_t size)
{
    void *memory = realloc(old, size > 0 ? size : 1);
    if (memory != NULL)
        return memory;
    give_reserve();
    memory = realloc(old, size > 0 ? size : 1);
    if (memory == NULL)
        repl_leave_short();
    return memory;
}

void *xmalloc(size_t size)
{
    return allocate(NULL, size);
}

void *xrealloc(void *old, size_t size)
{
    return allocate(old, size);
}
