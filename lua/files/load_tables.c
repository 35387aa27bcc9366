/* Tables as text: load and load_blocks of .csv, .tsv and .txt files.
 *
 * The file is read through a window of some megabytes, which is cut into chunks
 * that all cores read at once. Where a chunk's first row begins is guessed, as
 * a line may end within quotes; then the chunks are taken in order, and one
 * that did not begin where the one before it ended is read once more. So what
 * is read does not depend on the cut. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "arguments.h"
#include "cancellation.h"
#include "complex_value.h"
#include "cores.h"
#include "table_reader.h"
#include "fence.h"

enum {
    CHUNK = 1 << 18, /* bytes of text: its numbers stay in a core's cache */
    WINDOW = CHUNK * LUMAT_TABLE_CHUNKS,
    SLACK = 64,          /* bytes behind the text that may be read */
    MOST_ROOM = 1 << 26, /* bytes of the numbers of all chunks, about */
    WIDE = 1 << 16,      /* columns, from which a row is read in pieces */
    LONGEST_ROW = 1 << 30,
    PACKED = 1 << 16,
    GZIP = 16 + 15
};

static const char READER[] = "lumat.table_reader";

static void free_reader(lumat_table *t)
{
    if (t->is_unpacking)
        inflateEnd(&t->z);
    t->is_unpacking = 0;
    free(t->packed);
    free(t->text);
    free(t->column);
    free(t->label_count);
    free(t->chosen);
    free(t->codes);
    free(t->finest);
    lumat_labels_free(&t->labels);
    for (int i = 0; i < LUMAT_TABLE_CHUNKS; i++) {
        free(t->chunk[i].to);
        free(t->chunk[i].scratch);
        free(t->chunk[i].finest);
        lumat_labels_free(&t->chunk[i].fresh);
    }
    t->packed = NULL;
    t->text = NULL;
    t->column = NULL;
    t->label_count = NULL;
    t->chosen = NULL;
    t->codes = NULL;
    t->finest = NULL;
    memset(t->chunk, 0, sizeof t->chunk);
}

static int close_reader(lua_State *L)
{
    free_reader(luaL_checkudata(L, 1, READER));
    return 0;
}

/* Pushes it, with a table for what it needs alive. */
static lumat_table *push_reader(lua_State *L, lumat_input *in)
{
    lumat_table *t = lua_newuserdatauv(L, sizeof *t, 1);
    memset(t, 0, sizeof *t);
    luaL_setmetatable(L, READER);
    lua_newtable(L);
    lua_setiuservalue(L, -2, 1);
    t->in = in;
    return t;
}

static void *need(lua_State *L, void *memory)
{
    if (memory == NULL)
        lumat_raise(L, "load: out of memory");
    return memory;
}

/* --- bytes ---------------------------------------------------------------- */

static size_t read_plain(lua_State *L, lumat_table *t, size_t most)
{
    size_t left = t->in->size - t->at, length = left < most ? left : most;
    lumat_read_input(L, t->in, t->at, t->text + t->used, length);
    t->at += length;
    t->is_all = t->at == t->in->size;
    return length;
}

static void refuse_damaged(lua_State *L, const lumat_table *t, const char *what)
{
    if (t->row == 0)
        lumat_raise(L, "load: '%s' %s: none of its rows can be unpacked",
                    t->in->path, what);
    lumat_raise(L, "load: '%s' %s: {rows={1, %I}} reads those before that",
                t->in->path, what, (LUAI_UACINT)t->row);
}

/* All members of the packed file, one behind the other. What can be unpacked
 * before damage is given first. */
static size_t read_packed(lua_State *L, lumat_table *t, size_t most)
{
    z_stream *z = &t->z;
    size_t used = 0;
    while (used < most && !t->is_all) {
        if (z->avail_in == 0 && t->at < t->in->size) {
            size_t left = t->in->size - t->at;
            size_t n = left < PACKED ? left : PACKED;
            lumat_read_input(L, t->in, t->at, t->packed, n);
            t->at += n;
            z->next_in = t->packed;
            z->avail_in = (uInt)n;
        }
        if (t->has_ended) { /* what tape drives pad it with is its end, too */
            t->is_all = z->avail_in == 0 || *z->next_in != 0x1f;
            if (t->is_all)
                break;
            inflateReset(z);
            t->has_ended = 0;
        }
        uInt before = z->avail_in;
        uInt room = (uInt)(most - used < CHUNK ? most - used : CHUNK);
        z->next_out = (unsigned char *)t->text + t->used + used;
        z->avail_out = room;
        int result = inflate(z, Z_NO_FLUSH);
        used += room - z->avail_out;
        t->has_ended = result == Z_STREAM_END;
        int moved = z->avail_in < before || z->avail_out < room;
        int is_bad =
            result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR;
        int is_cut = !moved && result != Z_STREAM_END && t->at == t->in->size;
        if ((is_bad || is_cut) && used > 0)
            break; /* and told of with no byte before it */
        if (is_bad)
            refuse_damaged(L, t, "is damaged");
        if (is_cut)
            refuse_damaged(L, t, "is cut off");
        lumat_poll(L, 0);
    }
    return used;
}

/* Goes on in the file: what no row has taken comes to the beginning of the
 * window, which grows where that is most of it. */
static void fill_window(lua_State *L, lumat_table *t)
{
    size_t left = t->used - t->start;
    memmove(t->text, t->text + t->start, left);
    t->start = 0;
    t->used = left;
    if (left > t->room / 2) {
        size_t room = 2 * t->room;
        if (room > (size_t)4 * LONGEST_ROW)
            lumat_raise(L, "load: %s:%I: a row of more than 1 GiB begins here",
                        t->in->path, (LUAI_UACINT)t->line);
        char *text = realloc(t->text, room + SLACK);
        t->text = text != NULL ? text : t->text;
        need(L, text);
        t->room = room;
    }
    size_t most = t->room - t->used;
    t->used +=
        t->is_unpacking ? read_packed(L, t, most) : read_plain(L, t, most);
    memset(t->text + t->used, 0, SLACK);
    lumat_poll(L, 0);
}

static void open_window(lua_State *L, lumat_table *t)
{
    size_t size = t->in->size;
    t->room = t->in->is_packed || size > WINDOW ? WINDOW : size + 1;
    t->text = need(L, malloc(t->room + SLACK));
    if (t->in->is_packed) {
        t->packed = need(L, malloc(PACKED));
        if (inflateInit2(&t->z, GZIP) != Z_OK)
            need(L, NULL);
        t->is_unpacking = 1;
    }
    fill_window(L, t);
}

/* --- numbers of chunks ---------------------------------------------------- */

/* Bytes of an element of the column, as chunks have it. */
static size_t element_size(const lumat_table *t, const lumat_csv_column *c)
{
    if (c->type == LUMAT_CSV_COMPLEX)
        return 2 * sizeof(double);
    if (c->type == LUMAT_CSV_TEXT || c->type == LUMAT_CSV_DATE)
        return sizeof(double);
    return t->dtype == GPU_F64 ? sizeof(double) : sizeof(float);
}

/* Makes room for the numbers of chunks: row after row for a matrix, column
 * after column for a frame. */
static void place_columns(lumat_table *t, size_t row)
{
    size_t at = 0;
    for (int64_t i = 0; i < t->chosen_count; i++) {
        lumat_csv_column *column = &t->column[t->chosen[i]];
        size_t size = element_size(t, column);
        column->is_wide = t->dtype == GPU_F64;
        column->offset = at;
        column->step = t->is_frame ? size : row;
        at += t->is_frame ? size * (size_t)t->chunk_rows : size;
    }
}

static void make_chunks(lua_State *L, lumat_table *t)
{
    lumat_csv *c = &t->c;
    size_t row = 0, cols = (size_t)c->cols;
    size_t text = t->used < CHUNK && t->is_all ? t->used : CHUNK;
    c->same.is_wide = t->dtype == GPU_F64;
    c->same.step = element_size(t, &c->same); /* from column to column */
    for (int64_t i = 0; i < t->chosen_count && !t->is_wide; i++)
        row += element_size(t, &c->column[t->chosen[i]]);
    t->chunk_rows = t->is_wide ? 1 : (int64_t)(text / cols) + 2;
    size_t bytes =
        t->is_wide ? LUMAT_PIECE * c->same.step : (size_t)t->chunk_rows * row;
    size_t most = MOST_ROOM / bytes, useful = t->used / CHUNK + 1;
    most = t->is_wide || most < 1      ? 1
           : most < LUMAT_TABLE_CHUNKS ? most
                                       : LUMAT_TABLE_CHUNKS;
    t->chunk_count = (int)(t->is_all && most > useful ? useful : most);
    for (int i = 0; i < t->chunk_count; i++) {
        t->chunk[i].to = need(L, malloc(bytes));
        if (!t->is_wide)
            t->chunk[i].finest = need(L, calloc(cols, 1));
    }
    if (t->is_wide)
        return;
    place_columns(t, row);
    t->label_count = need(L, calloc(cols, sizeof *t->label_count));
}

/* The codes of labels that are new to a chunk become those of all. */
static void merge_labels(lua_State *L, lumat_table *t, lumat_csv_chunk *k)
{
    lumat_labels *fresh = &k->fresh;
    if (fresh->count == 0)
        return;
    if (fresh->count > t->codes_room) {
        uint32_t *codes = realloc(t->codes, 2 * fresh->count * sizeof *codes);
        need(L, codes);
        t->codes = codes;
        t->codes_room = 2 * fresh->count;
    }
    for (size_t i = 0; i < fresh->count; i++) {
        const lumat_label *f = &fresh->list[i];
        const char *text = fresh->bytes + f->at;
        const lumat_label *known =
            lumat_labels_find(&t->labels, f->hash, f->column, text, f->length);
        if (known == NULL) {
            uint32_t code = ++t->label_count[f->column];
            known = lumat_labels_add(&t->labels, f->hash, f->column, text,
                                     f->length, code);
        }
        need(L, (void *)known);
        t->codes[i] = known->code;
    }
    for (int64_t i = 0; i < t->chosen_count; i++) {
        const lumat_csv_column *column = &t->column[t->chosen[i]];
        if (column->type != LUMAT_CSV_TEXT)
            continue;
        double *values = (double *)(void *)(k->to + column->offset);
        for (int64_t r = 0; r < k->rows; r++)
            if (values[r] < 0)
                values[r] = t->codes[(size_t)(-1 - values[r])];
    }
    lumat_labels_clear(fresh);
}

/* Cells of a matrix become its elements, in place: floats truth values, pairs
 * of doubles pairs of floats. The others are as they are to be. */
static void convert_cells(gpu_dtype dtype, char *cells, int64_t count)
{
    float single;
    double part;
    for (int64_t i = 0; dtype == GPU_BOOL && i < count; i++) {
        memcpy(&single, cells + i * (int64_t)sizeof single, sizeof single);
        cells[i] = single != 0;
    }
    for (int64_t i = 0; dtype == GPU_C64 && i < 2 * count; i++) {
        memcpy(&part, cells + i * (int64_t)sizeof part, sizeof part);
        single = (float)part;
        memcpy(cells + i * (int64_t)sizeof single, &single, sizeof single);
    }
}

/* --- results -------------------------------------------------------------- */

/* The result's parts are matrices in a table, in Lua, at `parts`. */
typedef struct table_result {
    int parts;
    int64_t count;    /* of parts */
    int64_t capacity; /* rows there is room for */
    int64_t rows;     /* that are there */
    /* Chunks whose rows are still to be copied, and where to; all cores do so
     * where the parts lie in host memory: then these are their bytes. */
    char **own;
    int late[LUMAT_TABLE_CHUNKS], late_count;
    int64_t late_row[LUMAT_TABLE_CHUNKS];
    const lumat_table *t;
} table_result;

static gpu_dtype part_dtype(const lumat_table *t, int64_t i)
{
    if (!t->is_frame)
        return t->dtype;
    lumat_csv_type type = t->column[t->chosen[i]].type;
    return type == LUMAT_CSV_TEXT || type == LUMAT_CSV_DATE ? GPU_F64
                                                            : t->dtype;
}

/* Pushes a matrix of so many rows. */
static gpu_matrix *push_part(lua_State *L, const lumat_table *t, int64_t i,
                             int64_t rows)
{
    gpu_matrix *m = lumat_new_matrix(L);
    lumat_try(L, gpu_create(m, t->device, part_dtype(t, i), t->is_frame ? 1 : 2,
                            rows, t->is_frame ? 1 : t->chosen_count));
    lumat_account(L, m);
    return m;
}

/* Notes where the bytes of the parts are, if they are the host's. */
static void find_own(lua_State *L, table_result *r)
{
    for (int64_t i = 0; r->own != NULL && i < r->count; i++) {
        lua_rawgeti(L, r->parts, (lua_Integer)i + 1);
        r->own[i] = gpu_own_bytes(lumat_test_matrix(L, -1));
        if (r->own[i] == NULL)
            r->own = NULL;
        lua_pop(L, 1);
    }
}

static table_result push_parts(lua_State *L, const lumat_table *t,
                               int64_t capacity)
{
    table_result r = {.count = t->is_frame ? t->chosen_count : 1,
                      .capacity = capacity,
                      .t = t};
    r.own = lua_newuserdatauv(L, (size_t)r.count * sizeof *r.own, 0);
    lua_createtable(L, (int)r.count, 0);
    r.parts = lua_gettop(L);
    for (int64_t i = 0; i < r.count; i++) {
        push_part(L, t, i, capacity);
        lua_rawseti(L, r.parts, (lua_Integer)i + 1);
    }
    find_own(L, &r);
    return r;
}

/* Gives the parts room for so many rows, of which the first stay. */
static void resize_parts(lua_State *L, const lumat_table *t, table_result *r,
                         int64_t capacity)
{
    if (capacity == r->capacity)
        return;
    gpu_matrix *old_rows = lumat_new_matrix(L), *new_rows = lumat_new_matrix(L);
    for (int64_t i = 0; i < r->count; i++) {
        lua_rawgeti(L, r->parts, (lua_Integer)i + 1);
        gpu_matrix *old = lumat_test_matrix(L, -1);
        gpu_matrix *new = push_part(L, t, i, capacity);
        gpu_slice rows = {0, 1, r->rows}, cols = {0, 1, old->cols};
        if (r->rows > 0) {
            lumat_try(L, gpu_view_block(old, rows, cols, old_rows));
            lumat_try(L, gpu_view_block(new, rows, cols, new_rows));
            lumat_try(L, gpu_copy(old_rows, new_rows));
            gpu_release(old_rows);
            gpu_release(new_rows);
        }
        lua_rawseti(L, r->parts, (lua_Integer)i + 1);
        gpu_release(old);
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
    r->capacity = capacity;
    find_own(L, r);
}

static void upload_rows(lua_State *L, const gpu_matrix *m, int64_t first,
                        int64_t count, const void *host)
{
    gpu_matrix *piece = lumat_new_matrix(L);
    gpu_slice rows = {first, 1, count}, cols = {0, 1, m->cols};
    lumat_try(L, gpu_view_block(m, rows, cols, piece));
    lumat_try(L, gpu_upload(piece, host));
    gpu_release(piece);
    lua_pop(L, 1);
}

/* What a chunk has of part i. */
static const char *part_of_chunk(const lumat_table *t, const lumat_csv_chunk *k,
                                 int64_t i)
{
    return t->is_frame ? k->to + t->column[t->chosen[i]].offset : k->to;
}

static void copy_late(void *context, int64_t n)
{
    const table_result *r = context;
    const lumat_table *t = r->t;
    const lumat_csv_chunk *k = &t->chunk[r->late[n]];
    for (int64_t i = 0; i < r->count; i++) {
        size_t row = gpu_dtype_size(part_dtype(t, i));
        if (!t->is_frame)
            row *= (size_t)t->chosen_count;
        memcpy(r->own[i] + (size_t)r->late_row[n] * row, part_of_chunk(t, k, i),
               (size_t)k->rows * row);
    }
}

static void copy_all_late(table_result *r)
{
    if (r != NULL && r->late_count > 0)
        gpu_on_cores(r->late_count, copy_late, r);
    if (r != NULL)
        r->late_count = 0;
}

/* Adds the rows that chunk i has read. They stay in it until copy_all_late. */
static void add_rows(lua_State *L, lumat_table *t, table_result *r, int chunk)
{
    lumat_csv_chunk *k = &t->chunk[chunk];
    if (r->rows + k->rows > r->capacity) {
        copy_all_late(r);
        resize_parts(L, t, r,
                     r->capacity + r->capacity / 2 + k->rows + CHUNK / 64);
    }
    merge_labels(L, t, k);
    convert_cells(t->dtype, k->to, k->rows * t->chosen_count);
    if (r->own != NULL) {
        r->late[r->late_count] = chunk;
        r->late_row[r->late_count++] = r->rows;
    }
    for (int64_t i = 0; r->own == NULL && i < r->count; i++) {
        lua_rawgeti(L, r->parts, (lua_Integer)i + 1);
        upload_rows(L, lumat_test_matrix(L, -1), r->rows, k->rows,
                    part_of_chunk(t, k, i));
        lua_pop(L, 1);
    }
    for (int64_t j = 0; t->is_frame && j < t->c.cols; j++)
        t->finest[j] |= k->finest[j];
    r->rows += k->rows;
}

/* --- rounds --------------------------------------------------------------- */

static void read_chunk(void *context, int64_t i)
{
    lumat_table *t = context;
    if (!gpu_is_interrupted())
        lumat_csv_read(&t->c, &t->chunk[i]);
}

static void look_for_quotes(void *context, int64_t i)
{
    lumat_table *t = context;
    const char *first = t->text + t->start + (size_t)i * CHUNK;
    const char *end = t->text + t->used;
    if (end - first > CHUNK)
        end = first + CHUNK;
    t->is_odd[i] = lumat_csv_count(first, end, t->c.quote) % 2 != 0;
}

static int goes_on(void)
{
    return !gpu_is_interrupted();
}

/* Reads a chunk from p on. */
static void begin_chunk(const lumat_table *t, lumat_csv_chunk *k, const char *p,
                        int64_t most)
{
    lumat_labels_clear(&k->fresh);
    k->next = p;
    k->end = t->text + t->used;
    k->is_last = t->is_all;
    k->most_rows = most < t->chunk_rows ? most : t->chunk_rows;
    k->shift = 0;
    k->col = k->most_cells = 0;
}

/* Cuts the window into chunks, as many as so many rows are likely to need, and
 * reads them. Returns how many. */
static int read_chunks(lumat_table *t, int64_t most)
{
    const char *first = t->text + t->start, *end = t->text + t->used;
    size_t length = t->used - t->start;
    int64_t count = (int64_t)((length + CHUNK - 1) / CHUNK);
    double wanted = (double)most * t->row_bytes / CHUNK + 1;
    if (count > t->chunk_count)
        count = t->chunk_count;
    if ((double)count > wanted)
        count = (int64_t)wanted;
    int has_quotes = count > 1 && t->c.quote != 0 &&
                     memchr(first, t->c.quote, length) != NULL;
    if (has_quotes)
        gpu_on_cores(count, look_for_quotes, t);
    int is_quoted = 0;
    for (int64_t i = 0; i < count; i++) {
        lumat_csv_chunk *k = &t->chunk[i];
        const char *at = first + (size_t)i * CHUNK;
        const char *limit = end - at > CHUNK ? at + CHUNK : end;
        const char *begin =
            i == 0 || (at[-1] == '\n' && !is_quoted)
                ? at
                : lumat_csv_line_behind(&t->c, at, limit, is_quoted);
        is_quoted ^= has_quotes && t->is_odd[i];
        begin_chunk(t, k, begin, most);
        t->begin[i] = begin;
        k->limit = limit;
    }
    t->c.goes_on = goes_on;
    if (count == 1)
        read_chunk(t, 0);
    else
        gpu_on_cores(count, read_chunk, t);
    return (int)count;
}

/* Raises what a chunk failed with, if it is not that f64 is needed. */
static void take_failure(lua_State *L, lumat_table *t, const lumat_csv_chunk *k,
                         int names)
{
    t->needs_f64 = k->is_narrow && t->may_widen;
    if (!t->needs_f64)
        lumat_table_refuse_chunk(L, t, k, names);
}

/* Takes at most so many rows, all of one window, into r, or, where that is
 * NULL, passes them. Returns how many. */
static int64_t take_rows(lua_State *L, lumat_table *t, table_result *r,
                         int64_t most, int names)
{
    const char *p = t->text + t->start, *first = p;
    int64_t left = most, line = t->line;
    t->c.is_counting = r == NULL;
    int count = read_chunks(t, most), is_done = 0;
    lumat_poll(L, 0);
    for (int i = 0; i < count && !is_done; i++) {
        lumat_csv_chunk *k = &t->chunk[i];
        if (p >= k->limit)
            continue;
        if (t->begin[i] != p) {
            begin_chunk(t, k, p, left);
            lumat_csv_read(&t->c, k);
        }
        for (;;) {
            if (k->rows > left) {
                begin_chunk(t, k, p, left);
                lumat_csv_read(&t->c, k);
            }
            lumat_poll(L, 0);
            if (k->rows > 0 && r != NULL)
                add_rows(L, t, r, i);
            left -= k->rows;
            t->row += k->rows;
            if (k->has_failed && left > 0)
                take_failure(L, t, k, names);
            t->line += k->lines;
            p = k->next;
            t->start = (size_t)(p - t->text);
            is_done = k->needs_more || left == 0 || t->needs_f64;
            if (is_done || p >= k->limit)
                break;
            copy_all_late(r);
            begin_chunk(t, k, p, left);
            lumat_csv_read(&t->c, k);
        }
    }
    copy_all_late(r);
    int64_t rows = most - left;
    if (rows > 0 && t->line > line)
        t->row_bytes = (double)(p - first) / (double)rows;
    return rows;
}

/* A row with so many columns that it is read in pieces. It is all in the
 * window. */
static void take_wide_row(lua_State *L, lumat_table *t, table_result *r,
                          int names)
{
    lumat_csv_chunk *k = &t->chunk[0];
    gpu_matrix *piece = lumat_new_matrix(L);
    if (r->rows == r->capacity)
        resize_parts(L, t, r, r->capacity + r->capacity / 2 + 1);
    lua_rawgeti(L, r->parts, 1);
    const gpu_matrix *all = lumat_test_matrix(L, -1);
    int64_t done = 0;
    begin_chunk(t, k, t->text + t->start, 1);
    k->limit = k->end;
    t->c.is_counting = 0;
    do {
        int64_t first = k->col;
        k->shift = (size_t)first * t->c.same.step;
        k->most_cells = LUMAT_PIECE;
        lumat_csv_read(&t->c, k);
        lumat_poll(L, 0);
        if (k->has_failed)
            take_failure(L, t, k, names);
        if (k->has_failed || (k->rows == 0 && k->col == 0))
            break; /* lines of blanks alone */
        int64_t n = (k->rows > 0 ? t->c.cols : k->col) - first;
        convert_cells(t->dtype, k->to, n);
        gpu_slice rows = {r->rows, 1, 1}, cols = {done, 1, n};
        lumat_try(L, gpu_view_block(all, rows, cols, piece));
        lumat_try(L, gpu_upload(piece, k->to));
        gpu_release(piece);
        done += n;
    } while (k->rows == 0);
    r->rows += k->rows;
    t->row += k->rows;
    t->line += k->lines;
    t->start = (size_t)(k->next - t->text);
    lua_pop(L, 2);
}

/* Is the first row of the window all in it? What is wrong with it is told when
 * it is read. */
static int has_wide_row(lumat_table *t)
{
    lumat_csv_chunk *k = &t->chunk[0];
    begin_chunk(t, k, t->text + t->start, 1);
    k->limit = k->end;
    t->c.is_counting = 1;
    lumat_csv_read(&t->c, k);
    return !k->needs_more;
}

/* Reads up to `most` rows into r, or passes them where that is NULL. Returns
 * how many there were. */
static int64_t read_rows(lua_State *L, lumat_table *t, table_result *r,
                         int64_t most, int names)
{
    int64_t done = 0;
    while (done < most && (!t->needs_f64 || !t->may_widen)) {
        int64_t before = t->row;
        if (t->start == t->used && t->is_all)
            break;
        if (t->is_wide && r != NULL) {
            if (has_wide_row(t))
                take_wide_row(L, t, r, names);
        } else if (t->start < t->used) {
            take_rows(L, t, r, most - done, names);
        }
        done += t->row - before;
        if (t->row == before && t->is_all && t->start < t->used)
            continue; /* lines without cells were passed, or it fails */
        if (!t->is_all && (t->row == before || t->used - t->start < CHUNK))
            fill_window(L, t);
    }
    return done;
}

/* --- how much there is ---------------------------------------------------- */

typedef struct count_job {
    const lumat_table *t;
    size_t first; /* byte of the file */
    int64_t *counts;
} count_job;

static void count_part(void *context, int64_t i)
{
    enum { BLOCK = 1 << 15 };
    const count_job *j = context;
    char bytes[BLOCK];
    size_t at = j->first + (size_t)i * CHUNK, end = at + CHUNK;
    int64_t count = 0;
    if (end > j->t->in->size)
        end = j->t->in->size;
    while (at < end && !gpu_is_interrupted()) {
        size_t length = end - at < BLOCK ? end - at : BLOCK;
        ssize_t n = lumat_read_fully(j->t->in->fd, bytes, length, (off_t)at);
        if (n <= 0)
            break; /* told of where it is read again */
        count += lumat_csv_count(bytes, bytes + n, '\n');
        at += (size_t)n;
    }
    j->counts[i] = count;
}

/* Is a line's end the last there is? Of a packed file nobody knows yet. */
static int ends_with_line(const lumat_table *t)
{
    char last = 0;
    if (t->is_all)
        last = t->used > 0 ? t->text[t->used - 1] : 0;
    else if (!t->in->is_packed)
        lumat_read_fully(t->in->fd, &last, 1, (off_t)(t->in->size - 1));
    return last == '\n';
}

/* A guess at the rows that are left, which is right for most tables whose file
 * is not packed: there each line is one. */
static int64_t guess_rows(lua_State *L, lumat_table *t, int64_t most)
{
    const lumat_input *in = t->in;
    const char *first = t->text + t->start, *end = t->text + t->used;
    int64_t lines = lumat_csv_count(first, end, '\n') + !ends_with_line(t);
    size_t known = t->used - t->start;
    t->row_bytes = (double)known / (double)(lines + 1) + 1;
    double left = (double)known;
    if (!t->is_all)
        left += in->is_packed ? 4.0 * (double)(in->size - t->at)
                              : (double)(in->size - t->at);
    double guess = t->is_all ? (double)lines : 1.05 * left / t->row_bytes + 16;
    if ((double)most < guess)
        return most;
    if (t->is_all || in->is_packed || most < INT64_MAX)
        return (int64_t)guess;
    size_t parts = (in->size - t->at + CHUNK - 1) / CHUNK;
    count_job j = {t, t->at,
                   lua_newuserdatauv(L, parts * sizeof(int64_t) + 1, 0)};
    memset(j.counts, 0, parts * sizeof(int64_t));
    gpu_on_cores((int64_t)parts, count_part, &j);
    lumat_poll(L, 0);
    for (size_t i = 0; i < parts; i++)
        lines += j.counts[i];
    lua_pop(L, 1);
    /* each cell takes a byte, in rows that are whole */
    double by_size = left / (double)t->c.cols + 1;
    return (double)lines < by_size ? lines : (int64_t)by_size;
}

/* --- what load gives ------------------------------------------------------ */

/* Pushes the matrix and its names, or the frame; returns how many values. */
static int push_table(lua_State *L, lumat_table *t, table_result *r, int names)
{
    resize_parts(L, t, r, r->rows);
    if (t->is_frame) {
        lumat_push_required(L, "frames");
        lua_getfield(L, -1, "make");
        lumat_table_push_columns(L, t, r->parts, names);
        lua_call(L, 1, 1);
        return 1;
    }
    lua_rawgeti(L, r->parts, 1);
    if (!t->has_names)
        return 1;
    lumat_table_push_chosen_names(L, t, names);
    return 2;
}

/* Finds the form of the table in as much text as it takes. */
static void open_table(lua_State *L, lumat_table *t)
{
    char message[LUMAT_MESSAGE] = "";
    int opened;
    lumat_csv_prepare();
    char delimiter = t->c.delimiter;
    while ((opened = lumat_csv_open(&t->c, t->text, t->used, t->is_all, message,
                                    sizeof message)) < 0) {
        t->c.delimiter = delimiter;
        t->line = 1;
        fill_window(L, t);
    }
    if (!opened)
        lumat_table_refuse(L, t, message);
    t->start = t->c.data;
    t->line = t->c.line;
    size_t cols = (size_t)t->c.cols;
    t->is_whole = !lumat_has_option(L, 2, "columns");
    t->is_wide = cols > WIDE && t->is_whole &&
                 !lumat_has_option(L, 2, "types") &&
                 !lumat_has_option(L, 2, "as");
    t->chosen_count = t->is_wide ? t->c.cols : 0;
    if (t->is_wide)
        return;
    t->column = need(L, calloc(cols, sizeof *t->column));
    t->finest = need(L, calloc(cols, 1));
    t->chosen = need(L, calloc(cols, sizeof *t->chosen));
    t->c.column = t->column;
}

/* Opens the table of t's input; the options are at 2. Leaves the list of names,
 * or nil, whose index it returns. */
static int begin_table(lua_State *L, lumat_table *t, int index, char delimiter)
{
    lua_getiuservalue(L, index, 1);
    int anchor = lua_gettop(L);
    t->line = 1;
    lumat_table_read_options(L, t, delimiter, anchor);
    open_window(L, t);
    open_table(L, t);
    lumat_table_push_names(L, t);
    int names = lua_gettop(L);
    lumat_table_choose_columns(L, t, names);
    lumat_table_find_types(L, t, names, anchor);
    make_chunks(L, t);
    return names;
}

/* Returns 0 where some of its whole numbers need f64, which was not known. */
static int load_table(lua_State *L, lumat_input *in, const lumat_format *f,
                      int needs_f64)
{
    int64_t first, last;
    lumat_table *t = push_reader(L, in);
    lua_toclose(L, -1);
    t->needs_f64 = needs_f64;
    t->may_widen = !needs_f64;
    lumat_option_range(L, &first, &last);
    lumat_begin_input(in, in->size);
    int names = begin_table(L, t, lua_gettop(L), f->delimiter);
    if (first > 1 && read_rows(L, t, NULL, first - 1, names) < first - 1)
        lumat_raise(L, "rows: '%s' has %I rows, none of them is row %I",
                    in->path, (LUAI_UACINT)t->row, (LUAI_UACINT)first);
    int64_t most = last == INT64_MAX ? last : last - first + 1;
    table_result r = push_parts(L, t, guess_rows(L, t, most));
    read_rows(L, t, &r, most, names);
    if (t->needs_f64 && t->may_widen)
        return 0;
    if (first > 1 && r.rows == 0)
        lumat_raise(L, "rows: '%s' has %I rows, none of them is row %I",
                    in->path, (LUAI_UACINT)t->row, (LUAI_UACINT)first);
    return push_table(L, t, &r, names);
}

int lumat_load_csv(lua_State *L, lumat_input *in, const lumat_format *f)
{
    int top = lua_gettop(L);
    int count = load_table(L, in, f, 0);
    if (count > 0)
        return count;
    lua_settop(L, top);
    return load_table(L, in, f, 1);
}

/* --- blocks --------------------------------------------------------------- */

/* Gives the next block, or nothing. Upvalues: the reader, the path, the
 * options, the names, the most rows. */
static int next_block(lua_State *L)
{
    lumat_table *t = lua_touserdata(L, lua_upvalueindex(1));
    int64_t most = lua_tointeger(L, lua_upvalueindex(5));
    lua_settop(L, 0);
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_pushvalue(L, lua_upvalueindex(3)); /* where options are looked for */
    lua_pushvalue(L, lua_upvalueindex(4));
    if (t->text == NULL || (t->is_all && t->start == t->used))
        return 0;
    table_result r = push_parts(L, t, guess_rows(L, t, most));
    if (read_rows(L, t, &r, most, 3) == 0 && t->row > 0)
        return 0;
    return push_table(L, t, &r, 3);
}

int lumat_csv_blocks(lua_State *L, lumat_input *in, const lumat_format *f,
                     int64_t rows)
{
    int input = lua_gettop(L);
    lumat_table *t = push_reader(L, in);
    int reader = lua_gettop(L);
    int names = begin_table(L, t, reader, f->delimiter);
    lua_getiuservalue(L, reader, 1);
    lua_pushvalue(L, input);
    lua_setfield(L, -2, "input");
    lua_pushvalue(L, reader);
    lua_pushvalue(L, 1);
    lua_pushvalue(L, 2);
    lua_pushvalue(L, names);
    lua_pushinteger(L, rows);
    lua_pushcclosure(L, next_block, 5);
    lua_pushnil(L);
    lua_pushnil(L);
    lua_pushvalue(L, reader);
    return 4;
}

void lumat_open_csv(lua_State *L)
{
    lumat_open_closing(L, READER, close_reader);
}
