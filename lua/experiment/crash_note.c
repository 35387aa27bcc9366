/* Last words: a worker that faults, or calls exit, says so in its file. */
#include "experiment.h"
#include "journal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The file of the worker whose process this is, and whether it holds a claim:
 * what it holds is to blame if this ends. */
static int last_fd = -1;
static volatile sig_atomic_t holding;

static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
enum { FAULTS = sizeof faults / sizeof *faults };
static struct sigaction former[FAULTS];
static char other_stack[65536];
static void (*clean_up)(void);

void lumat_leave_word(const char *word)
{
    if (holding && last_fd >= 0 && write(last_fd, word, strlen(word)) < 0)
        return; /* nothing else can be done */
}

void lumat_at_fault(void (*function)(void))
{
    clean_up = function;
}

/* Once; then what the signal does otherwise, also one that was sent. */
static void on_fault(int number)
{
    int saved = errno;
    char word[] = "died signal 00\n";
    word[12] = (char)('0' + number / 10);
    word[13] = (char)('0' + number % 10);
    lumat_leave_word(word);
    if (clean_up)
        clean_up();
    errno = saved;
    raise(number);
}

static void on_exit_called(void)
{
    lumat_leave_word("died exit\n");
}

static void watch_faults(void)
{
    static int registered;
    struct sigaction action = {.sa_handler = on_fault,
                               .sa_flags = (int)SA_RESETHAND | SA_ONSTACK};
    stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    sigemptyset(&action.sa_mask);
    sigaltstack(&stack, NULL);
    for (int i = 0; i < FAULTS; i++)
        sigaction(faults[i], &action, &former[i]);
    if (!registered)
        atexit(on_exit_called);
    registered = 1;
}

static void unwatch_faults(void)
{
    for (int i = 0; i < FAULTS; i++)
        sigaction(faults[i], &former[i], NULL);
}

void lumat_begin_words(int fd)
{
    if (last_fd >= 0)
        return;
    last_fd = fd;
    watch_faults();
}

void lumat_blame(int fd, int yes)
{
    if (fd == last_fd)
        holding = yes;
}

void lumat_end_words(int fd)
{
    if (fd != last_fd)
        return;
    unwatch_faults();
    holding = 0;
    last_fd = -1;
}
