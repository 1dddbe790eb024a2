import { hostname } from 'node:os';
import type { Logger } from 'pino';
import { appendOperatorEvents } from '../db/audit/operator-events';
import type { Db, Sql } from '../db/postgres/connect';
import { noteNetworkOutage } from '../db/processes';
import { describeOperatorEvent } from '../domain/operator-event';
import type { NetworkOutage } from './reach';

interface OutageNotesDeps {
  readonly db: Db;
  readonly sql: Sql;
  readonly logger: Logger;
}

/** Logs and stores that our network reaches nobody, or somebody again. */
export function createOutageNotes({ db, sql, logger }: OutageNotesDeps) {
  function note(
    kind: 'network_cut_off' | 'network_back',
    { since, until, endpoints }: NetworkOutage & { readonly until?: Date },
    storing?: Promise<unknown>,
  ): void {
    const minute = (at?: Date) => at && `${at.toISOString().slice(0, 16)}Z`;
    const details = { host: hostname(), since: minute(since), until: minute(until), endpoints };
    const event = { kind, partnerId: null, environment: null, endpointId: null, details };
    logger.warn({ kind, ...details }, describeOperatorEvent(kind, details));
    Promise.all([storing, appendOperatorEvents(db, [event])]).catch((error: unknown) =>
      logger.error({ err: error }, 'an outage of the network was not noted'),
    );
  }
  return {
    began: (outage: NetworkOutage): void => note('network_cut_off', outage),
    ended: (outage: NetworkOutage & { readonly until: Date }): void =>
      note('network_back', outage, noteNetworkOutage(sql, outage)),
  };
}
