/* Reading lines: keys and signals on their way to Readline, and what becomes
 * of a line. */
#include "line.h"

#include "history.h"
#include "keys.h"
#include "paint.h"
#include "terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <readline/readline.h>
#include <readline/history.h>

static char *typed; /* what Ctrl-C cut off */
static volatile sig_atomic_t resized;

/* --- signals -------------------------------------------------------------- */

static void on_resize(int number)
{
    (void)number;
    resized = 1;
}

/* What is typed when the terminal goes away, or the program has to. */
static void keep_typed(void)
{
    if (rl_line_buffer[strspn(rl_line_buffer, " \t\n")] != '\0')
        repl_history_add(rl_line_buffer);
}

/* Readline's mark of a signal is about to be acted upon. */
static void prepare_for(int number)
{
    if (number == SIGINT)
        repl_paint_leave();
    else
        repl_paint_clear_ghost();
    if (number == SIGHUP || number == SIGTERM)
        keep_typed();
}

static void act_on_signals(void)
{
    int caught = rl_pending_signal();
    if (caught != 0)
        prepare_for(caught);
    rl_check_signals();
    if (caught == SIGTSTP) { /* and back: the screen is another's now */
        resized = 0;
        rl_reset_screen_size();
        rl_forced_update_display();
    } else if (resized) {
        resized = 0;
        repl_paint_resized();
    }
}

/* Waits for a key or a signal. Signals are held back while Readline's mark of
 * one is looked at: none can come between the look and the wait. Returns
 * whether there is something to read. */
static int wait_for_input(int file)
{
    static const int watched[] = {SIGINT, SIGTSTP, SIGWINCH, SIGTERM, SIGHUP};
    struct pollfd input = {.fd = file, .events = POLLIN};
    sigset_t set, old;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++)
        sigaddset(&set, watched[i]);
    sigprocmask(SIG_BLOCK, &set, &old);
    if (!rl_pending_signal() && !repl_interrupted() && !resized)
        if (ppoll(&input, 1, NULL, &old) < 0)
            input.revents = 0;
    sigprocmask(SIG_SETMASK, &old, NULL);
    act_on_signals();
    return input.revents != 0;
}

/* --- keys ----------------------------------------------------------------- */

/* Bytes that were read and not asked for yet. */
static struct {
    char bytes[256]; /* fewer than Readline's own queue has room for */
    ssize_t next, count, most;
} ahead = {.most = 1};

void repl_read_ahead(int on)
{
    ahead.most = on ? (ssize_t)sizeof ahead.bytes : 1;
    while (!on && ahead.next < ahead.count)
        rl_stuff_char((unsigned char)ahead.bytes[ahead.next++]);
}

void repl_give_keys(const char *keys)
{
    size_t length = strlen(keys), room = sizeof ahead.bytes;
    if (ahead.next < ahead.count || length == 0)
        return;
    length = length < room ? length : room;
    memcpy(ahead.bytes, keys, length);
    ahead.next = 0;
    ahead.count = (ssize_t)length;
}

/* Readline's source of keys. Its own handling of Ctrl-C would go on waiting
 * for a key; READERR instead ends the line in every state it can be in. */
static int get_key(FILE *stream)
{
    while (ahead.next >= ahead.count) {
        int is_ready = wait_for_input(fileno(stream));
        if (repl_interrupted()) {
            if (typed == NULL)
                typed = strdup(rl_line_buffer);
            return READERR;
        }
        if (!is_ready)
            continue;
        ahead.next = 0;
        ahead.count = read(fileno(stream), ahead.bytes, (size_t)ahead.most);
        if (ahead.count == 0 ||
            (ahead.count < 0 && errno != EINTR && errno != EAGAIN)) {
            keep_typed(); /* the terminal is gone; its signal may follow */
            return EOF;
        }
    }
    repl_paint_clear_ghost();
    return (unsigned char)ahead.bytes[ahead.next++];
}

static void hold_interrupts(int on)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigprocmask(on ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

/* Readline draws nothing where it finds that the terminal does not echo. */
static void prepare_terminal(int meta)
{
    int is_hidden = repl_typing_hide();
    rl_prep_terminal(meta);
    if (is_hidden)
        rl_tty_set_echoing(1);
}

/* With bracketed paste, and only then, Readline ends a line that Ctrl-D or
 * READERR ended with a newline of its own; edit_line writes it always. From
 * here on Ctrl-C is for what the line runs: it waits for pass_on_interrupt. */
static void restore_terminal(void)
{
    rl_eof_found = 0;
    if (rl_done)
        hold_interrupts(1);
    rl_deprep_terminal();
}

/* Behind a line that was read: a Ctrl-C that followed it stops what it runs.
 * One that Readline still has a mark of would else end the next line; Readline
 * goes on reading when it has acted on that, and so is ended again. That one it
 * shows itself. */
static void pass_on_interrupt(void)
{
    if (rl_pending_signal() == SIGINT) {
        rl_check_signals();
        rl_deprep_terminal();
        rl_clear_signals();
        hold_interrupts(0);
    }
    repl_typing_tell(1);
    hold_interrupts(0);
}

/* --- beginning ------------------------------------------------------------ */

/* Typed at a terminal, the prompt goes where the eyes are, also when the
 * results go to a file. */
static FILE *prompt_stream(void)
{
    int elsewhere = !isatty(STDOUT_FILENO) && isatty(STDERR_FILENO);
    return elsewhere ? stderr : stdout;
}

static sigset_t unheld; /* the signals that were let through before */

/* Readline prepares the terminal for a line, and only then catches what would
 * stop or end the program: until it does they wait, or the terminal would stay
 * as it is for the line. */
static void hold_signals(void)
{
    static const int held[] = {SIGTSTP, SIGTERM, SIGHUP, SIGQUIT};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof held / sizeof *held; i++)
        sigaddset(&set, held[i]);
    sigprocmask(SIG_BLOCK, &set, &unheld);
}

/* Once Readline has prepared the terminal for a line, and catches Ctrl-C. */
static int begin_line(void)
{
    repl_typing_tell(0);
    sigprocmask(SIG_SETMASK, &unheld, NULL);
    repl_keys_begin();
    repl_paint_clear_echo();
    if (repl_take_queued())
        rl_stuff_char('\r');
    return 0;
}

/* Once the first prompt is on the screen. */
static int read_past(void)
{
    repl_history_read();
    using_history();
    rl_pre_input_hook = NULL;
    return 0;
}

/* An edited entry that is not run stays as it was: bound before the user's
 * inputrc is read. */
static void prefer(void)
{
    rl_variable_bind("revert-all-at-newline", "on");
    rl_change_environment = 0;
}

/* With SA_RESTART: output that waits for the terminal goes on. */
static void watch_size(void)
{
    struct sigaction action = {.sa_handler = on_resize, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGWINCH, &action, NULL);
}

void repl_line_open(lua_State *L)
{
    if (!isatty(STDIN_FILENO))
        return;
    rl_readline_name = "lumat";
    rl_instream = stdin;
    rl_outstream = prompt_stream();
    rl_getc_function = get_key;
    rl_prep_term_function = prepare_terminal;
    rl_deprep_term_function = restore_terminal;
    rl_startup_hook = begin_line;
    rl_pre_input_hook = read_past;
    repl_edit_open(L);
    repl_keys_open();
    prefer();
    rl_initialize();
    repl_paint_open();
    watch_size();
    repl_typing_open();
    using_history();
}

int repl_line_has_rows(void)
{
    return repl_paint_has_rows();
}

/* --- reading -------------------------------------------------------------- */

static char *edit_line(const char *prompt, repl_line_end *end)
{
    char *line;
    using_history();
    repl_recall_begin();
    repl_paint_begin();
    hold_signals();
    line = readline(prompt);
    pass_on_interrupt();
    *end = line != NULL ? REPL_LINE_READ : REPL_LINE_END;
    if (line != NULL)
        return line;
    fputc('\n', rl_outstream);
    fflush(rl_outstream);
    repl_take_echo();
    if (repl_interrupted()) {
        *end = REPL_LINE_INTERRUPTED;
        line = typed != NULL ? typed : strdup("");
        typed = NULL;
    }
    return line;
}

static char *plain_line(const char *prompt, repl_line_end *end)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    fputs(prompt, stdout);
    fflush(stdout);
    do { /* Ctrl-C does not end the session here either */
        clearerr(stdin);
        errno = 0;
        length = getline(&line, &room, stdin);
    } while (length < 0 && ferror(stdin) && errno == EINTR);
    repl_clear_interrupt();
    *end = length >= 0 ? REPL_LINE_READ : REPL_LINE_END;
    if (length < 0 && errno == ENOMEM)
        repl_leave_short();
    if (length < 0) {
        free(line);
        fputc('\n', stdout);
        return NULL;
    }
    if (length > 0 && line[length - 1] == '\n')
        line[length - 1] = '\0';
    return line;
}

/* Ctrl-C, at a line or at what it ran, also drops the lines behind it. */
char *repl_read_line(const char *prompt, repl_line_end *end)
{
    static unsigned interrupts;
    if (interrupts != repl_interrupt_count())
        repl_queue_interrupted();
    interrupts = repl_interrupt_count();
    repl_clear_interrupt();
    repl_keep_reserve();
    return isatty(STDIN_FILENO) ? edit_line(prompt, end)
                                : plain_line(prompt, end);
}
