import { request } from 'undici';
import type { Database } from '../../db/connect';
import { issueServiceKey } from '../../db/queries/service-keys';
import type { Answer, TestApi } from './api';
import { expectDocumentedInternally } from './contract';

export interface InternalCall {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Record<string, string | string[]>;
  /** Sent as it is when text or bytes, else as JSON. */
  readonly body?: unknown;
  /** Service key; null sends none. Default: the client's own. */
  readonly key?: string | null;
}

/** A lender's integration: calls the internal listener, and holds every answer against its document. */
export interface InternalClient {
  readonly key: string;
  readonly keyId: string;
  call(call?: InternalCall): Promise<Answer>;
  /** Opens an application. */
  open(body: unknown): Promise<Answer>;
  /** Tells what a lender said of it. */
  tell(applicationId: string, body: unknown): Promise<Answer>;
  /** Reads it. */
  read(applicationId: string): Promise<Answer>;
}

export const APPLICATIONS = '/internal/v1/credit-applications';

/** Issues a service key of its own for the client. */
export async function internalClient(
  api: Pick<TestApi, 'internalPort'> & { readonly database: Pick<Database, 'db'> },
): Promise<InternalClient> {
  const issued = await issueServiceKey(api.database.db, { name: 'Test integration', expiresInSeconds: null });
  const call = async ({
    method = 'POST',
    path = APPLICATIONS,
    headers = {},
    body,
    key,
  }: InternalCall = {}) => {
    const raw = typeof body === 'string' || body instanceof Uint8Array || body === undefined;
    const sentKey = key === undefined ? issued.key : key;
    const answer = await request(`http://127.0.0.1:${api.internalPort}${path}`, {
      method: method as 'POST',
      headers: {
        ...(sentKey !== null && { authorization: `Bearer ${sentKey}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      body: raw ? ((body ?? null) as string | null) : JSON.stringify(body),
    });
    const text = await answer.body.text();
    const { statusCode: status } = answer;
    expectDocumentedInternally({ method, path }, { status, headers: answer.headers, text });
    return { status, headers: answer.headers, text, body: JSON.parse(text) };
  };
  return {
    key: issued.key,
    keyId: issued.summary.keyId,
    call,
    open: (body) => call({ body }),
    tell: (applicationId, body) => call({ path: `${APPLICATIONS}/${applicationId}/lender-events`, body }),
    read: (applicationId) => call({ method: 'GET', path: `${APPLICATIONS}/${applicationId}` }),
  };
}
