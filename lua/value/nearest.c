/* Misspelt words: the one of a list that is nearest. */
#include "value.h"

#include <string.h>

int lumat_distance(const char *a, size_t n, const char *b, size_t m)
{
    int d[32][32];
    if (n > 31 || m > 31)
        return LUMAT_FAR_APART;
    for (size_t i = 0; i <= n; i++)
        d[i][0] = (int)i;
    for (size_t j = 0; j <= m; j++)
        d[0][j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        for (size_t j = 1; j <= m; j++) {
            int best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best)
                best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best)
                best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                if (d[i - 2][j - 2] + 1 < best)
                    best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    }
    return d[n][m];
}

const char *lumat_nearest(lua_State *L, const char *word, const char *list)
{
    size_t length = strlen(word), found = 0;
    int best = length <= 4 ? 2 : 3; /* edits at which words stop being alike */
    const char *nearest = NULL;
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, " ");
        int edits = lumat_distance(word, length, p, n);
        if (edits < best) {
            best = edits;
            nearest = p;
            found = n;
        }
        p += n + strspn(p + n, " ");
    }
    return nearest ? lua_pushlstring(L, nearest, found) : NULL;
}
