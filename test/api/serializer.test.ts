import { z } from 'zod';
import { serializer } from '../../api/serializer';
import { answeredAmount } from '../../contracts/amount';

const schema = z.object({
  data: z.union([
    z.object({ amount: answeredAmount('900.00') }),
    z.object({ note: z.string(), at: z.iso.datetime() }),
  ]),
});

test('alternatives with amounts are written without a word on the console', () => {
  const said = jest.spyOn(console, 'warn').mockImplementation(() => undefined);
  const serialize = serializer(schema);
  expect(serialize({ data: { amount: '10.50' } })).toBe('{"data":{"amount":"10.50"}}');
  const other = { note: 'a "b"', at: '2026-11-21T12:00:00.000Z' };
  expect(JSON.parse(serialize({ data: other }))).toEqual({ data: other });
  expect(said).not.toHaveBeenCalled();
  said.mockRestore();
});

test('an undeclared field does not leave', () => {
  const serialize = serializer(z.object({ open: z.string() }));
  expect(serialize({ open: 'yes', hidden: 'no' } as { open: string })).toBe('{"open":"yes"}');
});
