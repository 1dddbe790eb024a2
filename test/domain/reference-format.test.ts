import { array, constantFrom, pre, string, tuple } from 'fast-check';
import { readReferenceFormat, sampleReference } from '../../domain/reference-format';
import { forAll } from './builders';

const accepts = (format: string, reference: string) => readReferenceFormat(format)?.(reference);

test.each([
  ['[A-Za-z0-9]{8}', ['AB12CD34', 'ab12cd34'], ['AB12CD3', 'AB12CD345', 'AB12CD3-', 'AB12CD3é', '']],
  ['\\d{7}', ['1234567'], ['123456', '12345678', '123456a', '１２３４５６７', '1234567\n']],
  ['LN-[A-Z]{2}\\d{2,4}/?', ['LN-AB12', 'LN-AB1234/'], ['LN-AB1', 'LN-AB12345', 'LNAB12']],
  ['[a-c.]?\\d', ['1', 'b1', '.9'], ['d1', 'bb1']],
])('%s takes and refuses as it says', (format, good, bad) => {
  for (const one of good) expect([one, accepts(format, one)]).toEqual([one, true]);
  for (const one of bad) expect([one, accepts(format, one)]).toEqual([one, false]);
  for (const share of [0, 0.5, 0.999]) {
    const sample = sampleReference(format, (many) => Math.floor(share * many));
    expect([sample, accepts(format, sample)]).toEqual([sample, true]);
  }
});

const NO_FORMATS =
  '(a+)+ [A-Z]+ [Z-A]{2} [A-z]{2} []{2} a{3,2} a?b? [A-Z]{65} \\d{40}\\d{40} ^\\d{7}$ \\w{3} é'.split(' ');
test.each(['', '.{8}\n', ...NO_FORMATS])('%j is no format', (format) => {
  expect(readReferenceFormat(format)).toBeNull();
});

test.each([
  ['a class that never ends well', '[' + 'a-'.repeat(36) + '!'],
  ['a class that never ends', '[' + 'a-'.repeat(50_000)],
  ['many classes of no characters', '[a-a]{0}'.repeat(10_000) + '!'],
])('reads %s in no more than the time of as many letters', (_what, format) => {
  const least = (of: string) => Math.min(...[1, 2, 3].map(() => cpuMicrosToRefuse(of)));
  expect(least(format) / least('a'.repeat(100_000))).toBeLessThan(10);
});

function cpuMicrosToRefuse(format: string): number {
  const before = process.cpuUsage();
  expect(readReferenceFormat(format)).toBeNull();
  return process.cpuUsage(before).user;
}

test('agrees with regular expressions, and takes no time whatever is thrown at it', () => {
  const part = tuple(
    constantFrom('\\d', '[A-B]', '[A-B1-2]', 'A', '1', '-'),
    constantFrom('', '?', '{2}', '{0,2}', '{1,3}'),
  );
  const formats = array(part, { minLength: 1, maxLength: 6 }).map((parts) => parts.flat().join(''));
  const references = string({ unit: constantFrom('A', 'B', '1', '-'), maxLength: 12 });
  forAll(100, formats, references, (format, reference) => {
    const check = readReferenceFormat(format);
    pre(check !== null);
    expect(check?.(reference)).toBe(new RegExp(`^(?:${format})$`).test(reference));
  });
  const slow = '[A-Z]{0,3}'.repeat(20) + '\\d';
  expect(accepts(slow, 'A'.repeat(61))).toBe(false);
});
