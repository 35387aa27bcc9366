/* How the objects around the toolkit's libraries call them. A device, d, has a
 * la_setup called setup. */
#ifndef LIBRARY_CALL_H
#define LIBRARY_CALL_H

#define TRY(call)                    \
    do {                             \
        gpu_status status_ = (call); \
        if (status_ != GPU_OK)       \
            return status_;          \
    } while (0)

/* A call that can be made to fail: see gpu_fault_site. */
#define CALL_OF(d, shown, function, error, ...)                       \
    __extension__({                                                   \
        static gpu_fault_site site = {.name = shown, .usual = error}; \
        int injected = (d)->setup.fault(&site);                       \
        injected ? (__typeof__(function(__VA_ARGS__)))injected        \
                 : function(__VA_ARGS__);                             \
    })
#define CALL(d, function, error, ...) \
    CALL_OF(d, #function, function, error, __VA_ARGS__)

#endif
