/* The lower part of the screen while something is watched: the picture stays
 * there, and what the entry prints scrolls above it. When the entry ends the
 * screen is as if nothing had been drawn. */
#include "terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SAVE_CURSOR "\0337"
#define RESTORE_CURSOR "\0338"
#define WHOLE_SCREEN "\033[r" /* scrolls; moves the cursor, too */
#define CLEAR_BELOW "\033[J"
#define GIVE_BACK SAVE_CURSOR WHOLE_SCREEN RESTORE_CURSOR CLEAR_BELOW

enum { LEAST_ROWS = 12, LEFT_ABOVE = 3 };

/* Signals after which the terminal belongs to someone else. */
static const int leaving[] = {SIGTSTP, SIGTERM, SIGHUP, SIGQUIT};
enum { LEAVING = sizeof leaving / sizeof leaving[0] };

static struct {
    volatile sig_atomic_t lines; /* of the picture's part; 0: none */
    int rows, columns;           /* of the screen then */
    struct sigaction before[LEAVING];
} part;

static int screen_size(int *rows, int *columns)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0)
        return 0;
    *rows = size.ws_row;
    *columns = size.ws_col;
    return 1;
}

/* --- writing -------------------------------------------------------------- */

/* What is drawn goes to the terminal at once, behind what was printed, and not
 * through the standard output, of which a transcript may be kept. */
static void send_text(const char *text, size_t length)
{
    fflush(NULL);
    lumat_write_fully(STDOUT_FILENO, text, length, -1);
}

/* --- taking and giving back ----------------------------------------------- */

static void release_leaving(void)
{
    for (int i = 0; i < LEAVING; i++)
        sigaction(leaving[i], &part.before[i], NULL);
}

/* Gives the screen back and lets the signal do what it did before. If the
 * program goes on, the next picture takes the screen, and the signals, again.
 */
static void on_leaving(int number)
{
    static const char text[] = GIVE_BACK;
    int saved = errno;
    ssize_t sent =
        part.lines > 0 ? write(STDOUT_FILENO, text, sizeof text - 1) : 0;
    (void)sent; /* the terminal may be gone */
    part.lines = 0;
    release_leaving();
    errno = saved;
    raise(number);
}

static void catch_leaving(void)
{
    struct sigaction action = {.sa_handler = on_leaving,
                               .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < LEAVING; i++)
        sigaction(leaving[i], &action, &part.before[i]);
}

static void give_back(void)
{
    if (part.lines == 0)
        return;
    part.lines = 0;
    send_text(GIVE_BACK, sizeof GIVE_BACK - 1);
    release_leaving();
}

/* Room for so many lines below the cursor, which no longer scrolls there. */
static void take(FILE *to, int lines, int rows, int columns)
{
    catch_leaving();
    for (int i = 0; i < lines; i++)
        fputc('\n', to);
    fprintf(to, "\033[%dA" SAVE_CURSOR "\033[1;%dr" RESTORE_CURSOR, lines,
            rows - lines);
    part.rows = rows;
    part.columns = columns;
    part.lines = lines;
}

/* --- drawing -------------------------------------------------------------- */

static int count_lines(const char *text)
{
    int lines = 1;
    while ((text = strchr(text, '\n')) != NULL)
        text++, lines++;
    return lines;
}

static void put_lines(FILE *to, const char *picture)
{
    for (int i = 0; i < part.lines; i++) {
        int length = (int)strcspn(picture, "\n");
        fprintf(to, "\033[%d;1H\033[2K%.*s", part.rows - part.lines + 1 + i,
                length, picture);
        picture += length;
        picture += *picture == '\n';
    }
}

static void put_picture(FILE *to, const char *picture, int lines, int rows,
                        int columns)
{
    if (part.lines == 0)
        take(to, lines, rows, columns);
    fputs(SAVE_CURSOR, to);
    put_lines(to, picture);
    fputs(RESTORE_CURSOR, to);
}

static void draw(void *data, const char *picture)
{
    int lines = count_lines(picture), rows, columns;
    char *text = NULL;
    size_t length = 0;
    FILE *to;
    (void)data;
    if (!screen_size(&rows, &columns) || lines > rows - LEFT_ABOVE) {
        give_back();
        return;
    }
    if (lines != part.lines || rows != part.rows || columns != part.columns)
        give_back();
    to = open_memstream(&text, &length);
    if (to == NULL)
        return;
    put_picture(to, picture, lines, rows, columns);
    if (fclose(to) == 0)
        send_text(text, length);
    free(text);
}

/* --- around an entry ------------------------------------------------------ */

static int is_prompting;

void repl_watch_at_prompt(void)
{
    is_prompting = isatty(STDOUT_FILENO) && repl_can_move_cursor();
}

void repl_watch_start(lua_State *L)
{
    lumat_style style;
    if (!is_prompting)
        return;
    repl_prompt_style(&style);
    if (style.height >= LEAST_ROWS)
        lumat_watch_start(L, &style, draw, NULL);
}

void repl_watch_end(void)
{
    if (!is_prompting)
        return;
    lumat_watch_end();
    give_back();
}
