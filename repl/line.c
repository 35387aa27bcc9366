/* The only user of GNU Readline: reading lines, and what Up brings back. */
#include "line.h"

#include "complete.h"
#include "interrupt.h"
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

/* --- completion --------------------------------------------------------- */

static lua_State *language;

/* What may stand in place of the word. */
static struct {
    struct offer {
        char *text, *note;
    } * items;
    int count, room, has_notes;
    size_t start; /* where the word begins in the line */
    size_t begin; /* where Readline takes it to begin */
} offers;

static void forget_offers(void)
{
    for (int i = 0; i < offers.count; i++) {
        free(offers.items[i].text);
        free(offers.items[i].note);
    }
    offers.count = offers.has_notes = 0;
}

static void add_offer(void *data, const char *text, const char *note)
{
    (void)data;
    if (offers.count == offers.room) {
        int room = offers.room * 2 + 64;
        void *items =
            realloc(offers.items, (size_t)room * sizeof *offers.items);
        if (items == NULL)
            return;
        offers.items = items;
        offers.room = room;
    }
    offers.items[offers.count].text = strdup(text);
    offers.items[offers.count++].note = strdup(note != NULL ? note : "");
    offers.has_notes |= note != NULL && note[0] != '\0';
}

/* An offer in place of Readline's word, which may begin before or behind the
 * one that was completed; NULL when it does not fit there. */
static char *fit(const char *text)
{
    size_t before = offers.start - offers.begin, cut;
    char *fitted = NULL;
    if (offers.start >= offers.begin)
        return asprintf(&fitted, "%.*s%s", (int)before,
                        rl_line_buffer + offers.begin, text) < 0
                   ? NULL
                   : fitted;
    cut = offers.begin - offers.start;
    if (strncmp(text, rl_line_buffer + offers.start, cut) != 0)
        return NULL;
    return strdup(text + cut);
}

static char *next_offer(const char *word, int state)
{
    static int next;
    (void)word;
    if (state == 0)
        next = 0;
    while (next < offers.count) {
        const char *text = offers.items[next++].text;
        char *fitted = text != NULL ? fit(text) : NULL;
        if (fitted != NULL)
            return fitted;
    }
    return NULL;
}

static const char *note_on(const char *match)
{
    for (int i = 0; i < offers.count; i++) {
        char *fitted = fit(offers.items[i].text);
        int same = fitted != NULL && strcmp(fitted, match) == 0;
        free(fitted);
        if (same)
            return offers.items[i].note;
    }
    return "";
}

/* Names and notes in two columns. */
static void print_matches(char **matches, int count, int width)
{
    const char *dim = repl_colour(fileno(rl_outstream)) ? "\033[2m" : "";
    int columns, rows, room;
    rl_get_screen_size(&rows, &columns);
    room = columns - width - 5;
    for (int i = 1; i <= count; i++) {
        const char *note = note_on(matches[i]);
        if (note[0] != '\0' && room > 0)
            fprintf(rl_outstream, "  %-*s  %s%.*s%s\n", width, matches[i], dim,
                    room, note, dim[0] != '\0' ? "\033[0m" : "");
        else
            fprintf(rl_outstream, "  %s\n", matches[i]);
    }
}

static void show_matches(char **matches, int count, int width)
{
    fputc('\n', rl_outstream);
    print_matches(matches, count, width);
    rl_forced_update_display();
}

/* More matches than the screen has rows are shown without notes, the way
 * Readline does, which asks first when they are very many. */
static void choose_display(void)
{
    int rows, columns;
    rl_get_screen_size(&rows, &columns);
    rl_completion_display_matches_hook =
        offers.has_notes && offers.count < rows - 2 ? show_matches : NULL;
}

static char **complete(const char *word, int begin, int end)
{
    forget_offers();
    rl_attempted_completion_over = 1;
    rl_completion_display_matches_hook = NULL;
    if (rl_completion_quote_character != 0 ||
        repl_completes_files(rl_line_buffer, (size_t)end))
        return rl_completion_matches(word, rl_filename_completion_function);
    rl_completion_append_character = '\0';
    offers.begin = (size_t)begin;
    offers.start =
        repl_complete(language, rl_line_buffer, (size_t)end, add_offer, NULL);
    choose_display();
    return rl_completion_matches(word, next_offer);
}

/* A file's name ends at blanks, a word of Lua at every other character. */
static char *word_breaks(void)
{
    static char blanks[] = " \t\n";
    static char others[] = " \t\n\"'`!#$%&()*+,-./:;<=>?@[\\]^{|}~";
    int files = repl_completes_files(rl_line_buffer, (size_t)rl_point);
    return files ? blanks : others;
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
    language = L;
    if (!isatty(STDIN_FILENO))
        return;
    rl_readline_name = "lumat";
    rl_instream = stdin;
    rl_outstream = prompt_stream();
    rl_getc_function = get_key;
    rl_deprep_term_function = restore_terminal;
    rl_attempted_completion_function = complete;
    rl_completion_word_break_hook = word_breaks;
    rl_completer_quote_characters = "\"'";
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
