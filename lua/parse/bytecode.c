/* Compiled functions as lua_dump writes them: header, instructions, constants,
 * lines. Source: ldump.c and lopcodes.h of Lua 5.4, whose format its version
 * byte names. What is read may have been written by anyone: nothing here reads
 * beyond its end. */
#include "parse.h"

#include <string.h>

enum { DEEPEST = 64 }; /* functions in functions */

typedef struct reader {
    const uint8_t *p, *end;
    int is_bad;
} reader;

static const uint8_t *take(reader *r, size_t bytes)
{
    const uint8_t *at = r->p;
    if (r->is_bad || bytes > (size_t)(r->end - r->p)) {
        r->is_bad = 1;
        return NULL;
    }
    r->p += bytes;
    return at;
}

static int take_byte(reader *r)
{
    const uint8_t *at = take(r, 1);
    return at ? *at : 0;
}

/* Seven bits a byte, the highest first; the last byte has its top bit set. */
static size_t take_size(reader *r)
{
    size_t x = 0;
    for (int bits = 0; bits < 63; bits += 7) {
        int byte = take_byte(r);
        x = x << 7 | (size_t)(byte & 0x7f);
        if (byte & 0x80 || r->is_bad)
            return x;
    }
    r->is_bad = 1;
    return 0;
}

/* A length that is one more than the string's, 0 for none. */
static const char *take_string(reader *r, size_t *length)
{
    size_t size = take_size(r);
    *length = size > 0 ? size - 1 : 0;
    return (const char *)take(r, *length);
}

static int take_count(reader *r)
{
    size_t n = take_size(r);
    if (n > (size_t)(r->end - r->p))
        r->is_bad = 1;
    return r->is_bad ? 0 : (int)n;
}

/* Lua's tags of constants. */
enum {
    TAG_NIL = 0x00,
    TAG_FALSE = 0x01,
    TAG_TRUE = 0x11,
    TAG_INTEGER = 0x03,
    TAG_NUMBER = 0x13,
    TAG_SHORT = 0x04,
    TAG_LONG = 0x14
};

static void take_constant(reader *r, lumat_constant *c)
{
    int tag = take_byte(r);
    const uint8_t *at;
    *c = (lumat_constant){.is = LUMAT_CONSTANT_NIL};
    switch (tag) {
    case TAG_NIL:
        return;
    case TAG_FALSE:
    case TAG_TRUE:
        c->is = LUMAT_CONSTANT_BOOLEAN;
        c->integer = tag == TAG_TRUE;
        return;
    case TAG_INTEGER:
        c->is = LUMAT_CONSTANT_INTEGER;
        if ((at = take(r, sizeof c->integer)) != NULL)
            memcpy(&c->integer, at, sizeof c->integer);
        return;
    case TAG_NUMBER:
        c->is = LUMAT_CONSTANT_NUMBER;
        if ((at = take(r, sizeof c->number)) != NULL)
            memcpy(&c->number, at, sizeof c->number);
        return;
    case TAG_SHORT:
    case TAG_LONG:
        c->is = LUMAT_CONSTANT_STRING;
        c->text = take_string(r, &c->length);
        return;
    default:
        r->is_bad = 1;
    }
}

static void take_lines(reader *r, lumat_bytecode *f)
{
    f->line_steps = take_count(r);
    f->lines = (const int8_t *)take(r, (size_t)f->line_steps);
    f->absolute_count = take_count(r);
    f->absolute = r->p;
    for (int i = 0; i < 2 * f->absolute_count; i++)
        take_size(r);
}

static void skip_names(reader *r)
{
    size_t length;
    for (int n = take_count(r); n > 0 && !r->is_bad; n--) {
        take_string(r, &length); /* a local, from where to where */
        take_size(r);
        take_size(r);
    }
    for (int n = take_count(r); n > 0 && !r->is_bad; n--)
        take_string(r, &length); /* an upvalue */
}

static void take_function(reader *r, lumat_bytecode *f, int depth)
{
    size_t length;
    lumat_constant constant;
    lumat_bytecode inner;
    take_string(r, &length); /* the source's name */
    f->first_line = (int)take_size(r);
    take_size(r);
    f->parameters = take_byte(r);
    take_byte(r); /* does it take …? */
    f->registers = take_byte(r);
    f->count = take_count(r);
    f->code = take(r, (size_t)f->count * 4);
    f->constants = take_count(r);
    f->constant = r->p;
    f->end = r->end;
    for (int i = 0; i < f->constants && !r->is_bad; i++)
        take_constant(r, &constant);
    take(r, 3 * (size_t)take_count(r)); /* where upvalues come from */
    int functions = take_count(r);
    if (functions > 0 && depth == DEEPEST)
        r->is_bad = 1;
    for (int i = 0; i < functions && !r->is_bad; i++)
        take_function(r, &inner, depth + 1);
    take_lines(r, f);
    skip_names(r);
}

/* Up to the count of upvalues of the function that follows. */
static void take_header(reader *r)
{
    static const uint8_t expected[] = {0x1b, 'L',  'u',  'a',  0x54,
                                       0,    0x19, 0x93, '\r', '\n',
                                       0x1a, '\n', 4,    8,    8};
    const int64_t integer = 0x5678;
    const double number = 370.5;
    const uint8_t *at = take(r, sizeof expected);
    r->is_bad |= at && memcmp(at, expected, sizeof expected) != 0;
    at = take(r, sizeof integer);
    r->is_bad |= at && memcmp(at, &integer, sizeof integer) != 0;
    at = take(r, sizeof number);
    r->is_bad |= at && memcmp(at, &number, sizeof number) != 0;
    take_byte(r);
}

int lumat_read_bytecode(const void *dump, size_t length, lumat_bytecode *out)
{
    reader r = {dump, (const uint8_t *)dump + length, 0};
    *out = (lumat_bytecode){.count = 0};
    take_header(&r);
    if (!r.is_bad)
        take_function(&r, out, 0);
    return !r.is_bad;
}

uint32_t lumat_instruction_at(const lumat_bytecode *f, int i)
{
    uint32_t word;
    memcpy(&word, f->code + 4 * (size_t)i, sizeof word);
    return word;
}

int lumat_read_constant(const lumat_bytecode *f, int i, lumat_constant *out)
{
    reader r = {f->constant, f->end, 0};
    if (i < 0 || i >= f->constants)
        return 0;
    for (; i >= 0; i--)
        take_constant(&r, out);
    return !r.is_bad;
}

/* Source: luaG_getfuncline. Steps of a byte from one instruction to the next;
 * one that does not fit, and each 128th, is -128 and in a list of its own. */
int lumat_line_at(const lumat_bytecode *f, int i)
{
    enum { ABSOLUTE = -128 };
    reader r = {f->absolute, f->end, 0};
    unsigned line = (unsigned)f->first_line;
    int left = f->absolute_count;
    if (f->line_steps == 0)
        return 0;
    for (int k = 0; k <= i && k < f->line_steps; k++) {
        if (f->lines[k] != ABSOLUTE) {
            line += (unsigned)f->lines[k];
        } else if (left-- > 0) {
            take_size(&r);
            line = (unsigned)take_size(&r);
        }
    }
    return (int)line;
}
