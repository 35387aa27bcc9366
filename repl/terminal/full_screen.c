/* The whole screen: opening it and giving it back, keys, signals meanwhile,
 * text on it, and a question in its last line. */
#include "full_screen.h"

#include "terminal.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <unistd.h>

enum { ESCAPE_WAIT = 25 }; /* milliseconds in which a key's bytes come */

/* --- signals -------------------------------------------------------------- */

static const int caught[] = {SIGWINCH, SIGTSTP, SIGCONT, SIGINT,
                             SIGTERM,  SIGHUP,  SIGQUIT};
enum { CAUGHT = sizeof caught / sizeof caught[0] };

static struct sigaction before[CAUGHT];
static volatile sig_atomic_t resized, suspended, ending;
static int has_changed; /* the size, since the screen was opened */

static void note_signal(int number)
{
    if (number == SIGWINCH || number == SIGCONT)
        resized = 1;
    else if (number == SIGTSTP)
        suspended = 1;
    else
        ending = number;
}

/* ncurses installs handlers of its own only where there are none. */
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = note_signal};
    sigemptyset(&action.sa_mask);
    resized = suspended = ending = 0;
    for (int i = 0; i < CAUGHT; i++)
        sigaction(caught[i], &action, &before[i]);
}

static void release_signals(void)
{
    for (int i = 0; i < CAUGHT; i++)
        sigaction(caught[i], &before[i], NULL);
}

/* Stops as a program does that knows nothing of Ctrl-Z, and with it whatever
 * started it and waits; the screen is given back meanwhile. The signal to the
 * job may reach any thread of ours, and so late: we stop by one of our own. */
static void suspend(void)
{
    struct sigaction plain = {.sa_handler = SIG_IGN}, ours;
    suspended = 0;
    endwin();
    sigaction(SIGTSTP, &plain, &ours);
    kill(0, SIGTSTP);
    plain.sa_handler = SIG_DFL;
    sigaction(SIGTSTP, &plain, NULL);
    raise(SIGTSTP);
    sigaction(SIGTSTP, &ours, NULL);
    resized = 1;
}

/* --- opening and closing -------------------------------------------------- */

/* Readline has a terminal of its own among ncurses' globals: cur_term is
 * always put back. */
int repl_has_full_screen(void)
{
    TERMINAL *others = cur_term;
    int error, can;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ||
        setupterm(NULL, STDOUT_FILENO, &error) != OK)
        return 0;
    can = cursor_address != NULL && clear_screen != NULL;
    del_curterm(cur_term);
    set_curterm(others);
    return can;
}

static void define_keys(void)
{
    static const struct key {
        const char *bytes;
        int key;
    } keys[] = {{"\033[1;5A", REPL_KEY_HALF_UP},
                {"\033[1;5B", REPL_KEY_HALF_DOWN},
                {"\033[1;5C", REPL_KEY_HALF_RIGHT},
                {"\033[1;5D", REPL_KEY_HALF_LEFT},
                {"\033[1;5H", REPL_KEY_FIRST},
                {"\033[1;5F", REPL_KEY_LAST},
                {"\033[H", KEY_HOME},
                {"\033[F", KEY_END}};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        define_key(keys[i].bytes, keys[i].key);
}

/* A stream of its own to or from the terminal: stdout may be one that also
 * writes to a transcript. */
static FILE *terminal_stream(int number, const char *mode)
{
    int file = dup(number);
    return file >= 0 ? fdopen(file, mode) : NULL;
}

/* LINES and COLUMNS in the environment are those of an earlier moment. */
static SCREEN *open_screen(FILE *output, FILE *input)
{
    SCREEN *screen;
    use_env(FALSE);
    use_tioctl(TRUE);
    if (output == NULL || input == NULL)
        return NULL;
    screen = newterm(NULL, output, input);
    if (screen == NULL)
        return NULL;
    if (repl_colour(STDOUT_FILENO) && start_color() == OK)
        use_default_colors();
    raw();
    noecho();
    nonl();
    intrflush(stdscr, FALSE);
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(ESCAPE_WAIT);
    curs_set(0);
    define_keys();
    return screen;
}

/* With another size the terminal may put the cursor back amid old lines. */
static void close_screen(SCREEN *screen, FILE *output)
{
    curs_set(1);
    endwin();
    delscreen(screen);
    if (has_changed)
        fputs("\r\033[J", output);
}

/* The screen itself. What the function raises leaves the terminal in order. */
static int call_on_screen(lua_State *L, int nargs)
{
    TERMINAL *others = cur_term;
    FILE *output = terminal_stream(STDOUT_FILENO, "w");
    FILE *input = terminal_stream(STDIN_FILENO, "r");
    SCREEN *screen = open_screen(output, input);
    int status = LUA_ERRRUN;
    has_changed = 0;
    if (screen != NULL) {
        status = lua_pcall(L, nargs, 0, 0);
        close_screen(screen, output);
    } else
        lua_pushliteral(L, "the terminal cannot be used");
    set_curterm(others);
    if (output != NULL)
        fclose(output);
    if (input != NULL)
        fclose(input);
    return status;
}

void repl_take_terminal(repl_terminal *t)
{
    fflush(stdout);
    repl_lend_typing();
    t->is_known = tcgetattr(STDIN_FILENO, &t->modes) == 0;
    repl_watch_end();
    repl_pause_progress(1);
}

void repl_return_terminal(lua_State *L, const repl_terminal *t)
{
    if (t->is_known)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &t->modes);
    repl_take_typing_back();
    repl_pause_progress(0);
    repl_watch_start(L);
}

int repl_with_full_screen(lua_State *L, int nargs)
{
    repl_terminal terminal;
    int status;
    repl_take_terminal(&terminal);
    catch_signals();
    status = call_on_screen(L, nargs);
    release_signals();
    repl_return_terminal(L, &terminal);
    if (ending != 0)
        raise(ending);
    return status;
}

/* --- keys ----------------------------------------------------------------- */

static void follow_size(void)
{
    struct winsize size;
    resized = 0;
    has_changed = 1;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 &&
        size.ws_col > 0)
        resizeterm(size.ws_row, size.ws_col);
    raw(); /* whoever had the terminal may have set it otherwise */
    clearok(curscr, TRUE);
}

/* Waits for input or a signal. Signals are held back while their marks are
 * looked at: none can come between the look and the wait. Returns poll's
 * events. */
static int wait_for_input(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    sigset_t watched, old;
    sigemptyset(&watched);
    for (int i = 0; i < CAUGHT; i++)
        sigaddset(&watched, caught[i]);
    sigprocmask(SIG_BLOCK, &watched, &old);
    if (!resized && !suspended && ending == 0 &&
        ppoll(&input, 1, NULL, &old) < 0)
        input.revents = 0;
    sigprocmask(SIG_SETMASK, &old, NULL);
    return input.revents;
}

/* A key of those that are there, ERR for none. */
static int next_key(void)
{
    int key;
    if (ending != 0)
        return REPL_KEY_LEAVE;
    if (suspended)
        suspend();
    if (resized) {
        follow_size();
        return KEY_RESIZE;
    }
    key = getch();
    if (key != 'Z' - '@')
        return key;
    suspend();
    return ERR;
}

/* Input that is there, and yet no key, is its end. */
int repl_get_key(void)
{
    int events = 0, key;
    refresh();
    while ((key = next_key()) == ERR) {
        if (events != 0 && !resized)
            return REPL_KEY_LEAVE;
        events = wait_for_input();
    }
    return key;
}

int repl_is_stopped(void)
{
    int key;
    while ((key = getch()) != ERR)
        if (key == REPL_KEY_INTERRUPT || key == REPL_KEY_ESCAPE)
            return 1;
    return ending != 0;
}

/* --- text, and a question in the last line -------------------------------- */

/* Bytes of the text's first characters that take no more than so many columns;
 * used: the columns that they take. */
static int bytes_of(const char *text, int most, int *used)
{
    int bytes = 0;
    *used = 0;
    while (text[bytes] != '\0') {
        int end = bytes + 1;
        while ((text[end] & 0xC0) == 0x80)
            end++;
        int width = lumat_text_columns(text + bytes, (size_t)(end - bytes));
        if (*used + width > most)
            break;
        *used += width;
        bytes = end;
    }
    return bytes;
}

int repl_columns(const char *text)
{
    int used;
    bytes_of(text, INT_MAX, &used);
    return used;
}

void repl_put(int line, int column, int width, const char *text)
{
    int used, bytes = bytes_of(text, width, &used);
    int is_cut = width > 0 && text[bytes] != '\0';
    if (is_cut)
        bytes = bytes_of(text, width - 1, &used);
    mvaddnstr(line, column, text, bytes);
    if (is_cut)
        addstr(MB_CUR_MAX > 1 ? "…" : ">");
    else if (used < width)
        printw("%*s", width - used, "");
}

static int edit(char *text, int size, int key)
{
    int length = (int)strlen(text);
    if (key >= ' ' && key < 0x7F && length < size - 1) {
        text[length] = (char)key;
        text[length + 1] = '\0';
    } else if (key == 'U' - '@') {
        text[0] = '\0';
    } else if (key == KEY_BACKSPACE || key == 0x7F || key == '\b') {
        if (length == 0)
            return 0;
        text[length - 1] = '\0';
    }
    return 1;
}

/* Of a long text the end is shown, of a long label the beginning: it leaves
 * half of the line. */
static void show_question(const char *label, const char *text)
{
    int left = repl_columns(label), length = (int)strlen(text), room;
    if (left > COLS / 2 + 1)
        left = COLS / 2 + 1;
    room = COLS - left - 1;
    repl_put(LINES - 1, 0, COLS, "");
    repl_put(LINES - 1, 0, left, label);
    if (room > 0)
        mvaddstr(LINES - 1, left, text + (length > room ? length - room : 0));
}

int repl_ask(const char *label, char *text, int size)
{
    int answered = 0;
    curs_set(1);
    for (int going = 1; going;) {
        int key;
        show_question(label, text);
        key = repl_get_key();
        answered = key == '\r' || key == '\n' || key == KEY_ENTER;
        if (answered || key == REPL_KEY_ESCAPE || key == REPL_KEY_INTERRUPT ||
            key == REPL_KEY_LEAVE)
            going = 0;
        else if (key == KEY_RESIZE)
            going = ungetch(KEY_RESIZE) == ERR; /* for the caller */
        else
            going = edit(text, size, key);
    }
    curs_set(0);
    return answered;
}
