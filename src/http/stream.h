/* http/stream.h - connections whose answer is a stream of events; for the files of this folder only. */
#ifndef WEIR_HTTP_STREAM_H
#define WEIR_HTTP_STREAM_H

struct http_conn;
struct http_loop;

void stream_start(struct http_conn *c);
void stream_on_turn(struct http_conn *c);
void stream_on_deadline(struct http_conn *c);
void stream_lose(struct http_conn *c);
void stream_drain(struct http_conn *c);
void stream_tick_all(struct http_loop *l);

#endif
