import { createHmac, timingSafeEqual } from 'node:crypto';

/** What a cursor is good for: every part of it is authenticated. */
export type CursorScope = readonly (string | number | null)[];

/** Enough that nobody finds one by trying. */
const MAC_BYTES = 16;
/** Where the next page begins: the 26 characters of a ULID. */
const POSITION = /^[0-9A-HJKMNP-TV-Z]{26}$/;

export interface Cursors {
  /** @param position a ULID. */
  seal(position: string, scope: CursorScope): Promise<string>;
  /** The position; null for a cursor that was not made here for the same scope. */
  open(cursor: string, scope: CursorScope): Promise<string | null>;
}

/**
 * Cursors of pages: a position and an HMAC-SHA256 over it and its scope (partner, environment, filters), in base64url. A
 * partner cannot make one, nor use another's.
 * @param readSecret asked once, and again after a failure.
 */
export function createCursors(readSecret: () => Promise<Buffer>): Cursors {
  let secret: Promise<Buffer> | null = null;
  const secretOnce = () =>
    (secret ??= readSecret().catch((error: unknown) => {
      secret = null;
      throw error;
    }));
  async function macOf(position: string, scope: CursorScope): Promise<Buffer> {
    const hmac = createHmac('sha256', await secretOnce()).update(JSON.stringify([position, ...scope]));
    return hmac.digest().subarray(0, MAC_BYTES);
  }
  return {
    async seal(position, scope) {
      const parts = [Buffer.from(position, 'latin1'), await macOf(position, scope)];
      return Buffer.concat(parts).toString('base64url');
    },
    async open(cursor, scope) {
      const bytes = Buffer.from(cursor, 'base64url');
      const position = bytes.toString('latin1', 0, 26);
      const canonical = bytes.length === 26 + MAC_BYTES && bytes.toString('base64url') === cursor;
      if (!canonical || !POSITION.test(position)) return null;
      return timingSafeEqual(bytes.subarray(26), await macOf(position, scope)) ? position : null;
    },
  };
}
