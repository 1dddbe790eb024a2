import type { Database } from '../../db/postgres/connect';
import { issueServiceKey, type KeyBinding } from '../../db/keys';
import type { TestApi } from './api';
import { expectDocumentedInternally } from './contract';
import { addShop } from './merchants';
import { callOver, type CallOptions } from './http-call';

/** A lender's integration: calls the internal listener, and holds every answer against its document. */
export type InternalClient = Awaited<ReturnType<typeof internalClient>>;

export const APPLICATIONS = '/internal/v1/credit-applications';

/** Adds the shop for whose products it opens applications, and issues a service key of its own for the client, for `lender_a` and the sandbox unless told otherwise. */
export async function internalClient(
  api: Pick<TestApi, 'internalPort'> & { readonly database: Pick<Database, 'db'> },
  binding: Partial<KeyBinding> = {},
) {
  await addShop(api.database);
  const issued = await issueServiceKey(api.database.db, {
    name: 'Test integration',
    lender: 'lender_a',
    environment: 'sandbox',
    expiresInSeconds: null,
    ...binding,
  });
  const call = (wanted: CallOptions = {}) =>
    callOver(
      {
        origin: `http://127.0.0.1:${api.internalPort}`,
        path: APPLICATIONS,
        key: issued.key,
        check: expectDocumentedInternally,
      },
      wanted,
    );
  return {
    key: issued.key,
    keyId: issued.summary.keyId,
    call,
    open: (body: unknown) => call({ body }),
    /** Tells what a lender said of it. */
    tell: (applicationId: string, body: unknown) =>
      call({ path: `${APPLICATIONS}/${applicationId}/lender-events`, body }),
    read: (applicationId: string) => call({ method: 'GET', path: `${APPLICATIONS}/${applicationId}` }),
  };
}
