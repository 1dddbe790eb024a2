import type { IncomingMessage } from 'node:http';

/**
 * How often a request brings a header of this (lower-case) name. Node keeps the first of two and drops the other: which
 * one counts must not be a guess.
 */
export function timesSent({ rawHeaders }: IncomingMessage, header: string): number {
  let sent = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name?.length === header.length && name.toLowerCase() === header) sent += 1;
  }
  return sent;
}
