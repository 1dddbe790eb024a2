import { z } from 'zod';
import { serializer } from '../../api/answers';
import { FINANCE_URL_PATTERN, financeUrlFault } from '../../contracts/quote-request';

test('an undeclared field does not leave', () => {
  const serialize = serializer(z.object({ open: z.string() }));
  expect(serialize({ open: 'yes', hidden: 'no' } as { open: string })).toBe('{"open":"yes"}');
});

test('a URL that we accept is written as any JSON writer would, with every character that may stand in one', () => {
  const serialize = serializer(z.object({ url: z.string().meta({ pattern: FINANCE_URL_PATTERN }) }));
  const characters = Array.from({ length: 0x1_1000 }, (_, code) => String.fromCodePoint(code));
  const accepted = characters.filter((one) => financeUrlFault(`https://shop.example/?${one}`) === null);
  expect(accepted.length).toBeGreaterThan(60_000);
  const url = `https://shop.example/?${accepted.join('')}`;
  expect(serialize({ url })).toBe(JSON.stringify({ url }));
});
