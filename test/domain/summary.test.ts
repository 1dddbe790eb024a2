import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { LONGEST_SUMMARY, summaryHtml, type SummaryOffer } from '../../domain/quote';
import { visibleText } from '../support/visible-text';
import { forAll } from './builders';

const LINK = 'https://shop.example/f?a=1&loan_amount=1200.00#"><script>';
const HEADLINE = 'Spread the cost with finance. Learn more';

type Due = SummaryOffer['initialPaymentDue'];

function offer(
  pence: number,
  apr: number,
  changes: Partial<SummaryOffer['product']> = {},
  due?: Due,
): SummaryOffer {
  return {
    monthlyRepaymentPence: pence,
    initialPaymentDue: due ?? { value: 1, unit: 'months' },
    product: { aprBasisPoints: apr, rateType: 'fixed', numberOfRepayments: 12, ...changes },
  };
}

const VARIABLE = { rateType: 'variable' } as const;
const ONE = { numberOfRepayments: 1 };
const ONE_VARIABLE = { ...ONE, ...VARIABLE };
const DAYS_30: Due = { value: 30, unit: 'days' };
/** The longest APR of PRODUCT_BOUNDS, and the longest time to a first payment. */
const [HIGHEST_APR, DAYS_1830]: [number, Due] = [1_000_000, { value: 1_830, unit: 'days' }];

const text = (one: SummaryOffer | null) => visibleText(summaryHtml(one, LINK));

describe('the text of a summary', () => {
  it.each<[SummaryOffer | null, string]>([
    [offer(10_521, 990), 'Spread the cost from £105.21 a month at 9.9% APR representative. Learn more'],
    [offer(10_521, 1_000), 'Spread the cost from £105.21 a month at 10.0% APR representative. Learn more'],
    [
      offer(1_234_567, 1_990),
      'Spread the cost from £12,345.67 a month at 19.9% APR representative. Learn more',
    ],
    [offer(123_456_789, 1_990), 'From £1,234,567.89 a month at 19.9% APR representative. Learn more'],
    [
      offer(200_000_000, HIGHEST_APR),
      'From £2,000,000.00 a month at 10000.0% APR representative. Learn more',
    ],
    [offer(5_000, 0), 'Interest-free credit from £50.00 a month at 0% APR representative. Learn more'],
    [offer(123_456_789, 0), 'Interest-free from £1,234,567.89 a month, 0% APR representative. Learn more'],
    [offer(4_800, 1_490, VARIABLE), 'From £48.00 a month at 14.9% APR representative (variable). Learn more'],
    [
      offer(200_000_000, HIGHEST_APR, VARIABLE),
      'From £2,000,000.00 a month at 10000.0% APR representative (variable). Learn more',
    ],
    [offer(100_000, 0, ONE, DAYS_30), 'Pay £1,000.00 after 30 days at 0% APR representative. Learn more'],
    [
      offer(100_000, 0, ONE, { value: 1, unit: 'days' }),
      'Pay £1,000.00 after 1 day at 0% APR representative. Learn more',
    ],
    [offer(100_000, 0, ONE), 'Pay £1,000.00 after 1 month at 0% APR representative. Learn more'],
    [
      offer(104_633, 1_990, ONE, { value: 3, unit: 'months' }),
      'Pay £1,046.33 after 3 months at 19.9% APR representative. Learn more',
    ],
    [
      offer(200_000_000, HIGHEST_APR, ONE, DAYS_1830),
      'Pay £2,000,000.00 after 1830 days at 10000.0% APR representative. Learn more',
    ],
    [
      offer(10_000_000, 1_990, ONE_VARIABLE, DAYS_30),
      'Pay £100,000.00 after 30 days at 19.9% APR representative (variable). Learn more',
    ],
    // There is no room to say that the rate may change.
    [offer(100_000_000, 1_990, ONE_VARIABLE, DAYS_30), HEADLINE],
    [offer(1_000_000_000, HIGHEST_APR, VARIABLE), HEADLINE],
    [null, HEADLINE],
  ])('for %j is %s', (one, expected) => {
    expect(text(one)).toBe(expected);
    expect(Array.from(expected).length).toBeLessThanOrEqual(LONGEST_SUMMARY);
  });

  it('has room for each fixed price of a product that an import accepts', () => {
    // £500,000,000.00 is the highest total (product-check.ts).
    for (const product of [{}, ONE])
      expect(text(offer(50_000_000_000, HIGHEST_APR, product, DAYS_1830))).not.toBe(HEADLINE);
    expect(text(offer(200_000_000, 0))).not.toBe(HEADLINE);
  });
});

it('of each kind stands in the guide in the words that the service writes', () => {
  const guide = readFileSync(join(__dirname, '../../docs/partner-guide.md'), 'utf8');
  const [, part = ''] = guide.split('### Words of the summary');
  const written = [...(part.split('\n##')[0] ?? '').matchAll(/^- .*: _(.+)_$/gm)].map(([, words]) => words);
  const offers = [
    offer(3_858, 1_990),
    offer(123_456_789, 1_990),
    offer(9_000, 0),
    offer(123_456_789, 0),
    offer(4_800, 1_490, VARIABLE),
    offer(100_000, 0, ONE, DAYS_30),
    offer(104_633, 1_990, ONE_VARIABLE, { value: 3, unit: 'months' }),
    null,
  ];
  expect(written).toEqual(offers.map((one) => text(one).replace(' Learn more', '')));
});

it('is one link, escaped, and the text within the limit', () => {
  const anyOffer = fc
    .record({
      pence: fc.integer({ min: 1, max: 50_000_000_000 }),
      tenths: fc.integer({ min: 0, max: 100_000 }),
      rateType: fc.constantFrom('fixed', 'variable'),
      numberOfRepayments: fc.constantFrom(1, 12),
      value: fc.integer({ min: 1, max: 1_830 }),
      unit: fc.constantFrom('days', 'months'),
    })
    .map(({ pence, tenths, value, unit, ...product }) => offer(pence, tenths * 10, product, { value, unit }));
  forAll(300, anyOffer, fc.webUrl({ withQueryParameters: true, withFragments: true }), (one, url) => {
    const link = `${url}"'<>`;
    const html = summaryHtml(one, link);
    const words = visibleText(html);
    expect(Array.from(words).length).toBeLessThanOrEqual(LONGEST_SUMMARY);
    const { rateType, numberOfRepayments } = one.product;
    if (words !== HEADLINE) {
      expect(words.includes(' (variable).')).toBe(rateType === 'variable');
      expect(words.includes(' a month')).toBe(numberOfRepayments > 1);
    }
    const href = html.match(/^[^<>]* <a href="([^"<>']*)">Learn more<\/a>$/)?.[1];
    expect(visibleText(href ?? '')).toBe(link);
  });
});
