/* Where the viewer's cursor jumps: places, elements that match, extremes. */
#include "view_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const double PATIENCE = 0.2; /* seconds before a look is told of */

static void say(view *v, const char *text)
{
    snprintf(v->message, sizeof v->message, "%s", text);
}

/* --- places --------------------------------------------------------------- */

void view_go_to(view *v, int unused)
{
    char text[64] = "";
    int64_t place[2] = {v->row, v->col};
    (void)unused;
    if (!repl_ask("go to row, column: ", text, sizeof text) || text[0] == '\0')
        return;
    if (!lumat_window_place(v->window, text, place, v->message,
                            sizeof v->message))
        return;
    view_jump(v, place[0], place[1]);
}

/* --- looking at everything ------------------------------------------------ */

static void show_progress(const lumat_scan *s)
{
    char text[64];
    snprintf(text, sizeof text, "looked at %.0f %%; Ctrl-C stops",
             100 * s->share);
    attrset(A_REVERSE);
    repl_put(LINES - 1, 0, COLS, text);
    attrset(A_NORMAL);
    refresh();
}

/* Returns 0 when the user stopped it. */
static int scan(view *v, lumat_scan *s)
{
    double start = lumat_now();
    while (lumat_scan_step(v->L, v->window, s)) {
        if (repl_is_stopped()) {
            say(v, "stopped");
            return 0;
        }
        if (lumat_now() - start > PATIENCE)
            show_progress(s);
    }
    return 1;
}

static void search(view *v, int backwards)
{
    lumat_scan s = v->search;
    s.backwards = backwards;
    s.row = v->row;
    s.col = v->col;
    if (!scan(v, &s))
        return;
    if (!s.found) {
        snprintf(v->message, sizeof v->message, "no element is %s", v->sought);
        return;
    }
    view_jump(v, s.row, s.col);
    if (s.wrapped)
        say(v, backwards ? "went on from the end" : "went on from the start");
}

void view_search(view *v, int unused)
{
    char text[sizeof v->sought] = "";
    lumat_scan s = {.kind = LUMAT_FIND};
    (void)unused;
    if (!repl_ask("/", text, sizeof text))
        return;
    if (text[0] == '\0') {
        view_search_again(v, 0);
        return;
    }
    if (!lumat_scan_parse(text, &s)) {
        say(v, "what can be sought: nan inf 0 -2.5 >3 >=3 <3 <=3 ~=3");
        return;
    }
    strcpy(v->sought, text);
    v->search = s;
    search(v, 0);
}

void view_search_again(view *v, int backwards)
{
    if (v->sought[0] == '\0')
        say(v, "nothing has been sought yet; / does");
    else
        search(v, backwards);
}

void view_find_extreme(view *v, int kind)
{
    lumat_scan s = {.kind = (lumat_scan_kind)kind};
    if (!scan(v, &s))
        return;
    if (!s.found) {
        say(v, "there is nothing but NaN");
        return;
    }
    view_jump(v, s.row, s.col);
    say(v, kind == LUMAT_LARGEST ? "the largest" : "the smallest");
}

/* --- heat ----------------------------------------------------------------- */

/* Stopped before its end, the scale is that of what was seen. */
static void find_range(view *v)
{
    lumat_scan s = {.kind = LUMAT_RANGE};
    scan(v, &s);
    if (!s.found) {
        if (v->message[0] == '\0')
            say(v, "there is nothing finite");
        return;
    }
    v->low = s.low;
    v->high = s.high;
    v->knows_range = 1;
}

void view_toggle_heat(view *v, int unused)
{
    (void)unused;
    if (!view_has_colours()) {
        say(v, "there are no colours here");
        return;
    }
    if (!v->heat && !v->knows_range)
        find_range(v);
    v->heat = !v->heat && v->knows_range;
}
