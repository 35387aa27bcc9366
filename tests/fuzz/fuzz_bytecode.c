/* Feeds any bytes to the reader of compiled functions, behind a valid header
 * or without one. Holds: of what is accepted every instruction, constant and
 * line can be read, and texts lie inside. */
#include <stdlib.h>
#include <string.h>
#include "parse.h"

static void require(int truth)
{
    if (!truth)
        abort();
}

static void read_all(const lumat_bytecode *f, const uint8_t *dump, size_t size)
{
    lumat_constant k;
    uint32_t sum = 0;
    for (int i = 0; i < f->count; i++) {
        sum += lumat_instruction_at(f, i);
        sum += (uint32_t)lumat_line_at(f, i);
        i += i > 100 ? f->count / 50 : 0; /* lines are counted from the start */
    }
    for (int i = 0; i < f->constants && i < 100; i++) {
        require(lumat_read_constant(f, i, &k));
        const uint8_t *text = (const uint8_t *)k.text;
        require(k.is != LUMAT_CONSTANT_STRING ||
                (text >= dump && k.length <= size &&
                 text + k.length <= dump + size));
    }
    require(!lumat_read_constant(f, -1, &k));
    require(!lumat_read_constant(f, f->constants, &k));
    static volatile uint32_t used;
    used = sum;
    (void)used;
}

/* What libFuzzer calls. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t header[] =
        "\x1bLua\x54\0\x19\x93\r\n\x1a\n\x04\x08\x08"
        "x\x56\0\0\0\0\0\0\0\0\0\0\0\x28\x77\x40";
    size_t front = size > 0 && data[0] & 1 ? sizeof header - 1 : 0;
    uint8_t *dump = malloc(front + size + 1);
    lumat_bytecode f;
    require(dump != NULL);
    memcpy(dump, header, front);
    if (size > 0)
        memcpy(dump + front, data + 1, size - 1);
    size_t length = size > 0 ? front + size - 1 : 0;
    if (lumat_read_bytecode(dump, length, &f))
        read_all(&f, dump, length);
    free(dump);
    return 0;
}
