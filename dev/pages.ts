import type { IncomingMessage } from 'node:http';

const OUR_HOST = /^(?:localhost|127\.0\.0\.1)(?::\d+)?$/i;

/** Whether another site has made its name lead to this machine (DNS rebinding): that site's pages could read the answer. */
export const isForAnotherHost = ({ headers: { host } }: IncomingMessage): boolean =>
  !OUR_HOST.test(host ?? '');

/** Whether a page of another site has sent it, open in the same browser. Programs send no Origin. */
export const isFromElsewhere = ({ headers: { origin, host } }: IncomingMessage): boolean =>
  origin !== undefined && origin !== `https://${host}`;

export interface PageServer {
  readonly url: string;
  close(): Promise<void>;
}
