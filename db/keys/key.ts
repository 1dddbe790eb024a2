import { createHash, randomInt } from 'node:crypto';

export type KeyEnvironment = 'sandbox' | 'live';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** 32 of 62 characters are 190 bits: never guessed, so a fast hash without salt is enough to store it. */
const RANDOM_LENGTH = 32;
/** By what a key opens: the public API in one environment, or the internal listener. */
const PREFIXES = { sandbox: 'sk_test_', live: 'sk_live_', service: 'svc_' } as const;

/**
 * A new key. `crypto.randomInt` draws without modulo bias.
 * @param draw an integer below the given bound; replaced in tests only.
 */
export function generateKey(
  opens: KeyEnvironment | 'service',
  draw: (bound: number) => number = randomInt,
): string {
  const random = Array.from({ length: RANDOM_LENGTH }, () => BASE62.charAt(draw(BASE62.length)));
  return PREFIXES[opens] + random.join('');
}

/** SHA-256 of a whole key: what is stored and looked up. */
export function hashKey(key: string): Buffer {
  return createHash('sha256').update(key, 'utf8').digest();
}
