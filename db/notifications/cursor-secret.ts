import { runPrepared, type Reader } from '../postgres/prepared';

/** The secret of this database that authenticates cursors: the same for every API process, and after a restart. */
export async function readCursorSecret(reader: Reader): Promise<Buffer> {
  const [row] = await runPrepared<{ secret: string }>(
    reader,
    `select encode(secret, 'base64') as secret from cursor_secrets`,
  );
  if (row === undefined) throw new Error('cursor_secrets is empty: the migration fills it');
  return Buffer.from(row.secret, 'base64');
}
