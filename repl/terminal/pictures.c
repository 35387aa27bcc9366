/* Pictures on the terminal: whether it shows any, and how, is asked of it, by
 * the questions that kitty, iTerm2 and terminals of DEC's kind answer; its name
 * says nothing. It answers among the keys. */
#include "terminal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* What the answer to the last question is, every terminal gives: until then
 * they come in order. */
static const char questions[] =
    "\033_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\033\\" /* kitty: could you? */
    "\033]1337;ReportCellSize\a"                 /* iTerm2: its cells */
    "\033[16t"                                   /* xterm: its cells */
    "\033]11;?\033\\"                            /* its ground's colour */
    "\033[c";                                    /* what are you? */

enum { PATIENCE = 1000 }; /* ms without a byte: it does not answer */

/* --- answers -------------------------------------------------------------- */

/* The length of the answer that begins at p, an escape, to one of the
 * questions; 0 of what is none, or not complete. */
static size_t answer_length(const char *p)
{
    if (strncmp(p, "\033_G", 3) == 0 || strncmp(p, "\033]11;", 5) == 0 ||
        strncmp(p, "\033]1337;", 7) == 0) {
        const char *bell = strchr(p, '\a'), *end = strstr(p, "\033\\");
        if (bell && (!end || bell < end))
            return (size_t)(bell + 1 - p);
        return end ? (size_t)(end + 2 - p) : 0;
    }
    if (strncmp(p, "\033[?", 3) == 0 || strncmp(p, "\033[6;", 4) == 0) {
        size_t length = 3 + strspn(p + 3, "0123456789;");
        return p[length] == 'c' || p[length] == 't' ? length + 1 : 0;
    }
    return 0;
}

/* Is 4, "I show sixels", among the numbers of "\033[?62;4;22c"? */
static int has_sixels(const char *answer)
{
    for (const char *p = answer + 3; *p; p++) {
        char *end;
        long number = strtol(p, &end, 10);
        if (end > p && number == 4)
            return 1;
        if (*end != ';')
            return 0;
        p = end;
    }
    return 0;
}

/* Of "rgb:ffff/ffff/ffff" with 1 to 4 digits each: is it nearer to black? */
static int is_dark(const char *answer)
{
    static const double weights[] = {0.3, 0.59, 0.11};
    const char *p = strstr(answer, "rgb:");
    double light = 0;
    if (!p)
        return 0;
    p += 4;
    for (int i = 0; i < 3; i++) {
        char *end;
        long value = strtol(p, &end, 16);
        if (end == p)
            return 0;
        light +=
            weights[i] * (double)value / (double)((1L << (4 * (end - p))) - 1);
        p = end + (*end == '/');
    }
    return light < 0.5;
}

static void take_answer(lumat_screen *s, const char *answer)
{
    double height, width, scale = 1;
    int h, w;
    if (strncmp(answer, "\033_Gi=31;OK", 10) == 0)
        s->shows = LUMAT_SHOWS_KITTY;
    else if (sscanf(answer, "\033]1337;ReportCellSize=%lf;%lf;%lf", &height,
                    &width, &scale) >= 2) {
        s->shows = s->shows ? s->shows : LUMAT_SHOWS_ITERM;
        s->cell_height = (int)(height * scale);
        s->cell_width = (int)(width * scale);
    } else if (sscanf(answer, "\033[6;%d;%dt", &h, &w) == 2) {
        s->cell_height = h;
        s->cell_width = w;
    } else if (strncmp(answer, "\033]11;", 5) == 0) {
        s->is_dark = is_dark(answer);
    } else if (strncmp(answer, "\033[?", 3) == 0 && !s->shows &&
               has_sixels(answer)) {
        s->shows = LUMAT_SHOWS_SIXELS;
    }
}

/* Takes the answers out of the text, of which the keys stay. Returns whether
 * the last one is there. */
static int take_answers(lumat_screen *s, char *text)
{
    int is_last = 0;
    char *to = text;
    for (const char *p = text; *p;) {
        size_t length = *p == '\033' ? answer_length(p) : 0;
        if (length == 0) {
            *to++ = *p++;
            continue;
        }
        char answer[128];
        snprintf(answer, sizeof answer, "%.*s", (int)length, p);
        take_answer(s, answer);
        is_last |= answer[1] == '[' && answer[2] == '?';
        p += length;
    }
    *to = '\0';
    return is_last;
}

/* --- asking --------------------------------------------------------------- */

/* Reads what comes until the last answer, or until nothing does. */
static void read_answers(lumat_screen *s, char *text, size_t size)
{
    size_t used = 0;
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    while (used + 1 < size && poll(&input, 1, PATIENCE) == 1) {
        ssize_t n = read(STDIN_FILENO, text + used, size - 1 - used);
        if (n <= 0)
            return;
        used += (size_t)n;
        text[used] = '\0';
        if (memchr(text, '\0', used) != NULL) {
            *text = '\0'; /* no text, and no answer */
            return;
        }
        if (take_answers(s, text))
            return;
        used = strlen(text);
    }
}

/* The pixels of a cell where the terminal did not say them. */
static void guess_cells(lumat_screen *s)
{
    struct winsize size;
    if (s->cell_width > 0 && s->cell_height > 0)
        return;
    s->cell_width = 8;
    s->cell_height = 16;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 &&
        size.ws_row > 0 && size.ws_xpixel >= 4 * size.ws_col &&
        size.ws_ypixel >= 8 * size.ws_row) {
        s->cell_width = size.ws_xpixel / size.ws_col;
        s->cell_height = size.ws_ypixel / size.ws_row;
    }
}

void repl_ask_pictures(lumat_screen *s, char *keys, size_t size)
{
    struct termios before, quiet;
    *s = (lumat_screen){.shows = LUMAT_SHOWS_NONE};
    *keys = '\0';
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ||
        !repl_can_move_cursor() || tcgetpgrp(STDIN_FILENO) != getpgrp() ||
        tcgetattr(STDIN_FILENO, &before) != 0)
        return;
    quiet = before;
    quiet.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    quiet.c_cc[VMIN] = 1;
    quiet.c_cc[VTIME] = 0;
    fflush(stdout);
    tcsetattr(STDIN_FILENO, TCSANOW, &quiet);
    if (write(STDOUT_FILENO, questions, strlen(questions)) > 0)
        read_answers(s, keys, size);
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
    guess_cells(s);
}
