/* egress/sender_internal.h - one request under way, shared by the loop (sender.c) and the options and
 * callbacks of its transfer (sender_easy.c). */
#ifndef WEIR_EGRESS_SENDER_INTERNAL_H
#define WEIR_EGRESS_SENDER_INTERNAL_H

#include <curl/curl.h>

#include "egress/sender.h"

/* An endpoint's requests all go through one of several multi handles. At the end of every transfer curl walks
 * all names it remembers, and for a new connection the kept ones: with thousands of receivers on one handle,
 * each would pay for all. */
enum { LANES = 8 };

struct egress_lane {
    struct egress *egress;
    CURLM *multi;
    int64_t timer_at_us; /* mono; when curl wants to be called; INT64_MAX: never */
};

/* Kept and reused: an easy handle with its options costs more to make than to keep. */
struct egress_transfer {
    struct egress *egress;
    struct egress_lane *lane;     /* while in flight */
    struct egress_transfer *next; /* idle: the next idle one */
    CURL *easy;
    struct curl_slist *headers;
    struct strbuf body;
    size_t bytes; /* counted against bytes_max */
    void *owner;
    struct strbuf *answer; /* the request's; NULL: none */
    int64_t started_us;    /* mono */
    bool in_flight;

    bool trusted;         /* its addresses are not judged (trusted.h) */
    bool host_is_address; /* nothing to look up */
    bool looking_up;      /* counted in egress->lookups */
    bool lookups_full;    /* there was no lookup left for it */
    struct egress_transfer *next_denied;
    bool in_denied;                /* stands in egress->denied */
    const char *denied;            /* why an address was denied; NULL: none was */
    size_t head_bytes, head_lines; /* of the answer, so far */
    size_t body_bytes;             /* of the answer, so far */
    bool head_done;                /* the final head is complete; trailers follow */
    bool head_large, cut;          /* why we stopped reading */
    int64_t retry_after_ms;
    char curl_error[CURL_ERROR_SIZE];
    char excerpt[EGRESS_EXCERPT_BYTES];
};

struct egress {
    struct egress_config config;
    char *ca_file; /* our copy of the config's */
    struct egress_lane lanes[LANES];
    int epoll_fd, wake_fd;
    struct egress_transfer **transfers, *idle;
    struct egress_transfer *denied; /* since the last round; some may have ended since */
    uint32_t transfer_count;        /* made so far, at most in_flight_max */
    uint32_t in_flight, lookups;
    size_t bytes;
    uint64_t hash_key[2]; /* chooses lanes; seeded, so that no client fills one on purpose */
    bool cancelling;
};

/* A new handle with everything that is the same for all requests. */
CURL *transfer_easy_new(struct egress_transfer *t);
/* The options that differ between requests: URL, headers, body, times. The request has been checked. */
void transfer_easy_aim(struct egress_transfer *t, const struct egress_request *request);
/* A lookup has ended, one way or another. */
void transfer_lookup_over(struct egress_transfer *t);
/* The result, and `error` for people. */
enum egress_failure transfer_failure(const struct egress_transfer *t, CURLcode ended,
                                     char error[EGRESS_ERROR_BYTES]);

#endif
