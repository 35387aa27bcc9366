/* What the screen can show: its size, colours, and characters; and rows that
 * nothing stands in. */
#include "terminal.h"

#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <termcap.h>
#include <unistd.h>

int repl_can_move_cursor(void)
{
    const char *term = getenv("TERM");
    return term != NULL && term[0] != '\0' && strcmp(term, "dumb") != 0;
}

/* no-color.org: present and not empty, whatever its value. */
static int refuses_colour(void)
{
    const char *no_color = getenv("NO_COLOR");
    if (no_color != NULL && no_color[0] != '\0')
        return 1;
    return !repl_can_move_cursor();
}

int repl_colour(int descriptor)
{
    if (lumat_settings_now()->colour != LUMAT_COLOUR_AUTO)
        return lumat_settings_now()->colour == LUMAT_COLOUR_ALWAYS;
    return isatty(descriptor) && !refuses_colour();
}

/* As terminals have agreed to say it. */
static int has_all_colours(void)
{
    const char *text = getenv("COLORTERM");
    return text != NULL &&
           (strcmp(text, "truecolor") == 0 || strcmp(text, "24bit") == 0);
}

int repl_ascii(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
}

/* A size from the environment, or otherwise. */
static int from_environment(const char *name, int otherwise)
{
    const char *text = getenv(name);
    int size = text != NULL ? atoi(text) : 0;
    return size >= 10 && size <= 10000 ? size : otherwise;
}

void repl_script_style(lumat_style *style)
{
    style->width = from_environment("COLUMNS", 80);
    style->height = 24;
    style->colour = lumat_settings_now()->colour == LUMAT_COLOUR_ALWAYS;
    style->ascii = repl_ascii();
    style->full = 0;
}

void repl_prompt_style(lumat_style *style)
{
    struct winsize size;
    repl_script_style(style);
    if (!isatty(STDOUT_FILENO))
        return;
    style->colour = repl_colour(STDOUT_FILENO);
    if (style->colour && has_all_colours())
        style->colour = LUMAT_ALL_COLOURS;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        return;
    if (size.ws_col > 0)
        style->width = size.ws_col;
    if (size.ws_row > 0)
        style->height = size.ws_row;
}

int repl_terminal_file(void)
{
    if (isatty(STDOUT_FILENO))
        return STDOUT_FILENO;
    return isatty(STDERR_FILENO) ? STDERR_FILENO : -1;
}

/* --- a row of its own ----------------------------------------------------- */

/* As zsh begins one: as many blanks as the screen is wide leave the cursor in
 * the row it is in when that was empty, and else in the next one. The terminal
 * is not asked where its cursor is: the answer would come among the keys that
 * were typed ahead. */

/* Whether a program ended since the last call: where lumat's own output ends is
 * known, see lumat_take_open_row. */
static int has_program_run(void)
{
    static long last;
    struct rusage used;
    long before = last;
    if (getrusage(RUSAGE_CHILDREN, &used) == 0)
        last = used.ru_minflt;
    return last != before;
}

/* Whether the terminal goes on in the next row. Most begin that only when
 * there is something to show in it. */
static int can_wrap(int *at_once)
{
    char am[] = "am", xn[] = "xn";
    if (!repl_can_move_cursor() || tgetflag(am) <= 0)
        return 0;
    *at_once = tgetflag(xn) <= 0;
    return 1;
}

/* When programs that lumat started have ended since the last call, has the
 * cursor of the terminal leave a row in which there is text. */
static void begin_fresh_row(int terminal)
{
    struct winsize size;
    int at_once;
    if (has_program_run() && can_wrap(&at_once) &&
        ioctl(terminal, TIOCGWINSZ, &size) == 0 && size.ws_col > 1)
        dprintf(terminal, "%*s\r\033[K", size.ws_col - at_once, "");
}

void repl_end_output(void)
{
    int terminal = repl_terminal_file(), echoed = repl_take_echo(), open;
    if (echoed)
        lumat_transcribe_echo("^C");
    fflush(stdout);
    open = lumat_take_open_row() || echoed;
    if (open && terminal >= 0)
        fputc('\n', terminal == STDOUT_FILENO ? stdout : stderr);
    fflush(stdout);
    if (terminal >= 0)
        begin_fresh_row(terminal);
}
