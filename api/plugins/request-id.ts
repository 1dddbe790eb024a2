import type { IncomingHttpHeaders } from 'node:http';

/** Visible ASCII only: it is echoed in a header and written to logs. */
const ACCEPTABLE = /^[\x21-\x7e]{1,128}$/;

/**
 * The id of a request: the caller's `X-Request-Id`, else its `X-Correlation-Id`, when that is 1–128 visible ASCII
 * characters; else a new one (spec §7.2, design §3).
 */
export function requestIdOf(headers: IncomingHttpHeaders, newId: () => string): string {
  for (const sent of [headers['x-request-id'], headers['x-correlation-id']]) {
    if (typeof sent === 'string' && ACCEPTABLE.test(sent)) return sent;
  }
  return newId();
}
