/* A stand-in for libcuda: it runs no PTX, it checks that it was given some and computes the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int number(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

static int device_in_use = 0;

int cuInit(unsigned flags) { return number("FAKE_INIT", 0) + (int)flags; }
int cuDeviceGetCount(int *count) { *count = number("FAKE_COUNT", 2); return 0; }
int cuDeviceGet(int *device, int index) { *device = index; return 0; }

int cuDeviceGetName(char *name, int length, int device) {
    (void)device;
    strncpy(name, "Stand-in", (size_t)length);
    return 0;
}

int cuGetErrorName(int code, const char **name) {
    *name = code == 802 ? "CUDA_ERROR_SYSTEM_NOT_READY" : "CUDA_ERROR_UNKNOWN";
    return 0;
}

int cuCtxCreate_v2(void **context, unsigned flags, int device) {
    (void)flags;
    device_in_use = device;
    if (number("FAKE_BAD_DEVICE", -1) == device) return 999;
    *context = malloc(1);
    return 0;
}

int cuCtxDestroy_v2(void *context) { free(context); return 0; }

int cuModuleLoadData(void **module, const char *image) {
    *module = NULL;
    return strstr(image, ".visible .entry prove") ? 0 : 218;
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
    (void)module;
    *function = NULL;
    return strcmp(name, "prove") ? 500 : 0;
}

int cuMemAlloc_v2(uint64_t *memory, size_t size) { *memory = (uint64_t)(uintptr_t)malloc(size); return 0; }
int cuMemFree_v2(uint64_t memory) { free((void *)(uintptr_t)memory); return 0; }

int cuMemsetD8_v2(uint64_t memory, unsigned char value, size_t size) {
    memset((void *)(uintptr_t)memory, value, size);
    return 0;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **arguments, void **extra) {
    (void)function; (void)shared; (void)stream; (void)extra;
    uint32_t *out = (uint32_t *)(uintptr_t)*(uint64_t *)arguments[0];
    if (number("FAKE_LAZY_DEVICE", -1) == device_in_use) return 0;
    for (uint32_t i = 0; i < gx * gy * gz * bx * by * bz; i++) out[i] = 3 * i + 1;
    return 0;
}

int cuCtxSynchronize(void) { return 0; }

int cuMemcpyDtoH_v2(void *host, uint64_t memory, size_t size) {
    memcpy(host, (void *)(uintptr_t)memory, size);
    return 0;
}
