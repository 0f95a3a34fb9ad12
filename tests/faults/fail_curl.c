/* fail_curl.c - LD_PRELOAD: curl refuses requests to planted URLs while a real gateway runs.
 *
 * FAIL_CURL_CONTROL names a file of CONTROL_WORDS 64-bit numbers that the test and every process of the
 * server map; fail_curl.py is the other side. Only URLs with "/planted" in them are touched. With no failures
 * left each call goes straight to curl: the negative control. */
#include <curl/curl.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#undef curl_multi_add_handle

enum control_word { FAILURES_LEFT, SEEN, FAILED, CONTROL_WORDS };

static _Atomic int64_t *control;

__attribute__((constructor)) static void map_control(void)
{
    const char *path = getenv("FAIL_CURL_CONTROL");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *words = mmap(NULL, CONTROL_WORDS * sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (words != MAP_FAILED)
        control = words;
}

static int is_to_fail(CURL *easy)
{
    const char *url = NULL;
    curl_easy_getinfo(easy, CURLINFO_EFFECTIVE_URL, &url);
    if (!control || !url || !strstr(url, "/planted"))
        return 0;
    atomic_fetch_add(&control[SEEN], 1);
    if (atomic_load(&control[FAILURES_LEFT]) <= 0)
        return 0;
    atomic_fetch_sub(&control[FAILURES_LEFT], 1);
    atomic_fetch_add(&control[FAILED], 1);
    return 1;
}

CURLMcode curl_multi_add_handle(CURLM *multi, CURL *easy)
{
    static CURLMcode (*real)(CURLM *, CURL *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "curl_multi_add_handle");
    return is_to_fail(easy) ? CURLM_OUT_OF_MEMORY : real(multi, easy);
}
