import { sql, type SQL } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import type { Sealed, SealedFor } from './key-ring';

/** A table whose rows hold something that the key ring has sealed. */
export interface SealedTable {
  readonly name: SQL;
  readonly id: SQL;
  /** JSON of the row as `SealedFor` names it. */
  readonly place: SQL;
}

/** All there are: what a new key must reach, and what a backup must be able to open. */
export const SEALED_TABLES: readonly SealedTable[] = [
  {
    name: sql`webhook_secrets`,
    id: sql`secret_id`,
    place: sql`json_build_object('endpointId', endpoint_id, 'secretId', secret_id)`,
  },
  {
    name: sql`webhook_key_pairs`,
    id: sql`key_pair_id`,
    place: sql`json_build_object('partnerId', partner_id, 'environment', environment, 'keyPairId', key_pair_id,
      'publicKey', public_key)`,
  },
];

/** A secret or a private key, with the row that it belongs to. */
export interface SealedRow extends Sealed {
  readonly id: string;
  readonly place: SealedFor;
}

interface Wanted {
  /** Only those behind this id. */
  readonly after: string;
  readonly limit: number;
  /** Only those that another key than this one has sealed; they are locked. */
  readonly otherThan?: string;
}

/** Rows of a table, by id; those of removed endpoints and of ended key pairs too. */
export async function readSealed(
  db: DbOrTransaction,
  { name, id, place }: SealedTable,
  { after, limit, otherThan }: Wanted,
): Promise<SealedRow[]> {
  type Row = { id: string; keyId: string; ciphertext: string; place: string };
  const rows = await db.execute<Row>(sql`
    select ${id} as id, key_id as "keyId", encode(ciphertext, 'base64') as ciphertext, ${place}::text as place
    from ${name}
    where ${id} > ${after} ${otherThan === undefined ? sql`` : sql`and key_id <> ${otherThan}`}
    order by ${id} limit ${limit}
    ${otherThan === undefined ? sql`` : sql`for update`}`);
  return rows.map((row) => ({
    ...row,
    ciphertext: Buffer.from(row.ciphertext, 'base64'),
    place: JSON.parse(row.place) as SealedFor,
  }));
}
