/* The different texts of the columns of a table: a hash table that grows. */
#include <stdlib.h>
#include <string.h>
#include "csv_parts.h"

enum { FIRST_SLOTS = 64, FIRST_BYTES = 1024 };

void lumat_labels_free(lumat_labels *l)
{
    free(l->list);
    free(l->slots);
    free(l->bytes);
    *l = (lumat_labels){0};
}

void lumat_labels_clear(lumat_labels *l)
{
    if (l->count > 0)
        memset(l->slots, 0, l->slot_count * sizeof *l->slots);
    l->count = l->used = 0;
}

const lumat_label *lumat_labels_find(const lumat_labels *l, uint64_t hash,
                                     uint32_t column, const char *text,
                                     size_t length)
{
    if (l->count == 0)
        return NULL;
    for (size_t i = hash;; i++) {
        uint32_t place = l->slots[i & (l->slot_count - 1)];
        if (place == 0)
            return NULL;
        const lumat_label *label = &l->list[place - 1];
        if (label->hash == hash && label->column == column &&
            label->length == length &&
            memcmp(l->bytes + label->at, text, length) == 0)
            return label;
    }
}

static void enter(lumat_labels *l, size_t place)
{
    size_t i = l->list[place].hash;
    while (l->slots[i & (l->slot_count - 1)] != 0)
        i++;
    l->slots[i & (l->slot_count - 1)] = (uint32_t)place + 1;
}

void lumat_labels_truncate(lumat_labels *l, size_t count)
{
    if (count >= l->count)
        return;
    l->used = l->list[count].at;
    memset(l->slots, 0, l->slot_count * sizeof *l->slots);
    l->count = count;
    for (size_t i = 0; i < count; i++)
        enter(l, i);
}

/* Makes room for one more of so many bytes; 0: there is no memory. */
static int grow(lumat_labels *l, size_t length)
{
    if (2 * (l->count + 1) > l->slot_count) {
        size_t count = l->slot_count > 0 ? 2 * l->slot_count : FIRST_SLOTS;
        uint32_t *slots = calloc(count, sizeof *slots);
        if (slots == NULL)
            return 0;
        free(l->slots);
        l->slots = slots;
        l->slot_count = count;
        for (size_t i = 0; i < l->count; i++)
            enter(l, i);
    }
    if (l->count == l->room) {
        size_t room = l->room > 0 ? 2 * l->room : FIRST_SLOTS / 2;
        lumat_label *list = realloc(l->list, room * sizeof *list);
        if (list == NULL)
            return 0;
        l->list = list;
        l->room = room;
    }
    if (l->bytes == NULL || length > l->bytes_room - l->used) {
        size_t room = 2 * l->bytes_room + length + FIRST_BYTES;
        char *bytes = realloc(l->bytes, room);
        if (bytes == NULL)
            return 0;
        l->bytes = bytes;
        l->bytes_room = room;
    }
    return 1;
}

const lumat_label *lumat_labels_add(lumat_labels *l, uint64_t hash,
                                    uint32_t column, const char *text,
                                    size_t length, uint32_t code)
{
    if (l->count >= UINT32_MAX / 2 || !grow(l, length))
        return NULL;
    lumat_label *label = &l->list[l->count];
    *label = (lumat_label){hash, l->used, (uint32_t)length, column, code};
    memcpy(l->bytes + l->used, text, length);
    l->used += length;
    enter(l, l->count++);
    return label;
}
