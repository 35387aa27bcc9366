/* A row of its own, as zsh begins one: as many blanks as the screen is wide
 * leave the cursor in the row it is in when that was empty, and else in the
 * next one. The terminal is not asked where its cursor is: the answer would
 * come among the keys that were typed ahead. */
#include "fresh_row.h"

#include "screen.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <termcap.h>

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

void repl_begin_fresh_row(int terminal)
{
    struct winsize size;
    int at_once;
    if (has_program_run() && can_wrap(&at_once) &&
        ioctl(terminal, TIOCGWINSZ, &size) == 0 && size.ws_col > 1)
        dprintf(terminal, "%*s\r\033[K", size.ws_col - at_once, "");
}
