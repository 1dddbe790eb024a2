import type * as Product from '../../domain/product';

/** The module, where every language has the order of the United States, as ICU 72 gave it to the one of Canada. */
function withMonthFirst(): typeof Product {
  const { DateTimeFormat } = Intl;
  const replaced = jest
    .spyOn(Intl, 'DateTimeFormat')
    .mockImplementation((_language, options) => new DateTimeFormat('en-US', options));
  try {
    return jest.requireActual('../../domain/product');
  } finally {
    replaced.mockRestore();
  }
}

test.each([
  ['2026-03-05T12:00:00Z', '2026-03-05'],
  ['2026-07-05T22:59:59Z', '2026-07-05'],
  ['2026-07-05T23:00:00Z', '2026-07-06'],
  ['2026-12-31T23:59:59Z', '2026-12-31'],
])('at %s the day in the UK is %s, in whatever order ICU writes it', (moment, day) => {
  expect(withMonthFirst().ukDay(new Date(moment))).toBe(day);
});
