import { runDirectory } from '../../testbed/temporary-directory';
import {
  BAD_PUBLIC_KEYS,
  BAD_SECRETS,
  forgeries,
  genuine,
  GOOD_PUBLIC_KEYS,
  GOOD_SECRETS,
  headersOf,
  keyMaterialOf,
  MESSAGE,
  NOW,
} from './forgeries';
import { describeEach, tryIn, verifyIn, type Form } from './verifiers';

// The verifiers that partners copy, on what nobody of us signed, and with what is no key.

const folder = runDirectory('forgeries');
/** What a verifier says of keys that are none: each names a likely cause. */
const REFUSAL = /there is no wh|does not begin with wh|must come 32 bytes in base64/;

/** Half of the bad secrets in each form, as a program starts for each. Without PUBLIC_KEYS the programs verify by secrets. */
function badLists(form: Form): [string, string | undefined][] {
  if (form === 'public keys') return BAD_PUBLIC_KEYS.filter(([, known]) => known !== undefined);
  const half = form === 'Service-Signature' ? 1 : 0;
  return BAD_SECRETS.filter((_, at) => at % 2 === half);
}

describeEach(folder, (language, form) => {
  const isPublic = form === 'public keys';
  const verify = (known: string, headers: Record<string, string>, body = MESSAGE.body) =>
    verifyIn(folder, language, { headers, body, known, form, now: NOW });

  test('throws for what is no list of keys, and does not print it', async () => {
    for (const [name, known] of badLists(form)) {
      const headers = isPublic ? genuine(form) : headersOf(MESSAGE, form, '');
      const given = { headers, body: MESSAGE.body, known, form, now: NOW };
      const { code, output } = await tryIn(folder, language, given);
      expect([name, code === 0, output]).toEqual([name, false, expect.stringMatching(REFUSAL)]);
      for (const part of keyMaterialOf(known))
        expect([name, output]).toEqual([name, expect.not.stringContaining(part)]);
    }
  }, 300_000);

  test('takes white space between keys for nothing else', async () => {
    for (const known of isPublic ? GOOD_PUBLIC_KEYS : GOOD_SECRETS) {
      expect([known, await verify(known, genuine(form))]).toEqual([known, 'verified']);
      if (!isPublic)
        expect([known, await verify(known, headersOf(MESSAGE, form, ''))]).toEqual([known, 'refused']);
    }
  }, 120_000);

  test('refuses what was forged', async () => {
    const known = (isPublic ? GOOD_PUBLIC_KEYS : GOOD_SECRETS)[3] ?? '';
    for (const { name, headers, body } of forgeries(form))
      expect([name, await verify(known, headers, body)]).toEqual([name, 'refused']);
  }, 120_000);
});
