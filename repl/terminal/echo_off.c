/* The terminal's echo: off from the first prompt on, and on again for what an
 * entry has read the terminal. Of its settings that bit alone is written, so
 * that what a program has set otherwise meanwhile stays. */
#include "terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

static struct {
    volatile sig_atomic_t is_hidden; /* the echo is off, by this file */
    volatile sig_atomic_t controls;  /* it would show ^C */
    volatile sig_atomic_t is_told;   /* who handles Ctrl-C shows it */
    int is_taken;                    /* the terminal is to be hidden */
    int lent;                        /* to how many that read the terminal */
    int terminal;                    /* that shows what is printed, or -1 */
    pid_t owner;                     /* not a process that it started */
} typing = {.is_told = 1, .terminal = -1};

/* --- the terminal's settings ---------------------------------------------- */

/* In the background the terminal is another's: writing its settings would stop
 * the program. */
static int is_ours(struct termios *modes)
{
    return tcgetpgrp(STDIN_FILENO) == getpgrp() &&
           tcgetattr(STDIN_FILENO, modes) == 0;
}

/* A terminal that does not echo already was told so by someone else; and one
 * that does again although it was hidden, as after a stop, is hidden anew. */
static void hide(void)
{
    struct termios modes;
    if (!typing.is_taken || typing.lent > 0 || !is_ours(&modes) ||
        (modes.c_lflag & ECHO) == 0)
        return;
    typing.controls = (modes.c_lflag & ECHOCTL) != 0;
    typing.is_hidden = 1;
    modes.c_lflag &= ~(tcflag_t)ECHO;
    tcsetattr(STDIN_FILENO, TCSANOW, &modes);
}

/* Also called by signal handlers. */
static void show(void)
{
    struct termios modes;
    if (!typing.is_hidden)
        return;
    if (is_ours(&modes)) {
        modes.c_lflag |= ECHO;
        tcsetattr(STDIN_FILENO, TCSANOW, &modes);
    }
    typing.is_hidden = 0;
}

int repl_is_echoing(void)
{
    struct termios modes;
    return typing.is_hidden || tcgetattr(STDIN_FILENO, &modes) != 0 ||
           (modes.c_lflag & ECHO) != 0;
}

/* --- what the terminal would have shown ----------------------------------- */

static void write_out(const char *text, size_t length)
{
    if (typing.terminal >= 0 && write(typing.terminal, text, length) < 0)
        return; /* the terminal is gone */
}

void repl_echo_control(char letter)
{
    char text[] = {'^', letter};
    if (typing.is_hidden && typing.controls && typing.is_told)
        write_out(text, sizeof text);
}

/* A line typed ahead, in the terminal's own way. */
static void echo_line(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char c = text[i], control[] = {'^', (char)(c ^ 64)};
        if (((unsigned char)c >= ' ' && c != 127) || c == '\t' || c == '\n')
            write_out(&c, 1);
        else
            write_out(control, sizeof control);
    }
}

/* --- lending -------------------------------------------------------------- */

void repl_lend_typing(void)
{
    typing.lent++;
    show();
}

void repl_take_typing_back(void)
{
    if (typing.lent > 0)
        typing.lent--;
    hide();
}

static int is_input_waiting(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&input, 1, 0) == 1;
}

/* Standard input, for what an entry runs. */
static ssize_t read_typed(char *text, size_t size)
{
    int is_ahead = typing.is_hidden && is_input_waiting();
    ssize_t length;
    repl_lend_typing();
    length = read(STDIN_FILENO, text, size);
    if (is_ahead && length > 0)
        echo_line(text, (size_t)length);
    if (length > 0 && text[length - 1] == '\n' && repl_is_echoing())
        lumat_take_open_row();
    repl_take_typing_back();
    return length;
}

/* --- signals -------------------------------------------------------------- */

static void on_death(int number)
{
    int saved = errno;
    if (number == SIGQUIT)
        repl_echo_control('\\');
    show();
    errno = saved;
    raise(number);
}

/* Stops as a program does that knows nothing of Ctrl-Z. */
static void on_stop(int number)
{
    struct sigaction plain = {.sa_handler = SIG_DFL}, ours;
    int saved = errno, was_hidden = typing.is_hidden;
    repl_echo_control('Z');
    show();
    sigaction(number, &plain, &ours);
    raise(number);
    sigaction(number, &ours, NULL);
    if (was_hidden)
        hide();
    errno = saved;
}

/* What others handle, or the program was started without, stays so. */
static void catch_signal(int number, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, old;
    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
        sigaction(number, &action, NULL);
}

static void catch_signals(void)
{
    static const int deaths[] = {SIGTERM, SIGHUP,  SIGQUIT, SIGALRM,
                                 SIGUSR1, SIGUSR2, SIGSEGV, SIGBUS,
                                 SIGFPE,  SIGILL,  SIGABRT};
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++)
        catch_signal(deaths[i], on_death, (int)SA_RESETHAND | SA_ONSTACK);
    catch_signal(SIGTSTP, on_stop, SA_NODEFER | SA_RESTART);
}

/* --- entries -------------------------------------------------------------- */

static void on_exit_called(void)
{
    if (getpid() == typing.owner)
        show();
}

void repl_typing_open(void)
{
    static const lumat_typing ways = {read_typed, repl_lend_typing,
                                      repl_take_typing_back, repl_interrupted};
    typing.owner = getpid();
    typing.terminal = repl_terminal_file();
    catch_signals();
    lumat_at_fault(show);
    atexit(on_exit_called);
    lumat_set_typing(&ways);
}

int repl_typing_hide(void)
{
    typing.is_taken = 1;
    typing.lent = 0;
    hide();
    return typing.is_hidden;
}

void repl_typing_tell(int is_told)
{
    typing.is_told = is_told;
}

void repl_typing_end(void)
{
    typing.is_taken = typing.is_told = 0;
    show();
}
