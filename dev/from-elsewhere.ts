import type { IncomingMessage } from 'node:http';

/** Whether a page of another site has sent it, open in the same browser. Programs send no Origin. */
export const isFromElsewhere = ({ headers: { origin, host } }: IncomingMessage): boolean =>
  origin !== undefined && origin !== `https://${host}`;
