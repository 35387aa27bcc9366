/* A table as text while it is read: what load_tables.c, which reads it, shares
 * with those that know its options and its columns. For these three alone. */
#ifndef LUMAT_TABLE_READER_H
#define LUMAT_TABLE_READER_H

#include "table_files.h"

#include <zlib.h>

enum { LUMAT_TABLE_CHUNKS = 32, LUMAT_TABLE_WORDS = 256 };

/* What is known of a table while it is read. Its memory is malloc's, as cores
 * fill it; it goes with the userdata. */
typedef struct lumat_table {
    lumat_input *in;
    size_t at;  /* bytes of the file that were read */
    z_stream z; /* where it is packed, and is_unpacking */
    int is_unpacking, has_ended;
    unsigned char *packed;    /* what is being unpacked */
    char *text;               /* the window: */
    size_t start, used, room; /* the first byte that no row has taken */
    int is_all;               /* the file has no more than is in it */
    int64_t line;             /* of text[start] */
    int64_t row;              /* rows that were taken, or passed */
    double row_bytes;         /* of text, about */
    lumat_csv c;
    lumat_csv_column *column;
    lumat_labels labels;
    uint32_t *label_count; /* of every column of the file */
    unsigned char *finest;
    int64_t *chosen; /* the file's columns, from 0, in the result's order */
    int64_t chosen_count;
    char as; /* what is asked for: 'm'atrix, 'f'rame; 0: nothing */
    int is_frame, has_names;
    int is_whole;    /* all columns, in their order */
    int is_wide;     /* rows are read in pieces */
    gpu_dtype dtype; /* of a matrix, or of a frame's numbers */
    int may_widen;   /* where f32 would round integers, needs_f64 is set, and */
    int needs_f64;   /* reading ends, to begin anew */
    gpu_device *device;
    lumat_csv_text word[LUMAT_TABLE_WORDS]; /* of na */
    double value[LUMAT_TABLE_WORDS];
    lumat_csv_chunk chunk[LUMAT_TABLE_CHUNKS];
    const char *begin[LUMAT_TABLE_CHUNKS]; /* where it was read from */
    char is_odd[LUMAT_TABLE_CHUNKS];       /* has it an odd number of quotes? */
    int chunk_count;
    int64_t chunk_rows; /* the most of one */
    uint32_t *codes;    /* of new labels */
    size_t codes_room;
} lumat_table;

/* --- options, of the table at 2 ------------------------------------------- */

/* Sets t's form, its type and device; what it points to is put into the list at
 * `anchor`, which keeps it. delimiter: the format's; 0: one is looked for. */
void lumat_table_read_options(lua_State *L, lumat_table *t, char delimiter,
                              int anchor);

/* --- columns -------------------------------------------------------------- */

/* Pushes the list of all names, from the options or the file, or nil; `names`
 * below is where it is. */
void lumat_table_push_names(lua_State *L, lumat_table *t);
/* Which columns are read, and in which order. */
void lumat_table_choose_columns(lua_State *L, lumat_table *t, int names);
/* Their types, and whether a matrix or a frame comes of them. */
void lumat_table_find_types(lua_State *L, lumat_table *t, int names,
                            int anchor);
/* Raises what a chunk failed with, or what else is wrong with the table; most
 * messages begin with the number of a line. */
void lumat_table_refuse_chunk(lua_State *L, const lumat_table *t,
                              const lumat_csv_chunk *k, int names);
int lumat_table_refuse(lua_State *L, const lumat_table *t, const char *message);
/* Pushes the names of the chosen columns, or nil. */
void lumat_table_push_chosen_names(lua_State *L, const lumat_table *t,
                                   int names);
/* Pushes the list that frames are made of; their vectors are in the list at
 * `parts`. */
void lumat_table_push_columns(lua_State *L, const lumat_table *t, int parts,
                              int names);

#endif
