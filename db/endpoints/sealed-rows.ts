import { runPrepared, type Reader } from '../postgres/prepared';
import type { Sealed, SealedFor } from './key-ring';

/** A table whose rows hold something that the key ring has sealed. */
export interface SealedTable {
  readonly name: string;
  readonly id: string;
  /** JSON of the row as `SealedFor` names it. */
  readonly place: string;
}

/** All there are: what a new key must reach, and what a backup must be able to open. */
export const SEALED_TABLES: readonly SealedTable[] = [
  {
    name: 'webhook_secrets',
    id: 'secret_id',
    place: `json_build_object('endpointId', endpoint_id, 'secretId', secret_id)`,
  },
  {
    name: 'webhook_key_pairs',
    id: 'key_pair_id',
    place: `json_build_object('partnerId', partner_id, 'environment', environment, 'keyPairId', key_pair_id,
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
