/* api/issuer_fetches.h - keys of outside issuers. Those with a URL are fetched by a gateway, because core
 * does not connect out; all of them are read again when an operator asks (SIGHUP).
 *
 * The gateway's side, over the Unix socket and in no contract: it is between processes of one program. POST
 * .../issuers:take {} gives {"fetches":[{"id","url"}]}, one at most. Core decides which fetches are due
 * (tokens/issuer_keys.h), so the number of gateways and of their calls does not matter. POST
 * .../issuers:answer {"id","body"} or {"id","error"} gives {}. */
#ifndef WEIR_API_ISSUER_FETCHES_H
#define WEIR_API_ISSUER_FETCHES_H

#include "api/api.h"

#define ISSUERS_TAKE_PATH   "/internal/v1/issuers:take"
#define ISSUERS_ANSWER_PATH "/internal/v1/issuers:answer"
/* False: the request is neither. */
bool issuer_fetches_serve(struct api *a, struct http_exchange *x);
/* Each outcome of a file is a line of log: issuer_keys_read or issuer_keys_not_read. */
void issuers_reload(struct api *a);
void issuer_metrics(struct api *a, struct strbuf *out); /* one sample an issuer, of each family */

#endif
