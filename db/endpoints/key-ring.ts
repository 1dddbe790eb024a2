import { createCipheriv, createDecipheriv, createSecretKey, randomBytes, type KeyObject } from 'node:crypto';

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
/** Drawn at random, which is safe for 2^32 seals under one key. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Short, so that a key in the place of its id is refused. */
const KEY_ID = /^[a-z0-9][a-z0-9_-]{0,15}$/;
const BASE64_OF_32_BYTES = /^[A-Za-z0-9+/]{43}=?$/;

/** The row of an endpoint or key pair that a sealed secret belongs to. In another row it does not open. */
export type SealedFor =
  | { readonly endpointId: string; readonly secretId: string }
  | {
      readonly partnerId: string;
      readonly environment: string;
      readonly keyPairId: string;
      /** Another public key beside the private one is refused. */
      readonly publicKey: string;
    };

export interface Sealed {
  readonly keyId: string;
  /** Nonce (12 bytes), ciphertext, tag (16 bytes). */
  readonly ciphertext: Uint8Array;
}

/** Seals with its first key, opens with any. Printing or logging a ring shows no key. */
export interface KeyRing {
  readonly currentKeyId: string;
  seal(secret: string, place: SealedFor): Sealed;
  /**
   * @throws KeyRingError when the key is not in the ring, or the ciphertext was changed or belongs
   * elsewhere.
   */
  open(sealed: Sealed, place: SealedFor): string;
}

/** A key ring that cannot be read, or a secret that it cannot open. The message contains neither. */
export class KeyRingError extends Error {
  override readonly name = 'KeyRingError';
}

/**
 * Reads a key ring: `id1:base64key,…`, 32 bytes each. The first key seals.
 * @throws KeyRingError with the position of the entry, not its text
 */
export function parseKeyRing(text: string): KeyRing {
  const keys = new Map<string, KeyObject>();
  for (const [index, entry] of text.split(',').entries()) {
    const [id = '', key = '', ...more] = entry.trim().split(':');
    const position = `key ring: entry ${index + 1}`;
    if (more.length > 0 || !KEY_ID.test(id))
      throw new KeyRingError(
        `${position} must be <id>:<key>, the id 1 to 16 of a-z, 0-9, "-" and "_", beginning with a letter or digit`,
      );
    const bytes = Buffer.from(key, 'base64');
    if (!BASE64_OF_32_BYTES.test(key) || bytes.length !== KEY_BYTES)
      throw new KeyRingError(`${position} must have a key of 32 bytes in base64 (openssl rand -base64 32)`);
    if (keys.has(id)) throw new KeyRingError(`${position} repeats the id of an earlier one`);
    keys.set(id, createSecretKey(bytes));
  }
  return keyRing(keys);
}

function keyRing(keys: ReadonlyMap<string, KeyObject>): KeyRing {
  const [[currentKeyId, currentKey]] = [...keys] as [[string, KeyObject]];
  return {
    currentKeyId,
    seal: (secret, place) => {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, currentKey, nonce, { authTagLength: TAG_BYTES });
      cipher.setAAD(associatedData(place));
      const sealed = [nonce, cipher.update(secret, 'utf8'), cipher.final(), cipher.getAuthTag()];
      return { keyId: currentKeyId, ciphertext: Buffer.concat(sealed) };
    },
    open: ({ keyId, ciphertext }, place) => {
      const key = keys.get(keyId);
      if (key === undefined) throw new KeyRingError(`key ring: there is no key with the id ${keyId}`);
      return open(key, ciphertext, place);
    },
  };
}

function open(key: KeyObject, ciphertext: Uint8Array, place: SealedFor): string {
  try {
    const bytes = Buffer.from(ciphertext);
    const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(associatedData(place));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    const secret = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
    return Buffer.concat([secret, decipher.final()]).toString('utf8');
  } catch (cause) {
    throw new KeyRingError(
      `key ring: ${'secretId' in place ? `secret ${place.secretId}` : `private key ${place.keyPairId}`} cannot be opened: it was changed, belongs to another row, or its key was replaced under the same id`,
      { cause },
    );
  }
}

function associatedData(place: SealedFor): Buffer {
  const parts =
    'secretId' in place
      ? [place.endpointId, place.secretId]
      : [place.partnerId, place.environment, place.keyPairId, place.publicKey];
  return Buffer.from(JSON.stringify(parts), 'utf8');
}
