/* What readers of bytes say of those that they do not take. */
#include "data_formats.h"

#include <stdarg.h>
#include <stdio.h>

int lumat_refuse_data(char *error, size_t size, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(error, size, format, list);
    va_end(list);
    return 0;
}
