import type { Database } from '../../db/postgres/connect';
import { issueServiceKey, type KeyBinding } from '../../db/service-keys';
import type { TestApi } from './api';
import { expectDocumentedInternally } from './contract';
import { newReference } from './applications';
import { addShop } from './merchants';
import { callOver, type CallOptions } from '../../testbed/http-call';

/** A lender's integration: calls the internal listener, and holds every answer against its document. */
export type InternalClient = Awaited<ReturnType<typeof internalClient>>;

export const APPLICATIONS = '/internal/v1/credit-applications';

/** Adds the shop for whose products it opens applications, and issues a service key of its own for the client, for `lender_a` and the sandbox unless told otherwise. */
export async function internalClient(
  api: Pick<TestApi, 'internalPort'> & { readonly database: Pick<Database, 'db'> },
  binding: Partial<KeyBinding> = {},
) {
  await addShop(api.database);
  const { lender = 'lender_a' } = binding;
  const issued = await issueServiceKey(api.database.db, {
    name: 'Test integration',
    environment: 'sandbox',
    expiresInSeconds: null,
    ...binding,
    lender,
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
    /** Opens one from the link of a quote. */
    openLink: (finance_link: string, lender_reference = newReference()) =>
      call({ body: { lender, lender_reference, finance_link } }),
    /** Tells what a lender said of it. */
    tell: (applicationId: string, body: unknown) =>
      call({ path: `${APPLICATIONS}/${applicationId}/lender-events`, body }),
    read: (applicationId: string) => call({ method: 'GET', path: `${APPLICATIONS}/${applicationId}` }),
  };
}
