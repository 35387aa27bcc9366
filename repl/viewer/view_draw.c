/* What the viewer puts on the screen: cells between frozen numbers of rows and
 * columns, and a line about the cell under the cursor. */
#include "view_parts.h"

#include <stdio.h>
#include <string.h>

enum { LEAST_CELL = 1, FRAME = 2 }; /* lines beside the cells */

/* --- layout --------------------------------------------------------------- */

static int digits_of(int64_t n)
{
    char text[32];
    return snprintf(text, sizeof text, "%lld", (long long)n);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t within(int64_t x, int64_t size)
{
    return x < 0 ? 0 : x < size ? x : size - 1;
}

/* More columns than the screen can hold. */
static int64_t most_columns(const view *v)
{
    int room = COLS - v->label;
    return (room > 0 ? room : 0) / (VIEW_GAP + LEAST_CELL) + 1;
}

static void bring(view *v)
{
    lumat_area area = {v->top, v->left, least(v->height, v->rows - v->top),
                       least(most_columns(v), v->cols - v->left)};
    lumat_window_need(v->L, v->window, area);
}

static int space_of(const view *v, int64_t col)
{
    return VIEW_GAP + lumat_window_width(v->window, col);
}

/* How many columns fit from the left one on: one at least, cut if need be. */
static int64_t count_columns(const view *v)
{
    int64_t last = least(v->left + most_columns(v), v->cols), col = v->left;
    int room = COLS - v->label;
    while (col < last && (room -= space_of(v, col)) >= 0)
        col++;
    return col > v->left ? col - v->left : 1;
}

static void place_rows(view *v)
{
    v->height = LINES > FRAME ? LINES - FRAME : 1;
    v->label = digits_of(v->rows);
    v->row = within(v->row, v->rows);
    v->col = within(v->col, v->cols);
    if (v->top > v->row)
        v->top = v->row;
    if (v->top + v->height <= v->row)
        v->top = v->row - v->height + 1;
    if (v->top + v->height > v->rows)
        v->top = v->rows > v->height ? v->rows - v->height : 0;
}

/* How many columns the screen would show from there on. */
static int64_t look_from(view *v, int64_t left)
{
    v->left = left;
    bring(v);
    return count_columns(v);
}

/* The cursor's column is the first on the screen, or moves in from the right;
 * behind the matrix's last column no room is left where it could be filled. */
static void place_columns(view *v)
{
    int64_t left = v->left < v->col ? v->left : v->col;
    if (left + most_columns(v) <= v->col)
        left = v->col - most_columns(v) + 1;
    while (left + look_from(v, left) <= v->col)
        left++;
    while (left > 0 && left - 1 + look_from(v, left - 1) == v->cols)
        left--;
    v->seen = look_from(v, left);
}

void view_jump(view *v, int64_t row, int64_t col)
{
    if (row < v->top || row >= v->top + v->height)
        v->top = row > v->height / 2 ? row - v->height / 2 : 0;
    if (col < v->left || col >= v->left + v->seen)
        v->left = col > v->seen / 2 ? col - v->seen / 2 : 0;
    v->row = row;
    v->col = col;
}

lumat_area view_row_part(const view *v)
{
    return (lumat_area){v->row, v->left, 1, v->seen};
}

/* --- cells ---------------------------------------------------------------- */

static void put_number(int line, int column, int width, int64_t n, int is_here)
{
    char text[32];
    snprintf(text, sizeof text, "%*lld", width, (long long)n);
    attrset(is_here ? A_BOLD : A_DIM);
    repl_put(line, column, least(width, COLS - column), text);
    attrset(A_NORMAL);
}

/* A point in place of the first character, where nothing is stored. */
static void put_cell(const view *v, int line, int column, int width,
                     int64_t row, int64_t col)
{
    char text[128];
    lumat_cell cell;
    attr_t look;
    lumat_window_cell(v->window, row, col, &cell);
    look = view_attribute(v, &cell);
    if (!cell.is_stored && !v->ascii)
        snprintf(text, sizeof text, "%*s·%s", width - (int)strlen(cell.text),
                 "", cell.text + 1); /* the rest is blank */
    else
        snprintf(text, sizeof text, "%*s", width, cell.text);
    attrset(row == v->row && col == v->col ? look | A_REVERSE : look);
    repl_put(line, column, (int)least(width, COLS - column), text);
    attrset(A_NORMAL);
}

static void draw_column(const view *v, int column, int width, int64_t col)
{
    put_number(0, column, width, col + 1, col == v->col);
    for (int i = 0; i < v->height && v->top + i < v->rows; i++)
        put_cell(v, i + 1, column, width, v->top + i, col);
}

static void draw_cells(const view *v)
{
    int column = v->label;
    for (int i = 0; i < v->height && v->top + i < v->rows; i++)
        put_number(i + 1, 0, v->label, v->top + i + 1, v->top + i == v->row);
    for (int64_t j = v->left; j < v->left + v->seen; j++) {
        int width = lumat_window_width(v->window, j);
        draw_column(v, column + VIEW_GAP, width, j);
        column += VIEW_GAP + width;
    }
}

/* --- the last line -------------------------------------------------------- */

static void describe_cell(const view *v, char *text, size_t size)
{
    lumat_cell cell;
    lumat_window_cell(v->window, v->row, v->col, &cell);
    snprintf(text, size, "[%lld, %lld] %s%s", (long long)v->row + 1,
             (long long)v->col + 1, cell.exact,
             cell.is_stored ? "" : " (no entry)");
}

static int percent(const view *v)
{
    int64_t at = v->rows > 1 ? v->row : v->col;
    int64_t last = (v->rows > 1 ? v->rows : v->cols) - 1;
    return last > 0 ? (int)(100.0 * (double)at / (double)last) : 100;
}

static void describe_matrix(const view *v, char *text, size_t size)
{
    int n = snprintf(text, size, "%s%s  %s", v->name, v->turned ? ".T" : "",
                     v->headline);
    if (v->heat && n >= 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, "  heat %.3g to %.3g", v->low,
                 v->high);
}

/* Takes parts away from the end, as long as there are some. */
static void shorten(char *text, int columns)
{
    while (repl_columns(text) > columns) {
        char *part = NULL;
        for (char *p = text; (p = strstr(p, "  ")) != NULL; p++)
            part = p;
        if (part == NULL)
            return;
        *part = '\0';
    }
}

/* The cell matters most, then the place, then what the matrix is. */
static void draw_status(const view *v)
{
    char cell[128], matrix[256], share[16];
    int room = COLS, columns;
    describe_cell(v, cell, sizeof cell);
    describe_matrix(v, matrix, sizeof matrix);
    columns = snprintf(share, sizeof share, " %d%%", percent(v));
    attrset(A_REVERSE);
    repl_put(LINES - 1, 0, COLS, "");
    if (repl_columns(cell) + columns <= room) {
        room -= columns;
        repl_put(LINES - 1, room, columns, share);
    }
    columns = repl_columns(cell) + VIEW_GAP;
    if (v->message[0] != '\0')
        strcpy(matrix, v->message);
    if (v->message[0] == '\0')
        shorten(matrix, room - columns);
    if (repl_columns(matrix) + columns <= room) {
        repl_put(LINES - 1, 0, repl_columns(matrix), matrix);
        repl_put(LINES - 1, room - columns + VIEW_GAP, columns - VIEW_GAP,
                 cell);
    } else
        repl_put(LINES - 1, 0, room, v->message[0] != '\0' ? matrix : cell);
    attrset(A_NORMAL);
}

void view_draw(view *v)
{
    place_rows(v);
    place_columns(v);
    erase();
    draw_cells(v);
    draw_status(v);
}
