/* http/stream.h - connections whose answer is a stream of events; for the files of this folder only. */
#ifndef WEIR_HTTP_STREAM_H
#define WEIR_HTTP_STREAM_H

struct exchange;
struct http_conn;
struct http_loop;

enum stream_state {
    STREAM_OPEN,
    STREAM_ENDING, /* ended by us: unsent bytes still go out */
    STREAM_LOST,   /* the client is gone or too slow: on_stream_end, then close */
};

void stream_start(struct http_conn *c);
void stream_answer_held(struct exchange *ex);
void stream_on_turn(struct http_conn *c);
void stream_on_deadline(struct http_conn *c);
void stream_lose(struct http_conn *c);
void stream_peer_shut(struct http_conn *c);
void stream_drain(struct http_conn *c);
void stream_tick_all(struct http_loop *l);

#endif
