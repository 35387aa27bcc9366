/* The only user of GNU Readline: reading lines, and what Up brings back. */
#include "line.h"

#include "interrupt.h"
#include "offers.h"
#include "screen.h"

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

/* --- keys and signals --------------------------------------------------- */

/* Waits for a key or a signal. Signals are held back while Readline's mark of
 * one is looked at: none can come between the look and the wait. */
static void wait_for_input(int file)
{
    struct pollfd input = {.fd = file, .events = POLLIN};
    sigset_t watched, old;
    int caught;
    sigemptyset(&watched);
    sigaddset(&watched, SIGINT);
    sigaddset(&watched, SIGTSTP);
    sigaddset(&watched, SIGWINCH);
    sigaddset(&watched, SIGTERM);
    sigaddset(&watched, SIGHUP);
    sigprocmask(SIG_BLOCK, &watched, &old);
    if (!rl_pending_signal() && !repl_interrupted())
        ppoll(&input, 1, NULL, &old);
    sigprocmask(SIG_SETMASK, &old, NULL);
    caught = rl_pending_signal();
    rl_check_signals();
    if (caught == SIGTSTP) /* and back: the screen is another's now */
        rl_forced_update_display();
}

/* Readline's source of keys. Its own handling of Ctrl-C would go on waiting
 * for a key; READERR instead ends the line in every state it can be in. */
static int get_key(FILE *stream)
{
    unsigned char key;
    for (;;) {
        ssize_t got;
        wait_for_input(fileno(stream));
        if (repl_interrupted()) {
            if (typed == NULL)
                typed = strdup(rl_line_buffer);
            return READERR;
        }
        got = read(fileno(stream), &key, 1);
        if (got == 1)
            return key;
        if (got == 0 || (errno != EINTR && errno != EAGAIN))
            return EOF;
    }
}

/* With bracketed paste, and only then, Readline ends a line that Ctrl-D or
 * READERR ended with a newline of its own; edit_line writes it always. */
static void restore_terminal(void)
{
    rl_eof_found = 0;
    rl_deprep_terminal();
}

/* --- reading ------------------------------------------------------------ */

/* Typed at a terminal, the prompt goes where the eyes are, also when the
 * results go to a file. */
static FILE *prompt_stream(void)
{
    int elsewhere = !isatty(STDOUT_FILENO) && isatty(STDERR_FILENO);
    return elsewhere ? stderr : stdout;
}

void repl_line_open(lua_State *L)
{
    if (!isatty(STDIN_FILENO))
        return;
    rl_readline_name = "lumat";
    rl_instream = stdin;
    rl_outstream = prompt_stream();
    rl_getc_function = get_key;
    rl_deprep_term_function = restore_terminal;
    repl_offers_open(L);
    using_history();
}

static char *edit_line(const char *prompt, repl_line_end *end)
{
    char shown[128], *line;
    int bold = repl_colour(fileno(rl_outstream));
    snprintf(shown, sizeof shown, "%s%s%s", bold ? "\001\033[1m\002" : "",
             prompt, bold ? "\001\033[0m\002" : "");
    using_history();
    line = readline(shown);
    *end = line != NULL ? REPL_LINE_READ : REPL_LINE_END;
    if (line != NULL)
        return line;
    fputc('\n', rl_outstream);
    fflush(rl_outstream);
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
        length = getline(&line, &room, stdin);
    } while (length < 0 && ferror(stdin) && errno == EINTR);
    *end = length >= 0 ? REPL_LINE_READ : REPL_LINE_END;
    if (length < 0) {
        free(line);
        fputc('\n', stdout);
        return NULL;
    }
    if (length > 0 && line[length - 1] == '\n')
        line[length - 1] = '\0';
    return line;
}

char *repl_read_line(const char *prompt, repl_line_end *end)
{
    repl_clear_interrupt();
    return isatty(STDIN_FILENO) ? edit_line(prompt, end)
                                : plain_line(prompt, end);
}

/* --- what Up brings back ------------------------------------------------ */

void repl_remember(const char *entry)
{
    add_history(entry);
}

const char *repl_last_remembered(void)
{
    return repl_remembered(history_length - 1);
}

const char *repl_remembered(int i)
{
    HIST_ENTRY *entry =
        i >= 0 && i < history_length ? history_get(history_base + i) : NULL;
    return entry != NULL ? entry->line : NULL;
}

void repl_forget_over(int most)
{
    stifle_history(most);
}
