#include "mat_values.h"
void lumat_push_hdf_values(lua_State *L, lumat_input *in, const char *bytes,
                           size_t length, gpu_dtype dtype, int values)
{
    (void)bytes, (void)length, (void)dtype, (void)values;
    lumat_refuse_input(L, in, "is of version 7.3");
}
