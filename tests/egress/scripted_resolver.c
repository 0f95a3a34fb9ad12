#include "egress/scripted_resolver.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/must.h"
#include "base/str.h"

#include "base/banned.h"

enum { SCRIPTS_MAX = 16, ADDRESS_BYTES = 64 };

struct script {
    struct str name, answers;
    atomic_uint lookups;
};

static struct script scripts[SCRIPTS_MAX];
static size_t script_count;
static atomic_uint lookup_count;

bool scripted_resolver_add(const char *text)
{
    struct str answers = str_of(text), name = str_cut(&answers, '=');
    if (script_count == SCRIPTS_MAX || !name.len || !answers.len)
        return false;
    scripts[script_count].name = name;
    scripts[script_count++].answers = answers;
    return true;
}

unsigned scripted_resolver_lookups(void)
{
    return atomic_load(&lookup_count);
}

static struct script *script_of(const char *name)
{
    for (size_t i = 0; i < script_count; i++)
        if (str_is(scripts[i].name, name))
            return &scripts[i];
    return NULL;
}

static struct str answer_of(struct script *script)
{
    unsigned turn = atomic_fetch_add(&script->lookups, 1);
    struct str rest = script->answers, answer = str_cut(&rest, '|');
    while (turn-- && rest.len)
        answer = str_cut(&rest, '|');
    return answer;
}

/* Takes "MS:" off the front; an IPv6 address has no colon behind digits alone that long. */
static void wait_if_late(struct str *answer)
{
    struct str rest = *answer, number = str_cut(&rest, ':');
    int64_t ms;
    if (number.len == answer->len || number.len < 3 || number.len > 5 || !str_to_int(number, 100, 99999, &ms))
        return;
    *answer = rest;
    struct timespec wait = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&wait, NULL);
}

static struct addrinfo *addrinfo_new(const char *address, uint16_t port)
{
    struct addrinfo *info = must_alloc(sizeof *info + sizeof(struct sockaddr_storage));
    struct sockaddr_storage *storage = (struct sockaddr_storage *)(info + 1);
    struct sockaddr_in *v4 = (struct sockaddr_in *)storage;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)storage;
    info->ai_socktype = SOCK_STREAM;
    info->ai_protocol = IPPROTO_TCP;
    info->ai_addr = (struct sockaddr *)storage;
    if (inet_pton(AF_INET, address, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        info->ai_addrlen = sizeof *v4;
    } else {
        MUST(inet_pton(AF_INET6, address, &v6->sin6_addr) == 1);
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        info->ai_addrlen = sizeof *v6;
    }
    info->ai_family = storage->ss_family;
    return info;
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
    atomic_fetch_add(&lookup_count, 1);
    struct script *script = name ? script_of(name) : NULL;
    struct str rest = script ? answer_of(script) : STR("nx");
    wait_if_late(&rest);
    if (str_is(rest, "nx"))
        return EAI_NONAME;
    int64_t port = 0;
    str_to_int(str_of(service), 0, 65535, &port);
    struct addrinfo *first = NULL, **last = &first;
    while (rest.len) {
        char address[ADDRESS_BYTES] = "";
        struct str item = str_cut(&rest, ',');
        MUST(item.len < sizeof address);
        memcpy(address, item.ptr, item.len);
        *last = addrinfo_new(address, (uint16_t)port);
        if (hints && hints->ai_family != AF_UNSPEC && hints->ai_family != (*last)->ai_family)
            free(*last), *last = NULL;
        else
            last = &(*last)->ai_next;
    }
    *ret = first;
    return first ? 0 : EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *info)
{
    while (info) {
        struct addrinfo *next = info->ai_next;
        free(info);
        info = next;
    }
}
