// Judges requests with the library of the Standard Webhooks project: one JSON line in, one line out.
//
//   in:  {"secret": "whsec_...", "headers": {...}, "body": BASE64, "now_ms": 1700000000000}
//   out: "accepted" or the library's reason for refusing
//
// Run in the folder whose node_modules holds the library.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const { Webhook, WebhookVerificationError } = createRequire(process.cwd() + "/")("standardwebhooks");

function judge({ secret, headers, body, now_ms }) {
  Date.now = () => now_ms; // the library asks how old a message is
  try {
    new Webhook(secret).verify(Buffer.from(body, "base64"), headers);
    return "accepted";
  } catch (refusal) {
    if (refusal instanceof WebhookVerificationError) return refusal.message;
    throw refusal;
  }
}

for await (const line of createInterface({ input: process.stdin })) console.log(judge(JSON.parse(line)));
