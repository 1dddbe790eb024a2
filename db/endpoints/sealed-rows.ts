import { type Db, type DbOrTransaction, oneRow, runPrepared, type Reader } from '../postgres/connect';
import { KeyRingError, type KeyRing, type Sealed, type SealedFor } from './key-ring';

// All tables with sealed rows. A new key must reach each row, and the key ring of a backup must open it.
const SEALED_TABLES = [
  {
    name: 'webhook_secrets',
    id: 'secret_id',
    place: `json_build_object('endpointId', endpoint_id, 'secretId', secret_id)`,
    signsFor: 'e.endpoint_id = t.endpoint_id',
  },
  {
    name: 'webhook_key_pairs',
    id: 'key_pair_id',
    place: `json_build_object('partnerId', partner_id, 'environment', environment, 'keyPairId', key_pair_id,
      'publicKey', public_key)`,
    signsFor: '(e.partner_id, e.environment) = (t.partner_id, t.environment)',
  },
];
type SealedTable = (typeof SEALED_TABLES)[number];

interface SealedRow extends Sealed {
  readonly id: string;
  readonly place: SealedFor;
}

interface Wanted {
  readonly after: string;
  readonly limit: number;
  /** Only rows that were sealed with another key; they are locked. */
  readonly otherThan?: string;
}

async function readSealed(
  reader: Reader,
  { name, id, place }: SealedTable,
  { after, limit, otherThan }: Wanted,
): Promise<SealedRow[]> {
  const text = `
    select ${id} as id, key_id as "keyId", ciphertext, ${place}::text as place
    from ${name}
    where ${id} > $1 and ($2::text is null or key_id <> $2)
    order by ${id} limit $3::int ${otherThan === undefined ? '' : 'for update'}`;
  type Row = Omit<SealedRow, 'place'> & { readonly place: string };
  const rows = await runPrepared<Row>(reader, text, [after, otherThan ?? null, limit]);
  return rows.map((row) => ({ ...row, place: JSON.parse(row.place) as SealedFor }));
}

/** A secret or private key that the key ring does not open. The reason contains no secret. */
export interface Unreadable {
  readonly id: string;
  readonly reason: string;
}

function openRow(keyRing: KeyRing, row: SealedRow): { readonly secret: string } | Unreadable {
  try {
    return { secret: keyRing.open(row, row.place) };
  } catch (error) {
    if (error instanceof KeyRingError) return { id: row.id, reason: error.message };
    throw error;
  }
}

const CHECKED_AT_ONCE = 1_000;

/** Opens every secret and private key, to check that a key ring fits a database. */
export async function checkSecrets(db: DbOrTransaction, keyRing: KeyRing) {
  const byKey: Record<string, number> = {};
  const unreadable: Unreadable[] = [];
  let found = 0;
  for (const table of SEALED_TABLES) {
    for (let after: string | undefined = ''; after !== undefined;) {
      const rows = await readSealed(db, table, { after, limit: CHECKED_AT_ONCE });
      for (const row of rows) {
        byKey[row.keyId] = (byKey[row.keyId] ?? 0) + 1;
        const opened = openRow(keyRing, row);
        if ('reason' in opened) unreadable.push(opened);
      }
      found += rows.length;
      after = rows.at(-1)?.id;
    }
  }
  return { found, byKey, unreadable };
}

/** Of each key: one damaged secret says nothing about it. */
const TRIED = 20;
const inUse = ({ name, id, place, signsFor }: SealedTable) => `
  select ${id} as id, key_id as "keyId", ciphertext, ${place} as place
  from (
    select t.*, row_number() over (partition by key_id order by ${id} desc) as nth
    from ${name} t
    where (expires_at is null or expires_at > service_now())
      and exists (select from webhook_endpoints e where e.state = 'active' and ${signsFor})) newest
  where nth <= ${TRIED}`;
const IN_USE = SEALED_TABLES.map(inUse).join(' union all ');

/** @returns why a key ring cannot sign for endpoints, as it opens no secret or private key under one of their keys; null: it can. */
export async function faultOfKeyRing(reader: Reader, keyRing: KeyRing): Promise<string | null> {
  const rows = await runPrepared<SealedRow>(reader, IN_USE);
  const opened = rows.map((row) => ({ keyId: row.keyId, ...openRow(keyRing, row) }));
  const good = new Set(opened.flatMap((one) => ('secret' in one ? [one.keyId] : [])));
  const bad = opened.find(({ keyId }) => !good.has(keyId));
  return bad !== undefined && 'reason' in bad ? bad.reason : null;
}

/** Rows of one transaction: few, so that no rotation waits long. */
const RESEALED_AT_ONCE = 100;

const STALE = `
  select (${SEALED_TABLES.map(({ name }) => `(select count(*) from ${name} where key_id <> $1)`).join(' + ')})::int as found`;

interface ResealOptions {
  readonly keyRing: KeyRing;
  readonly dryRun: boolean;
  readonly record: (tx: DbOrTransaction, resealed: number) => Promise<void>;
  readonly onProgress: (done: number, found: number) => void;
}

/**
 * Seals every webhook secret and private key again that is not under the current key, in batches. Those
 * of removed endpoints are included, so that an old key can be given up. A row that cannot be opened
 * stays as it is. The next run continues an interrupted one.
 */
export async function resealSecrets(db: Db, options: ResealOptions) {
  const { currentKeyId } = options.keyRing;
  const { found } = await oneRow<{ found: number }>(db, STALE, [currentKeyId]);
  const unreadable: Unreadable[] = [];
  let resealed = 0;
  for (const table of SEALED_TABLES) {
    for (let after: string | undefined = ''; after !== undefined;) {
      const batch = await resealBatch(db, table, after, options);
      unreadable.push(...batch.unreadable);
      resealed += batch.changed;
      after = batch.last;
      if (after !== undefined) options.onProgress(resealed + unreadable.length, found);
    }
  }
  return { found, resealed, unreadable };
}

async function resealBatch(db: Db, table: SealedTable, after: string, options: ResealOptions) {
  const { keyRing, dryRun, record } = options;
  const wanted = { after, limit: RESEALED_AT_ONCE, otherThan: keyRing.currentKeyId };
  return db.transaction(async (tx) => {
    const rows = await readSealed(tx, table, wanted);
    const unreadable: Unreadable[] = [];
    for (const row of rows) {
      const opened = openRow(keyRing, row);
      if ('reason' in opened) unreadable.push(opened);
      else if (!dryRun) {
        const { keyId, ciphertext } = keyRing.seal(opened.secret, row.place);
        const text = `update ${table.name} set key_id = $2, ciphertext = $3::bytea where ${table.id} = $1`;
        await runPrepared(tx, text, [row.id, keyId, Buffer.from(ciphertext)]);
      }
    }
    const changed = rows.length - unreadable.length;
    if (changed > 0 && !dryRun) await record(tx, changed);
    return { changed, unreadable, last: rows.at(-1)?.id };
  });
}
