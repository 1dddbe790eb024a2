import { randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import { KeyRingError, parseKeyRing } from '../../../db/endpoints/key-ring';

const key = () => randomBytes(32).toString('base64');
const [oldKey, newKey] = [key(), key()];
const place = { endpointId: 'whe_01', secretId: 'whs_01' };
const ring = parseKeyRing(`k1:${oldKey}`);

test('the same secret never seals to the same bytes', () => {
  const sealed = Array.from({ length: 50 }, () =>
    Buffer.from(ring.seal('secret', place).ciphertext).toString('hex'),
  );
  expect(new Set(sealed).size).toBe(50);
});

test('the first key seals and every key opens', () => {
  const sealedBefore = ring.seal('secret', place);
  const rotated = parseKeyRing(`k2:${newKey}, k1:${oldKey}`);
  expect(rotated.currentKeyId).toBe('k2');
  expect(rotated.open(sealedBefore, place)).toBe('secret');
  expect(rotated.seal('secret', place).keyId).toBe('k2');
});

test('a secret opens only in its own row', () => {
  const sealed = ring.seal('secret', place);
  expect(() => ring.open(sealed, { ...place, endpointId: 'whe_02' })).toThrow(KeyRingError);
  expect(() => ring.open(sealed, { ...place, secretId: 'whs_02' })).toThrow(KeyRingError);
  expect(() => ring.open(sealed, { endpointId: 'whe_01whs', secretId: '_01' })).toThrow(KeyRingError);
});

test('a private key opens only for its partner, environment and public key', () => {
  const pair = { partnerId: 'P100001', environment: 'live', keyPairId: 'whk_01', publicKey: 'whpk_1' };
  const sealed = ring.seal('whsk_', pair);
  expect(ring.open(sealed, pair)).toBe('whsk_');
  for (const [name, other] of Object.entries({
    partnerId: 'P100002',
    environment: 'sandbox',
    keyPairId: 'whk_02',
    publicKey: 'whpk_2',
  }))
    expect(() => ring.open(sealed, { ...pair, [name]: other })).toThrow('private key whk_0');
  expect(() => ring.open(sealed, place)).toThrow(KeyRingError);
});

test('no changed byte goes unnoticed', () => {
  const sealed = ring.seal('secret', place);
  for (let index = 0; index < sealed.ciphertext.length; index += 1) {
    const changed = Buffer.from(sealed.ciphertext);
    changed[index] = (changed[index] ?? 0) ^ 1;
    expect(() => ring.open({ ...sealed, ciphertext: changed }, place)).toThrow(KeyRingError);
    const cut = sealed.ciphertext.slice(0, index);
    expect(() => ring.open({ ...sealed, ciphertext: cut }, place)).toThrow(KeyRingError);
  }
});

test('a key that is missing or was replaced says so without showing a key', () => {
  const sealed = ring.seal('secret', place);
  expect(() => parseKeyRing(`k2:${newKey}`).open(sealed, place)).toThrow('no key with the id k1');
  expect(() => parseKeyRing(`k1:${newKey}`).open(sealed, place)).toThrow('whs_01 cannot be opened');
});

it.each([
  ['nothing', '', 'entry 1'],
  ['a key without an id', newKey, 'entry 1'],
  ['key and id the wrong way round', `${newKey}:k1`, 'entry 1'],
  ['an id without a key', 'k1:', 'entry 1 must have a key of 32 bytes'],
  ['a short key', `k1:${randomBytes(16).toString('base64')}`, 'entry 1 must have a key of 32 bytes'],
  ['a key in hex', `k1:${randomBytes(32).toString('hex')}`, 'entry 1 must have a key of 32 bytes'],
  ['a bad second key', `k1:${oldKey},k2:${newKey.slice(0, 40)}`, 'entry 2 must have a key'],
  ['one id twice', `k1:${oldKey},k1:${newKey}`, 'entry 2 repeats'],
  ['a trailing comma', `k1:${oldKey},`, 'entry 2'],
  ['too many parts', `k1:${oldKey}:${newKey}`, 'entry 1'],
])('%s is refused by position, with no key in the message', (_what, text, message) => {
  const attempt = () => parseKeyRing(text);
  expect(attempt).toThrow(KeyRingError);
  expect(attempt).toThrow(message);
  for (const part of text.split(/[:,]/).filter((piece) => piece.length > 8)) {
    expect(attempt).not.toThrow(part.slice(0, 8));
  }
});

test('a printed ring shows no key', () => {
  const printed = inspect(ring, { depth: 9, showHidden: true }) + JSON.stringify(ring);
  expect(printed).not.toContain(oldKey.slice(0, 10));
});
